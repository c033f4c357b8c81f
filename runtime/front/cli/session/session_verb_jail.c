/* SPDX-License-Identifier: Apache-2.0 */
/* `cejail session create`, `list`, `lease`, `network`, `end`, `socket`, `exec`, `wait`, `kill`. */
#include "runtime/front/cli/session/session_call.h"

#include <poll.h>

#include "profiles/profile.h"
#include "runtime/base/clock.h"
#include "runtime/base/text.h"
#include "runtime/front/client/remote_request.h"

#define RETRY_MS      5000 /* for a service that is about to stop, and for its successor */
#define RETRY_STEP_MS 50

static int write_request(struct session_call *c, struct json_writer *w, struct cj_error *err)
{
	const char *profile = options_find(&c->options, "profile");
	const bool *wanted = NULL;

	if (!profile) {
		cj_refuse(err, "a session needs a profile");
		return cj_hint(err,
			       "add --profile python, or another one of 'cejail profile list'");
	}
	if (strchr(profile, '/')) {
		cj_refuse(err,
			  "--profile: '%s' is a file, but a service uses only its own "
			  "profiles",
			  profile);
		return cj_hint(err, "write the name of a profile of the service");
	}
	if (remote_request_gather_settings(&c->config, &c->options, &wanted, err) < 0)
		return -err->code;
	json_open_object(w);
	json_member_text(w, "profile", profile);
	json_member_given(w, "lease", c->lease);
	json_member_given(w, "idle", c->idle);
	json_member_given(w, "context", c->context);
	profile_put(w, &c->config, wanted);
	json_close_object(w);
	return 0;
}

static int ask_for_session(struct session_call *c, struct json_writer *body,
			   const struct json_node **out, struct cj_error *err)
{
	uint64_t until_ms = clock_ms() + RETRY_MS;

	for (;;) {
		*err = (struct cj_error){ 0 };
		if (cli_session_start_service(c, err) < 0)
			return -err->code;
		if (cli_session_ask(c, "POST", SESSION_PARTS(NULL), NULL, body, out, err) == 0)
			return 0;
		/* A service that ends when it is idle may be about to end: the next attempt then
		 * starts another. */
		bool may_retry = !c->config.remote &&
				 (err->code == ESHUTDOWN || err->code == ECONNREFUSED ||
				  err->code == ENOENT || err->code == ECONNRESET);
		if (!may_retry || clock_ms() > until_ms)
			return -err->code;
		(void)poll(NULL, 0, RETRY_STEP_MS);
	}
}

int cli_session_create(struct session_call *c, struct cj_error *err)
{
	auto_json_writer struct json_writer *body = json_writer_create(false);
	const struct json_node *session = NULL;

	if (!body)
		return cj_fail(err, ENOMEM, "write the request");
	if (write_request(c, body, err) < 0 || ask_for_session(c, body, &session, err) < 0)
		return -err->code;
	const char *id = json_get_text(session, "id");
	if (!id)
		return cj_reject(err, "the service's answer is not a session");
	if (c->json)
		return cli_session_print_json(session, err);
	cli_session_print_text(id);
	(void)printf("\n");
	return 0;
}

struct column {
	const char *title, *key;
	int width; /* 0: the last one */
};

/* Numbers, too: json_node keeps them as text. */
static const char *text_of(const struct json_node *row, const char *key)
{
	const struct json_node *value = json_get(row, key);

	return value && (value->type == JSON_STRING || value->type == JSON_NUMBER) ? value->text
										   : "-";
}

static void print_row(const struct column *columns, size_t count, const struct json_node *row)
{
	for (size_t i = 0; i < count; i++) {
		const char *text = row ? text_of(row, columns[i].key) : columns[i].title;
		int room = columns[i].width - (int)strlen(text);
		cli_session_print_text(text);
		(void)printf("%*s", columns[i].width == 0 ? 0 : room > 0 ? room + 2 : 2, "");
	}
	(void)printf("\n");
}

static void print_rows(const struct column *columns, size_t count, const struct json_node *list)
{
	print_row(columns, count, NULL);
	for (const struct json_node *row = list->child; row; row = row->next)
		print_row(columns, count, row);
}

static const struct column session_columns[] = {
	{ "ID", "id", 26 },      { "PROFILE", "profile", 10 }, { "CONTEXT", "context", 7 },
	{ "STATE", "state", 8 }, { "REASON", "reason", 6 },    { "LEASE UNTIL", "lease_until", 0 },
};
static const struct column exec_columns[] = {
	{ "ID", "id", 26 },         { "STATE", "state", 8 },        { "STATUS", "status", 12 },
	{ "EXIT", "exit_code", 4 }, { "CREATED", "created_at", 0 },
};

int cli_session_list(struct session_call *c, struct cj_error *err)
{
	const bool of_session = c->count > 0;
	const char *const *parts = SESSION_PARTS(c->operands[0], of_session ? "execs" : NULL);
	const struct json_node *answer = NULL;

	if (cli_session_ask(c, "GET", parts, NULL, NULL, &answer, err) < 0)
		return -err->code;
	const struct json_node *list =
	    json_get_typed(answer, of_session ? "execs" : "sessions", JSON_ARRAY);
	if (!list)
		return cj_reject(err, "the service's answer is not a list");
	if (c->json)
		return cli_session_print_json(answer, err);
	if (of_session)
		print_rows(exec_columns, COUNT_OF(exec_columns), list);
	else
		print_rows(session_columns, COUNT_OF(session_columns), list);
	return 0;
}

