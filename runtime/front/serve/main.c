/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libexec/cejail/serve: the service, as `cejail serve` executes it.  Parse, plan, run.
 *
 * The spawner is forked before there is a secret in this memory, a socket or a library at work; so
 * every worker comes from a small process that has none of them.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/log.h"
#include "runtime/front/serve/worker/fake.h"
#include "runtime/front/serve/config/review.h"
#include "runtime/front/serve/server.h"
#include "runtime/front/serve/config/setup.h"
#include "runtime/front/serve/operations/slog.h"
#include "runtime/front/serve/access/tokens.h"

#define SERVE_FAILED 125 /* as everything that cejail gets wrong */

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
	(void)printf("warning: %s\n", line); /* fflush(3) tells */
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
		 const struct fake_file *fake, struct cj_error *err)
{
	struct spawner spawner = SPAWNER_NULL;

	spawner.fake = fake;
	if (spawner_start(&spawner, err) < 0 || tokens_load(config, err) < 0) {
		setup_free(&config);
		spawner_end(&spawner);
		return -err->code;
	}
	return server_run(options, config, &spawner, err);
}

/* Takes the configuration. */
static int check_or_serve(const struct serve_options *options, struct service_config *config)
{
	struct fake_file fake = { 0 };
	struct cj_error err = { 0 };

	if (options->fake && fake_open(options->fake, &fake, &err) < 0) {
		setup_free(&config);
		return fail(&err);
	}
	int status = EXIT_SUCCESS;
	if (options->check_only)
		status = check(config);
	else if (serve(options, config, options->fake ? &fake : NULL, &err) < 0)
		status = fail(&err);
	arena_fini(&fake.arena);
	return status;
}

int main(int argc, char **argv)
{
	struct serve_options options = { 0 };
	struct service_config *config = NULL;
	struct cj_error err = { 0 };
	unsigned open_streams = 0;

	slog_init();
	if (fd_claim_stdio(&open_streams, &err) < 0)
		return fail(&err);
	/* All times are UTC: gmtime(3) needn't look for the host's zone at every reply. */
	if (setenv("TZ", "UTC0", 1) < 0) {
		(void)!cj_fail(&err, errno, "set TZ");
		return fail(&err);
	}
	(void)signal(SIGPIPE, SIG_IGN); /* a caller that went away is an EPIPE; cannot fail */
	if (serve_options_parse((const char *const *)argv + (argc > 0), &options, &err) < 0)
		return fail(&err);
	if (options.wants_help)
		return print_help();
	if (setup_read(&options, &config, &err) < 0)
		return fail(&err);
	return check_or_serve(&options, config);
}
