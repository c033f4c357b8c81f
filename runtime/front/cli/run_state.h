/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_state - what the files of `cejail run` and `cejail shell` share.  Internal to them:
 *
 *	run_parse.c    command line and profile -> options, config, invocation
 *	run_request.c  the same with --request-fd: the program comes from there
 *	run.c          plan, the run in a jail or at a service -> outcome, result, exit status
 *	mcp_wrap.c     the same for `cejail mcp wrap`: its own option, its cache
 *	run_tools.c    the MCP servers of --tools-from
 *	terminal.c     the caller's terminal
 *	notes.c        outcome -> messages
 */
#pragma once

#include <termios.h>

#include "profiles/plan/plan.h"
#include "runtime/run/options/options.h"
#include "runtime/front/cli/cli.h"
#include "runtime/run/report/delivery.h"
#include "runtime/front/client/remote.h"
#include "runtime/run/run_driver.h"
#include "runtime/run/request/request.h"
#include "runtime/run/report/trace.h"

/* Of `cejail mcp wrap`, which runs the MCP server of somebody else. */
struct wrap {
	const char *cache;       /* --cache NAME|none; NULL: a name made from the command */
	const char *rootfs;      /* --rootfs; NULL: the profile's */
	const char *const *args; /* the others */
};

/* The process that starts the MCP servers of --tools-from, and calls their tools. */
struct tool_servers {
	int pidfd;    /* -1: there is none */
	int calls_fd; /* its calls; -1: it has been told to end */
};

struct cli_run {
	const struct cli *cli;
	struct wrap *wrap;              /* `cejail mcp wrap`; NULL: another verb */
	bool use_shell;                 /* `cejail shell` */
	const struct remote_exec *exec; /* `cejail session exec`; NULL: another verb */
	struct options options;
	struct config config;
	struct invocation invocation;
	struct request request; /* of --request-fd */
	int stdin_fd;           /* the program's input, if the request has it; -1: the caller's */
	struct delivery delivery;
	struct tool_servers servers;
	struct plan plan;
	struct program program;
	struct run_driver driver; /* not used with --remote */
	/* of --trace-file */
	struct trace trace;
	struct spans spans;
	struct line_file trace_file;
	int artifacts_fd; /* the directory of --artifacts; -1: not given */
	const char *profile;
	bool is_answered; /* the verb has printed its answer: there is no result to report */
	struct json_writer *remote_result; /* of the service; NULL: write the result from outcome */
	struct outcome outcome, setup;     /* of the program; of the command of --setup */
};

/* Fills r->config, ->invocation and ->profile.  With --help it stops after the options. */
int run_parse(struct cli_run *r, struct cj_error *err);

/* Starts r->outcome, with the id of r->config or a new one: for an error before the plan, too. */
int run_begin_outcome(struct cli_run *r, struct cj_error *err);

/* Before anything is opened: is --request-fd a descriptor that can be read? */
int run_request_check(const struct config *c, struct cj_error *err);

/* What run_parse() does with --request-fd, once the options of delivery are applied. */
int run_request_read(struct cli_run *r, struct cj_error *err);

/*
 * run_to_end - the whole verb: parses, runs, reports and releases.  Returns the exit status.
 *
 * The caller has set ->cli and what tells the verbs apart; all else is initialised here.
 */
int run_to_end(struct cli_run *r);

/* --- mcp_wrap.c ----------------------------------------------------------------------- */

/* Takes --cache, and leaves the other arguments in w->args. */
int wrap_take(struct wrap *w, const char *const *args, struct arena *a, struct cj_error *err);

/* Fails: an option that makes no sense for a server, or would use its streams. */
int wrap_check(const struct options *o, struct cj_error *err);

/* The profile of a command; never NULL. */
const char *wrap_profile(const char *command);

/* After the profile and before the options: no time limit, and the cache, which it creates. */
int wrap_apply(const struct wrap *w, const struct invocation *inv, struct config *c,
	       struct cj_error *err);

/* The command does not exist in the jail: how to show it the one of this host. */
void wrap_explain_missing(const char *command, const struct config *c,
			  const char *const *caller_env, struct cj_error *err);

void wrap_print_help(void);

/* --- run_tools.c ---------------------------------------------------------------------- */

/*
 * run_tools_start - start the servers of --tools-from, and put the list of their tools into
 * r->invocation.
 *
 * Fails: as the file, or the first server that fails, says.
 * Owns:  the caller calls run_tools_end(), also after a failure.
 */
int run_tools_start(struct cli_run *r, struct cj_error *err);

/* Waits until no server is left.  They begin to end when ->calls_fd is closed. */
void run_tools_end(struct tool_servers *s);

/* --- terminal.c ----------------------------------------------------------------------- */

/*
 * Raw mode for the caller's terminal while the jail has a terminal of its own.  Every key goes to
 * the program, Ctrl-C included.  auto_terminal restores the mode on every path.
 */
struct terminal {
	int fd; /* -1: nothing to restore */
	struct termios before;
};

#define auto_terminal __attribute__((cleanup(terminal_restore)))

/* Sets fd to raw mode; does nothing if it is not a terminal. */
void terminal_make_raw(struct terminal *t, int fd);
void terminal_restore(struct terminal *t);

/* --- notes.c: the messages on stderr after a run -------------------------------------- */

/*
 * notes_follow_output - call this before notes_print() if the program wrote to our stdout and
 * stderr.
 *
 * If the program's last line on stderr has no newline, our first message starts with one.
 */
void notes_follow_output(const struct outcome *o);

/*
 * notes_print - why the run ended, limits that it reached, what was denied.
 *
 * A message names the option that would change it.  A run that simply exits has none.  Warns of
 * nothing that the host lacks and `accepted` names: --accept-weaker.
 */
void notes_print(const struct outcome *o, const struct strings *accepted);
