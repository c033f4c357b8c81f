/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_state - what the files of `cejail run` and `cejail shell` share.  Internal to them:
 *
 *	run_parse.c    command line and profile -> options, config, invocation
 *	run_request.c  the same with --request-fd: the program comes from there
 *	run.c          plan, then the run in a jail or at a service -> outcome
 *	run_report.c   outcome -> result, notes, exit status
 */
#pragma once

#include "profiles/plan/plan.h"
#include "runtime/run/options/options.h"
#include "runtime/front/cli/cli.h"
#include "runtime/run/report/delivery.h"
#include "runtime/front/client/remote.h"
#include "runtime/run/run_driver.h"
#include "runtime/run/request/request.h"

struct run {
	const struct cli *cli;
	bool use_shell;                 /* `cejail shell` */
	const struct remote_exec *exec; /* `cejail session exec`; NULL: another verb */
	struct options options;
	struct config config;
	struct invocation invocation;
	struct request request; /* of --request-fd */
	int stdin_fd;           /* the program's input, if the request has it; -1: the caller's */
	struct delivery delivery;
	struct plan plan;
	struct program program;
	struct run_driver driver; /* not used with --remote */
	int artifacts_fd;         /* the directory of --artifacts; -1: not given */
	const char *profile;
	bool is_answered; /* the verb has printed its answer: there is no result to report */
	struct json_writer *remote_result; /* of the service; NULL: write the result from outcome */
	struct outcome outcome;
};

/* Fills r->config, ->invocation and ->profile.  With --help it stops after the options. */
int run_parse(struct run *r, struct cj_error *err);

/* Starts r->outcome, with the id of r->config or a new one: for an error before the plan, too. */
int run_begin_outcome(struct run *r, struct cj_error *err);

/* Before anything is opened: is --request-fd a descriptor that can be read? */
int run_request_check(const struct config *c, struct cj_error *err);

/* What run_parse() does with --request-fd, once the options of delivery are applied. */
int run_request_read(struct run *r, struct cj_error *err);

/*
 * run_report - delivers the result, prints the notes.  Returns the exit status.
 * `is_complete`: false when output or artifacts were lost.
 */
int run_report(struct run *r, bool is_complete);