int cli_session_lease(struct session_call *c, struct cj_error *err)
{
	auto_json_writer struct json_writer *body = cli_session_body("lease", c->operands[1], err);
	const char *const *parts = SESSION_PARTS(c->operands[0], "lease");
	const struct json_node *session = NULL;

	if (!body || cli_session_ask(c, "POST", parts, NULL, body, &session, err) < 0)
		return -err->code;
	if (c->json)
		return cli_session_print_json(session, err);
	cli_session_print_text(text_of(session, "lease_until"));
	(void)printf("\n");
	return 0;
}

static void print_targets(const char *prefix, const struct json_node *n)
{
	for (; n; n = n->next) {
		(void)printf("%s", prefix);
		cli_session_print_text(n->text ? n->text : "-");
		(void)printf("\n");
	}
}

static int print_network(const struct json_node *session, struct cj_error *err)
{
	const struct json_node *network = json_get_typed(session, "network", JSON_OBJECT);
	const struct json_node *allow = json_get_typed(network, "allow", JSON_ARRAY);

	if (!allow)
		return cj_reject(err, "the service's answer has no network");
	if (!allow->child) {
		cli_session_print_text(text_of(network, "mode"));
		(void)printf("\n");
	}
	print_targets("", allow->child);
	print_targets("!", json_get_items(network, "deny"));
	return 0;
}

int cli_session_network(struct session_call *c, struct cj_error *err)
{
	const char *const *parts = SESSION_PARTS(c->operands[0], "network");
	const struct json_node *session = NULL;
	auto_json_writer struct json_writer *body = json_writer_create(false);
	const bool has_mode = options_has(&c->options, "network");
	const bool is_none = c->none || (has_mode && c->config.network == NETWORK_NONE);
	const size_t allow = c->config.allow.count, deny = c->config.deny.count;
	int rc;

	if (!body)
		return cj_fail(err, ENOMEM, "write the request");
	if (is_none && allow + deny > 0)
		return cj_reject(err, "'--%s' and '--none' exclude each other",
				 allow > 0 ? "allow" : "deny");
	if (!is_none && !has_mode && allow == 0 && deny > 0) {
		cj_refuse(err, "'--deny' alone does not say what is open");
		return cj_hint(err, "add --network public, or --allow as before");
	}
	if (is_none || has_mode || allow > 0) {
		json_open_object(body);
		json_member_text(body, "mode",
				 network_mode_names[is_none ? NETWORK_NONE : NETWORK_PUBLIC]);
		if (allow > 0)
			json_member_texts(body, "allow", c->config.allow.items, allow);
		if (deny > 0)
			json_member_texts(body, "deny", c->config.deny.items, deny);
		json_close_object(body);
		rc = cli_session_ask(c, "PUT", parts, NULL, body, &session, err);
	} else {
		rc = cli_session_ask(c, "GET", SESSION_PARTS(c->operands[0]), NULL, NULL, &session,
				     err);
	}
	if (rc < 0)
		return rc;
	return c->json ? cli_session_print_json(session, err) : print_network(session, err);
}

/* All are tried; the first failure is reported at the end. */
int cli_session_end(struct session_call *c, struct cj_error *err)
{
	for (size_t i = 0; i < c->count; i++) {
		const char *id = c->operands[i];
		const struct json_node *ended = NULL;
		struct cj_error failure = { 0 };
		int rc = cli_session_ask(c, "DELETE", SESSION_PARTS(id), NULL, NULL,
					 c->json ? &ended : NULL, &failure);
		if (rc == 0 && c->json)
			rc = cli_session_print_json(ended, &failure);
		if (rc < 0 && err->code == 0) {
			*err = failure;
			(void)!cj_wrap(err, "end session '%s'", id);
		}
	}
	return -err->code;
}

int cli_session_socket(struct session_call *c, struct cj_error *err)
{
	(void)err;
	(void)printf("%s\n", c->socket);
	return 0;
}

/* Programs: a program in a session is a run (../run.c). */

static int run(struct session_call *c, const struct remote_exec *exec)
{
	struct cli cli = *c->cli;

	cli.args = c->rest.args;
	return run_in_session(&cli, exec);
}

int cli_session_exec(struct session_call *c)
{
	const struct remote_exec exec = {
		.kind = c->detach ? REMOTE_EXEC_DETACHED : REMOTE_EXEC_STREAMED,
		.session = c->operands[0],
		.interrupts = c->interrupt,
	};

	return run(c, &exec);
}

int cli_session_wait(struct session_call *c)
{
	const struct remote_exec exec = {
		.kind = REMOTE_EXEC_AWAITED,
		.session = c->operands[0],
		.id = c->operands[1],
	};

	return run(c, &exec);
}

int cli_session_kill(struct session_call *c, struct cj_error *err)
{
	const char *id = c->operands[0], *exec = c->operands[1], *name = c->signal;

	if (!name)
		return cli_session_ask(c, "DELETE", SESSION_PARTS(id, "execs", exec), NULL, NULL,
				       NULL, err);
	name += text_begins_with(name, "SIG") ? 3 : 0;
	auto_json_writer struct json_writer *body = cli_session_body("signal", name, err);
	if (!body)
		return -err->code;
	return cli_session_ask(c, "POST", SESSION_PARTS(id, "execs", exec, "signal"), NULL, body,
			       NULL, err);
}
