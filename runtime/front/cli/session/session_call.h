/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_call - one call of `cejail session VERB`: its arguments, its verbs, and requests to the
 * service.  The internal header of this folder; session.c has the table of verbs.
 *
 * The jail belongs to the session: `create` takes the options that describe it.  `exec` takes those
 * that describe the program, its input and the delivery of its result.
 */
#pragma once

#include "profiles/config.h"
#include "runtime/front/cli/cli.h"
#include "runtime/front/client/remote.h"
#include "runtime/front/client/remote_link.h"
#include "runtime/run/options/option_syntax.h"
#include "runtime/run/options/options.h"

struct session_call {
	const struct cli *cli;
	const char *verb; /* "session put": for messages */
	struct config config;
	struct options options; /* those of `run` */
	struct own_rest rest;   /* their arguments */
	const char **operands;  /* NULL-terminated */
	size_t count;           /* of them */
	const char *socket;     /* of the service */
	bool json;              /* print the service's answer */

	/* own options */
	const char *lease, *idle, *context, *signal;
	bool detach, interrupt, none, help;
};

/* --- session_service.c ----------------------------------------------------------------------- */

/* Sets c->socket: --remote, or the service of this user or of the system.  Fails: none listens. */
int cli_session_find_service(struct session_call *c, struct cj_error *err);

/*
 * cli_session_start_service - the service for a new session, started if none listens; sets
 * c->socket.
 *
 * In this order: the socket of --remote; a service of this user; the system's service, if this user
 * may connect; systemd's socket unit of this user; a process of our own,
 * `cejail serve --until-idle`, which outlives us and ends after its last session.
 * Fails: --remote names a socket where none listens; none can be started.
 */
int cli_session_start_service(struct session_call *c, struct cj_error *err);

/* What follows "/v1/sessions" in a URL, each part behind a '/'. */
#define SESSION_PARTS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* Writes the URL of the parts, and the query, which is not encoded; NULL: none. */
int cli_session_url(char url[static REMOTE_URL_MAX], const char *const *parts, const char *query,
		    struct cj_error *err);

/* The body {KEY:TEXT}, or {KEY:true} with text NULL.  NULL: no memory, and *err says so. */
struct json_writer *cli_session_body(const char *key, const char *text, struct cj_error *err);

/*
 * cli_session_ask - one request; the answer, a JSON object, lives in the arena of the call.
 *
 * `body`: NULL, or a writer with the whole body.  out NULL: the answer is not needed.
 */
int cli_session_ask(struct session_call *c, const char *method, const char *const *parts,
		    const char *query, struct json_writer *body, const struct json_node **out,
		    struct cj_error *err);

/* Prints the service's answer and a newline. */
int cli_session_print_json(const struct json_node *node, struct cj_error *err);

/* Prints a text that comes from inside a jail or from a service; control characters as \xNN. */
void cli_session_print_text(const char *text);

/* --- the verbs ------------------------------------------------------------------------------- */

/* Each returns 0, or a negative errno with *err.  `exec` and `wait` report by themselves and return
 * an exit status. */

/* session_verb_jail.c, and what concerns execs */
int cli_session_create(struct session_call *c, struct cj_error *err);
int cli_session_list(struct session_call *c, struct cj_error *err);
int cli_session_lease(struct session_call *c, struct cj_error *err);
int cli_session_network(struct session_call *c, struct cj_error *err);
int cli_session_end(struct session_call *c, struct cj_error *err);
int cli_session_socket(struct session_call *c, struct cj_error *err);
int cli_session_exec(struct session_call *c);
int cli_session_wait(struct session_call *c);
int cli_session_kill(struct session_call *c, struct cj_error *err);

/* session_verb_files.c */
int cli_session_put(struct session_call *c, struct cj_error *err);
int cli_session_get(struct session_call *c, struct cj_error *err);
int cli_session_ls(struct session_call *c, struct cj_error *err);
int cli_session_stat(struct session_call *c, struct cj_error *err);
int cli_session_mkdir(struct session_call *c, struct cj_error *err);
int cli_session_mv(struct session_call *c, struct cj_error *err);
int cli_session_watch(struct session_call *c, struct cj_error *err);
int cli_session_rm(struct session_call *c, struct cj_error *err);
