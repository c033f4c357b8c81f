/* SPDX-License-Identifier: Apache-2.0 */
/* `cejail session`: sessions at a service, cejail-session(1).  A table of verbs. */
#include <ctype.h>

#include "runtime/base/log.h"
#include "runtime/base/text.h"
#include "runtime/front/cli/session/session_call.h"

#define VERB_NAME_MAX 32

/* clang-format off */
#define HELP_ROW { "help", 'h', NULL, "this text", offsetof(struct session_call, help) }
/* clang-format on */

static const struct own_option plain_rows[] = { HELP_ROW };
static const struct own_option create_rows[] = {
	{ "lease", 0, "DUR",
	  "end the session after this time, unless 'lease' renews it (default: 5m)",
	  offsetof(struct session_call, lease) },
	{ "idle", 0, "DUR", "end the session when nothing has used it for this time",
	  offsetof(struct session_call, idle) },
	{ "context", 0, "none|repl", "repl: one interpreter runs all code, and keeps variables",
	  offsetof(struct session_call, context) },
	HELP_ROW,
};
static const struct own_option exec_rows[] = {
	{ "detach", 'd', NULL, "print the id of the exec, and do not wait for its end; see wait",
	  offsetof(struct session_call, detach) },
	{ "interrupt", 0, NULL, "at the timeout, send SIGINT, and kill 2 seconds later",
	  offsetof(struct session_call, interrupt) },
	HELP_ROW,
};
static const struct own_option network_rows[] = {
	{ "none", 0, NULL, "open nothing: the same as --network none",
	  offsetof(struct session_call, none) },
	HELP_ROW,
};
static const struct own_option kill_rows[] = {
	{ "signal", 's', "SIGNAL", "send this signal, such as INT, instead of cancelling",
	  offsetof(struct session_call, signal) },
	HELP_ROW,
};

#define ROWS(table)  .rows = (table), .nrows = COUNT_OF(table)
#define ANY_OPERANDS SIZE_MAX
#define PLAIN        cli_session_find_service, session_options_of_verb, ROWS(plain_rows)

/* clang-format off */
static const struct session_verb {
	const char *name, *usage, *help;
	size_t least, most; /* operands */
	int (*run)(struct session_call *c, struct cj_error *err);
	int (*service)(struct session_call *c, struct cj_error *err); /* before `run`; or NULL */
	bool (*takes)(const struct setting *s);
	const struct own_option *rows;
	size_t nrows;
	int (*report)(struct session_call *c); /* instead of `run`; returns the exit status */
} verbs[] = {
	{ "create", "--profile NAME [OPTION...]", "create a session, and print its id", 0, 0,
	  cli_session_create, NULL, session_options_of_create, ROWS(create_rows) },
	{ "exec", "[OPTION...] ID FILE|-|-c CODE|-- COMMAND [ARG...]",
	  "run a program in a session", 1, ANY_OPERANDS,
	  NULL, NULL, session_options_of_exec, ROWS(exec_rows), cli_session_exec },
	{ "wait", "[OPTION...] ID EXEC", "wait for a detached exec, and print its output", 2, 2,
	  NULL, NULL, session_options_of_wait, ROWS(plain_rows), cli_session_wait },
	{ "kill", "[OPTION...] ID EXEC", "cancel an exec, or send it a signal", 2, 2,
	  cli_session_kill, cli_session_find_service, session_options_of_verb, ROWS(kill_rows) },
	{ "put", "[OPTION...] ID SRC|- [DST]", "copy a file or a directory into a session", 2, 3,
	  cli_session_put, PLAIN },
	{ "get", "[OPTION...] ID SRC [DST|-]", "copy a file out of a session", 2, 3,
	  cli_session_get, PLAIN },
	{ "ls", "[OPTION...] ID [DIR]", "list the files of a session", 1, 2,
	  cli_session_ls, PLAIN },
	{ "stat", "[OPTION...] ID PATH", "show a file or a directory of a session", 2, 2,
	  cli_session_stat, PLAIN },
	{ "mkdir", "[OPTION...] ID DIR...", "make directories in a session", 2, ANY_OPERANDS,
	  cli_session_mkdir, PLAIN },
	{ "mv", "[OPTION...] ID PATH NEWPATH", "rename a file or a directory of a session", 3, 3,
	  cli_session_mv, PLAIN },
	{ "watch", "[OPTION...] ID [DIR]", "print the changes in a directory of a session", 1, 2,
	  cli_session_watch, PLAIN },
	{ "rm", "[OPTION...] ID PATH...", "remove files and directories of a session", 2, ANY_OPERANDS,
	  cli_session_rm, PLAIN },
	{ "list", "[OPTION...] [ID]", "list your sessions, or the execs of session ID", 0, 1,
	  cli_session_list, PLAIN },
	{ "lease", "[OPTION...] ID DUR", "let a session end this long from now", 2, 2,
	  cli_session_lease, PLAIN },
	{ "network", "[OPTION...] ID", "change what the network of a session opens, or show it", 1, 1,
	  cli_session_network, cli_session_find_service, session_options_of_network, ROWS(network_rows) },
	{ "end", "[OPTION...] ID...", "end sessions and everything in them", 1, ANY_OPERANDS,
	  cli_session_end, PLAIN },
	{ "socket", "[OPTION...]", "print the path of the service's socket; start one if none listens", 0, 0,
	  cli_session_socket, cli_session_start_service, session_options_of_verb, ROWS(plain_rows) },
};
/* clang-format on */

