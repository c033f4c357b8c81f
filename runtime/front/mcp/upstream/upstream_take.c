/* SPDX-License-Identifier: Apache-2.0 */
/* The messages from a server.  Nothing here closes the link. */
#include "runtime/front/mcp/upstream/upstream_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/text.h"

#define PEER_TEXT_MAX 200 /* bytes of a server's text in a sentence of ours */

/* A message and the memory that it is in. */
struct received {
	struct arena arena;
	struct mcp_message message;
	size_t size;
};

static void count_unasked(struct upstream *u)
{
	uint64_t now = clock_ms();

	if (now >= u->unasked_ms + UPSTREAM_UNASKED_MS) {
		u->unasked_ms = now;
		u->unasked = 0;
	}
	if (++u->unasked > UPSTREAM_UNASKED_MAX)
		upstream_fail(u, "sent more than %d messages that nobody asked for, in %d s",
			      UPSTREAM_UNASKED_MAX, UPSTREAM_UNASKED_MS / 1000);
}

static void take_notification(struct upstream *u, const struct mcp_message *m)
{
	count_unasked(u);
	if (strcmp(m->method, "notifications/tools/list_changed") == 0)
		u->is_stale = true;
}

static void take_request(struct upstream *u, const struct mcp_message *m)
{
	count_unasked(u);
	if (u->has_failed || u->link->is_busy(u)) /* an answer must not fill the memory */
		return;
	upstream_write_answer(u, m);
}

static const char *error_text(const struct mcp_message *m)
{
	const char *text = json_get_text(m->error, "message");
	return text ? text : "an error without a message";
}

static void begin_list(struct upstream *u)
{
	u->state = UPSTREAM_LISTING;
	upstream_list_begin(u);
	upstream_write_list(u, NULL);
}

static void end_list(struct upstream *u)
{
	struct cj_error err = { 0 };

	if (upstream_list_end(u, &err) < 0) {
		u->failure = err;
		u->has_failed = true;
		return;
	}
	u->state = UPSTREAM_READY;
	u->failure = (struct cj_error){ 0 };
}

/* A server without the capability has no tools. */
static void list_or_skip(struct upstream *u, const struct json_node *result)
{
	const struct json_node *all = json_get_typed(result, "capabilities", JSON_OBJECT);

	if (json_get_typed(all, "tools", JSON_OBJECT)) {
		begin_list(u);
		return;
	}
	upstream_list_begin(u);
	end_list(u);
}

static void take_initialized(struct upstream *u, const struct mcp_message *m)
{
	static const char *const known[] = { UPSTREAM_LEGACY, "2025-06-18", "2025-03-26",
					     "2024-11-05", NULL };
	const char *version = mcp_text(m->result, "protocolVersion");
	const char *const *at = known;

	if (m->error) { /* it may know the other era only */
		u->state = UPSTREAM_ASKING;
		u->era = MCP_ERA_MODERN;
		(void)snprintf(u->version, sizeof(u->version), "%s", UPSTREAM_MODERN);
		upstream_write_discover(u);
		return;
	}
	while (*at && strcmp(*at, version) != 0)
		at++;
	if (!*at) {
		upstream_fail(u,
			      "answered initialize with the version '%.32s', which cejail does "
			      "not know",
			      version);
		return;
	}
	(void)snprintf(u->version, sizeof(u->version), "%s", *at);
	upstream_write_initialized(u);
	list_or_skip(u, m->result);
}

static void take_discovered(struct upstream *u, const struct mcp_message *m)
{
	const struct json_node *all = json_get_typed(m->result, "supportedVersions", JSON_ARRAY);
	const struct json_node *n = all ? all->child : NULL;

	while (n && (n->type != JSON_STRING || strcmp(n->text, UPSTREAM_MODERN) != 0))
		n = n->next;
	if (m->error)
		upstream_fail(u, "refused initialize and server/discover: %.*s", PEER_TEXT_MAX,
			      error_text(m));
	else if (!n)
		upstream_fail(u, "speaks no version of MCP that cejail knows");
	else
		list_or_skip(u, m->result);
}

static void take_page(struct upstream *u, struct received *r)
{
	struct cj_error err = { 0 };
	const char *cursor = NULL;

	if (r->message.error) {
		upstream_fail(u, "refused tools/list: %.*s", PEER_TEXT_MAX,
			      error_text(&r->message));
		return;
	}
	if (upstream_list_add(u, &r->arena, r->size, r->message.result, &cursor, &err) < 0)
		upstream_fail(u, "%s", err.msg);
	else if (cursor)
		upstream_write_list(u, cursor);
	else
		end_list(u);
}

static void take_result(struct upstream_call *c, struct received *r)
{
	const struct mcp_message *m = &r->message;
	const char *error = NULL;
	const struct json_node *value = NULL;
	char text[CJ_ERROR_MSG_MAX];

	c->server->failures = 0;
	if (m->error) {
		(void)snprintf(text, sizeof(text), "the server '%s' refused the call: %.*s",
			       c->server->spec->name, PEER_TEXT_MAX, error_text(m));
		error = text; /* cut inside a character, it gets U+FFFD from the writer */
	} else {
		value = upstream_value_of(m->result, &r->arena, &error);
	}
	upstream_end_call(c, value, error);
}

static void take_step(struct upstream *u, struct received *r)
{
	u->step_id = 0;
	if (u->state == UPSTREAM_OPENING)
		take_initialized(u, &r->message);
	else if (u->state == UPSTREAM_ASKING)
		take_discovered(u, &r->message);
	else if (u->state == UPSTREAM_LISTING)
		take_page(u, r);
}

static struct upstream_call *find_call(struct upstream *u, uint64_t id)
{
	struct upstream_call *c;

	TAILQ_FOREACH(c, &u->calls, link)
		if (c->id == id)
			return c;
	return NULL;
}

/* An answer may come after its call has ended: then nobody waits for it. */
static void take_response(struct upstream *u, struct received *r)
{
	const struct mcp_id *id = &r->message.id;
	uint64_t number = 0;
	const char *end = id->kind == MCP_ID_NUMBER ? text_take_u64(id->text, &number) : NULL;

	if (id->kind == MCP_ID_NONE) {
		upstream_fail(u, "did not understand a message: %.*s", PEER_TEXT_MAX,
			      error_text(&r->message));
		return;
	}
	if (!end || *end || number == 0 || number > u->next_id) {
		upstream_fail(u, "answered the request '%.32s', which was never sent", id->text);
		return;
	}
	struct upstream_call *c = find_call(u, number);
	if (number == u->step_id)
		take_step(u, r);
	else if (c)
		take_result(c, r);
	else
		count_unasked(u);
}

void upstream_take(struct upstream *u, const char *text, size_t size)
{
	struct received r = { .size = size };
	struct mcp_fault fault;

	if (u->has_failed || u->state == UPSTREAM_OFF || u->state == UPSTREAM_CLOSING ||
	    strspn(text, " \t\r") == size)
		return;
	if (mcp_message_read(text, size, &r.arena, &r.message, &fault) < 0)
		upstream_fail(u, "sent a line that is no message of MCP: %.*s", PEER_TEXT_MAX,
			      fault.text);
	else if (r.message.kind == MCP_NOTIFICATION)
		take_notification(u, &r.message);
	else if (r.message.kind == MCP_REQUEST)
		take_request(u, &r.message);
	else
		take_response(u, &r);
	arena_fini(&r.arena);
}
