/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli - what the verbs of the command line share.
 *
 * A verb is a row of verbs[] in main.c and a function below.  The function receives the arguments
 * after the verb and returns the exit status: CLI_FAILED for each failure of cejail itself.
 */
#pragma once

#include "runtime/base/error.h"

#define CLI_FAILED 125

#define CLI_STDOUT_BIT (1u << 1)

struct cli {
	const char *verb;           /* as in cejail(1) */
	const char *const *args;    /* after the verb; NULL-terminated */
	const char *const *environ; /* the caller's */
	unsigned open_streams;      /* of fd_claim_stdio() */
};

int run_verb(const struct cli *cli); /* and "shell" */
int profile_verb(const struct cli *cli);
int doctor_verb(const struct cli *cli);
int program_verb(const struct cli *cli); /* executes another program of ours */
int mcp_verb(const struct cli *cli);     /* the same, but for "mcp wrap" */
int cli_session(const struct cli *cli);
int report_verb(const struct cli *cli);
int ps_verb(const struct cli *cli);
int kill_verb(const struct cli *cli);
int gc_verb(const struct cli *cli);

/* `cejail session exec` and `wait`: a run in a session of a service.  cli->args are the arguments
 * without the session.  NULL: a run of its own. */
struct remote_exec;
int run_in_session(const struct cli *cli, const struct remote_exec *exec);

/* session_options.c: which options of `cejail run` a verb of `cejail session` takes. */
struct options;
struct setting;
bool session_options_of_create(const struct setting *s);
bool session_options_of_exec(const struct setting *s);
bool session_options_of_wait(const struct setting *s);
bool session_options_of_network(const struct setting *s);
bool session_options_of_verb(const struct setting *s); /* any other */
/* Fails: an option that `exec` or `wait` does not take. */
int session_options_check(const struct options *o, const struct remote_exec *exec,
			  struct cj_error *err);

/* Is this argument --help or -h? */
bool cli_is_help(const char *arg);

/* Prints the error; returns CLI_FAILED. */
int cli_fail(const struct cj_error *err);

/* Fails: the caller closed standard output, so the answer would be lost. */
int cli_need_stdout(const struct cli *cli, struct cj_error *err);

/*
 * cli_finish - flush stdout.
 *
 * Returns: `status`, or CLI_FAILED after an error on stderr when not all could be written.
 */
int cli_finish(int status);

/* Checks the arguments of a verb that takes only `flag`, or none (NULL). */
int cli_take_only(const struct cli *cli, const char *flag, bool *out_given, struct cj_error *err);
