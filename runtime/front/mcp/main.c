/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libexec/cejail/mcp: the MCP server, as `cejail mcp` executes it, with the launcher's path as its
 * name and the arguments of the launcher; with the verb "broker" it is mcp_broker_main().
 */
#include <signal.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/log.h"
#include "runtime/front/mcp/mcp_server.h"
#include "runtime/service/log/slog.h"
#include "runtime/service/keeper/keeper.h"
#include "runtime/service/worker/work.h"
#include "runtime/service/worker/zygote_keeper.h"

#define MCP_FAILED 125 /* as for every failure of cejail itself */

static int fail(const struct cj_error *err)
{
	log_error(err);
	return MCP_FAILED;
}

/* The spawner is forked before anything of the client is read. */
static int serve(const struct mcp_options *o, struct cj_error *err)
{
	const struct worker_life life = { worker_main, zygote_keeper_main, keeper_main };
	struct spawner spawner = SPAWNER_NULL;
	struct mcp_setup setup;

	if (isatty(STDIN_FILENO))
		log_note("waiting for messages of an MCP client; see 'cejail mcp --help'");
	int rc = mcp_setup_read(&setup, o, err);
	if (rc == 0 && !setup.socket)
		rc = spawner_start(&spawner, &life, err);
	if (rc == 0)
		rc = mcp_server_run(o, &setup, &spawner, err);
	arena_fini(&setup.arena);
	return rc;
}

int main(int argc, char **argv)
{
	static const char *const none[] = { NULL };
	const char *const *args = argc > 2 ? (const char *const *)argv + 2 : none;
	struct mcp_options options;
	struct cj_error err = { 0 };
	unsigned open_streams = 0;

	if (fd_claim_stdio(&open_streams, &err) < 0)
		return fail(&err);
	(void)signal(SIGPIPE, SIG_IGN); /* write(2) fails with EPIPE instead; cannot fail */
	if (setenv("TZ", "UTC0", 1) < 0) {
		(void)!cj_fail(&err, errno, "set TZ");
		return fail(&err);
	}
	if (argc > 1 && strcmp(argv[1], "broker") == 0)
		return mcp_broker_main(args) < 0 ? MCP_FAILED : EXIT_SUCCESS;
	slog_limit(SLOG_WARNING); /* each call is no news on the client's screen */
	int rc = mcp_options_parse(args, (const char *const *)environ, &options, &err);
	bool prints = options.wants_help || options.host || options.checks;
	if (rc == 0 && !prints)
		rc = serve(&options, &err);
	else if (rc == 0 && options.wants_help)
		mcp_options_print_help();
	else if (rc == 0 && options.checks)
		rc = mcp_broker_print(options.tools_from, &err);
	else if (rc == 0)
		rc = mcp_options_print_config(&options, argc > 0 ? argv[0] : "cejail", &err);
	if (rc == 0 && prints)
		rc = fd_flush_stdout(&err);
	config_fini(&options.config);
	return rc < 0 ? fail(&err) : EXIT_SUCCESS;
}
