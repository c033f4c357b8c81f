/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of the service: options, configuration, spawner, server.
 *
 * The spawner is forked before this process reads a token or opens a socket.  So every worker comes
 * from a small process that has none of them.
 */
#include "runtime/service/serve_main.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/log.h"
#include "runtime/service/config/review.h"
#include "runtime/service/server.h"
#include "runtime/service/config/setup.h"
#include "runtime/service/operations/slog.h"
#include "runtime/service/access/tokens.h"

#define SERVE_FAILED 125 /* as for every failure of cejail itself */

static int fail(const struct cj_error *err)
{
	slog_failure(SLOG_ERROR, "", err, "serve");
	return SERVE_FAILED;
}

static int print_help(void)
{
	serve_options_print_help();
	return fflush(stdout) == 0 ? EXIT_SUCCESS : SERVE_FAILED;
}

static void print_warning(const char *line)
{
	(void)printf("warning: %s\n", line); /* fflush(3) reports it */
}

static int check(struct service_config *config)
{
	struct cj_error err = { 0 };
	int rc = tokens_load(config, &err);

	if (rc == 0)
		rc = review_config(config, geteuid(), print_warning, &err);
	setup_free(&config);
	if (rc < 0)
		return fail(&err);
	(void)printf("the configuration is good\n");
	return fflush(stdout) == 0 ? EXIT_SUCCESS : SERVE_FAILED;
}

/* Takes the configuration. */
static int serve(const struct serve_options *options, struct service_config *config,
		 const struct worker_life *worker, struct cj_error *err)
{
	struct spawner spawner = SPAWNER_NULL;

	if (spawner_start(&spawner, worker, err) < 0 || tokens_load(config, err) < 0) {
		setup_free(&config);
		spawner_end(&spawner);
		return -err->code;
	}
	return server_run(options, config, &spawner, err);
}

int serve_main(int argc, char **argv, const struct worker_life *worker)
{
	struct serve_options options = { 0 };
	struct service_config *config = NULL;
	struct cj_error err = { 0 };
	unsigned open_streams = 0;

	slog_init();
	if (fd_claim_stdio(&open_streams, &err) < 0)
		return fail(&err);
	/* All times are UTC, so gmtime(3) does not need the host's time zone at every reply. */
	if (setenv("TZ", "UTC0", 1) < 0) {
		(void)!cj_fail(&err, errno, "set TZ");
		return fail(&err);
	}
	(void)signal(SIGPIPE, SIG_IGN); /* write(2) fails with EPIPE instead; cannot fail */
	if (serve_options_parse((const char *const *)argv + (argc > 0), &options, &err) < 0)
		return fail(&err);
	if (options.wants_help)
		return print_help();
	if (setup_read(&options, &config, &err) < 0)
		return fail(&err);
	if (options.check_only)
		return check(config);
	return serve(&options, config, worker, &err) < 0 ? fail(&err) : EXIT_SUCCESS;
}