static int take_options(const struct session_verb *v, struct session_call *c,
			const char *const **next, struct cj_error *err)
{
	const struct own_options own = {
		.verb = c->verb, .rows = v->rows, .count = v->nrows, .out = c
	};

	return own_options_take(&own, next, &c->rest, err);
}

/* A program's arguments begin after the session: they are left for the options of `run`. */
static int take_program(const struct session_verb *v, struct session_call *c,
			const char *const *next, struct cj_error *err)
{
	if (take_options(v, c, &next, err) < 0)
		return -err->code;
	while (*next)
		c->rest.args[c->rest.count++] = *next++;
	return 0;
}

/* Options may stand between the operands. */
static int take_arguments(const struct session_verb *v, struct session_call *c,
			  const char *const *next, struct cj_error *err)
{
	bool only_operands = false;

	while (*next) {
		if (!only_operands && take_options(v, c, &next, err) < 0)
			return -err->code;
		if (*next && !only_operands && strcmp(*next, "--") == 0) {
			if (v->run == NULL && c->count == 0)
				break; /* `exec -- COMMAND`: the session is missing */
			only_operands = true;
			next++;
			continue;
		}
		if (*next)
			c->operands[c->count++] = *next++;
		if (v->report == cli_session_exec && c->count == 1)
			return take_program(v, c, next, err);
	}
	return 0;
}

static int read_options(const struct session_verb *v, struct session_call *c, struct cj_error *err)
{
	struct config *config = &c->config;

	if (options_scan(c->verb, c->rest.args, &config->arena, &c->options, err) < 0)
		return -err->code;
	if (options_check(&c->options, v->takes, c->verb, err) < 0 ||
	    options_expand(&c->options, c->cli->environ, &config->arena, err) < 0 ||
	    options_apply_delivery(&c->options, config, err) < 0 ||
	    options_apply_rest(&c->options, config, err) < 0)
		return -err->code;
	log_set_level(config->quiet ? LOG_QUIET : config->verbose ? LOG_VERBOSE : LOG_NORMAL);
	c->json = options_has(&c->options, "json");
	if (c->json && options_find(&c->options, "json"))
		return cj_reject(err, "'--json' takes no FILE here");
	return cli_need_stdout(c->cli, err);
}

static int call(const struct session_verb *v, struct session_call *c)
{
	const char *const *args = c->cli->args + 1;
	struct own_rest operands = { 0 };
	struct cj_error err = { 0 };

	if (own_rest_init(&c->rest, args, &c->config.arena, &err) < 0 ||
	    own_rest_init(&operands, args, &c->config.arena, &err) < 0)
		return cli_fail(&err);
	c->operands = operands.args;
	if (take_arguments(v, c, args, &err) < 0)
		return cli_fail(&err);
	if (c->help) {
		(void)printf("Usage: cejail session %s %s\n\n%c%s.\n\n", v->name, v->usage,
			     toupper((unsigned char)v->help[0]), v->help + 1);
		own_options_print_help(v->rows, v->nrows);
		(void)printf("\nOptions of 'cejail run' that are valid here:\n");
		options_print_help(v->takes);
		(void)printf("\nThe manual is cejail-session(1).\n");
		return cli_finish(0);
	}
	if (c->count < v->least || c->count > v->most) {
		if (c->count < v->least)
			cj_refuse(&err, "arguments are missing: cejail %s %s", c->verb, v->usage);
		else
			cj_refuse(&err, "unexpected argument '%s'", c->operands[v->most]);
		cj_hint(&err, "see 'cejail %s --help'", c->verb);
		return cli_fail(&err);
	}
	if (v->report)
		return v->report(c);
	if (read_options(v, c, &err) < 0 || (v->service && v->service(c, &err) < 0) ||
	    v->run(c, &err) < 0)
		return cli_fail(&err);
	return cli_finish(0);
}

static int reject_verb(const char *name)
{
	const char *names[COUNT_OF(verbs) + 1] = { NULL };
	struct cj_error err = { 0 };

	for (size_t i = 0; i < COUNT_OF(verbs); i++)
		names[i] = verbs[i].name;
	const char *near = text_nearest(name, names);
	cj_refuse(&err, "unknown verb '%s' of 'cejail session'", name);
	if (near)
		cj_hint(&err, "did you mean '%s'?", near);
	else
		cj_hint(&err, "see 'cejail session --help'");
	return cli_fail(&err);
}

int cli_session(const struct cli *cli)
{
	const char *name = cli->args[0];
	char text[VERB_NAME_MAX];
	struct cj_error err = { 0 };

	if (!name) {
		cj_refuse(&err, "a verb is missing");
		cj_hint(&err, "see 'cejail session --help'");
		return cli_fail(&err);
	}
	if (cli_is_help(name)) {
		(void)printf(
		    "Usage: cejail session VERB [OPTION...] [ARG...]\n\n"
		    "A session is a jail that runs several programs. Its files and background processes\n"
		    "stay until it ends.\n\n");
		for (size_t i = 0; i < COUNT_OF(verbs); i++)
			(void)printf("  %-7s %s\n", verbs[i].name, verbs[i].help);
		(void)printf(
		    "\n'cejail session VERB --help' prints the options of a verb. The manual is\n"
		    "cejail-session(1).\n");
		return cli_finish(0);
	}
	for (size_t i = 0; i < COUNT_OF(verbs); i++) {
		if (strcmp(verbs[i].name, name) != 0)
			continue;
		struct session_call c = { .cli = cli, .verb = text };
		(void)snprintf(text, sizeof(text), "session %s", name);
		config_init(&c.config);
		int status = call(&verbs[i], &c);
		config_fini(&c.config);
		return status;
	}
	return reject_verb(name);
}
