/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_call - one call of `cejail session VERB`: its arguments, and requests to the service.
 *
 * Each verb is a function of session_verbs.h.  The files of this folder share this structure.
 */
#pragma once

#include "profiles/config.h"
#include "runtime/run/options/options.h"
#include "runtime/run/options/option_syntax.h"
#include "runtime/front/cli/cli.h"
#include "runtime/front/client/remote_link.h"

struct session_call {
	const struct cli *cli;
	const char *verb; /* "session put": for messages */
	struct config config;
	struct options options; /* those of `run` */
	struct own_rest rest;   /* their arguments */
	const char **operands;  /* NULL-terminated */
	size_t count;           /* of them */
	const char *socket;     /* of the service */

	/* own options */
	const char *lease, *idle, *context, *signal;
	bool detach, interrupt, help;
};

/* Finds the service of this user, or of the system: --remote.  Fails: no service listens. */
int session_find_service(struct session_call *c, struct cj_error *err);

/* Writes "/v1/sessions", and the parts after it, each behind a '/'.  `parts` ends with NULL. */
int session_url(char url[static REMOTE_URL_MAX], const char *const *parts, struct cj_error *err);

/*
 * session_ask - one request; the answer, a JSON object, lives in the arena of the call.
 *
 * `body`: NULL, or a writer with the whole body.
 */
int session_ask(struct session_call *c, const char *method, const char *url,
		struct json_writer *body, const struct json_node **out, struct cj_error *err);

/* The same, where the answer is not needed. */
int session_tell(struct session_call *c, const char *method, const char *url,
		 struct json_writer *body, struct cj_error *err);

/* Was --json given?  Fails: with a FILE. */
int session_wants_json(const struct session_call *c, bool *out, struct cj_error *err);

/* Prints the service's answer and a newline. */
int session_print_json(const struct json_node *node, struct cj_error *err);

/* Prints a text that comes from inside a jail or from a service; control characters as \xNN. */
void session_print_text(const char *text);
