/* SPDX-License-Identifier: Apache-2.0 */
/* The messages to a server, and from it.  Nothing here closes the link. */
#include "runtime/front/mcp/upstream/upstream.h"

#include "runtime/base/clock.h"
#include "runtime/base/text.h"

#define META_CLIENT "io.modelcontextprotocol/clientInfo"

static void put_meta(struct json_writer *w)
{
	json_member_object(w, "_meta");
	json_member_text(w, MCP_META_VERSION, UPSTREAM_MODERN);
	json_member_object(w, MCP_META_CAPABILITIES);
	json_close_object(w);
	mcp_put_implementation(w, META_CLIENT);
	json_close_object(w);
}

static void send_text(struct upstream *u, struct json_writer *w, struct upstream_message m)
{
	struct cj_error err = { 0 };

	if (json_writer_take(w, &m.line, &err) < 0)
		upstream_fail(u, "was ended, because there is no memory for a message to it");
	else
		u->link->send(u, &m);
}

/* The request up to its parameters. */
static uint64_t begin(struct upstream *u, struct json_writer *w, const char *method)
{
	uint64_t id = ++u->next_id;

	json_open_object(w);
	json_member_text(w, "jsonrpc", "2.0");
	json_member_u64(w, "id", id);
	json_member_text(w, "method", method);
	json_member_object(w, "params");
	return id;
}

static void end_request(struct upstream *u, struct json_writer *w, struct upstream_message m)
{
	mcp_end(w);
	send_text(u, w, m);
}

void upstream_write_initialize(struct upstream *u)
{
	static const char method[] = "initialize";
	auto_json_writer struct json_writer *w = json_writer_create(false);

	u->step_id = begin(u, w, method);
	json_member_text(w, "protocolVersion", UPSTREAM_LEGACY);
	json_member_object(w, "capabilities");
	json_close_object(w);
	mcp_put_implementation(w, "clientInfo");
	end_request(u, w, (struct upstream_message){ .id = u->step_id, .method = method });
}

void upstream_write_list(struct upstream *u, const char *cursor)
{
	static const char method[] = "tools/list";
	auto_json_writer struct json_writer *w = json_writer_create(false);

	u->step_id = begin(u, w, method);
	json_member_given(w, "cursor", cursor);
	if (u->era == MCP_ERA_MODERN)
		put_meta(w);
	end_request(u, w, (struct upstream_message){ .id = u->step_id, .method = method });
}

void upstream_write_call(struct upstream *u, struct upstream_call *c)
{
	static const char method[] = "tools/call";
	auto_json_writer struct json_writer *w = json_writer_create(false);

	c->id = begin(u, w, method);
	json_member_text(w, "name", c->tool);
	json_put_key(w, "arguments");
	json_put_raw(w, c->arguments, c->size);
	if (u->era == MCP_ERA_MODERN)
		put_meta(w);
	end_request(u, w,
		    (struct upstream_message){ .id = c->id, .method = method, .name = c->tool });
}

void upstream_write_cancelled(struct upstream *u, uint64_t id, const char *reason)
{
	static const char method[] = "notifications/cancelled";
	auto_json_writer struct json_writer *w = json_writer_create(false);

	mcp_begin_notification(w, method);
	json_member_u64(w, "requestId", id);
	json_member_text(w, "reason", reason);
	end_request(u, w, (struct upstream_message){ .method = method });
}

/* The answer to a request of the server: ping has one, all others are refused. */
static void upstream_write_answer(struct upstream *u, const struct mcp_message *m)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct mcp_fault fault;

	if (strcmp(m->method, "ping") == 0) {
		mcp_begin_result(w, &m->id, MCP_ERA_LEGACY);
		mcp_end(w);
	} else {
		(void)!mcp_refuse(&fault, MCP_METHOD_NOT_FOUND,
				  "this client does not support the method: %.64s", m->method);
		mcp_put_fault(w, &m->id, &fault);
	}
	send_text(u, w, (struct upstream_message){ .method = NULL });
}

#define PEER_TEXT_MAX  200         /* bytes of a server's text in a sentence of ours */
#define ERROR_TEXT_MAX (16u << 10) /* of a tool, for the program */

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

/* A notification or a request. */
static void take_unasked(struct upstream *u, const struct mcp_message *m)
{
	count_unasked(u);
	if (m->kind == MCP_NOTIFICATION) {
		if (strcmp(m->method, "notifications/tools/list_changed") == 0)
			u->is_stale = true;
	} else if (!u->has_failed && !u->link->is_busy(u)) {
		upstream_write_answer(u, m); /* while it is busy, answers would fill the memory */
	}
}

static const char *error_text(const struct mcp_message *m)
{
	const char *text = json_get_text(m->error, "message");
	return text ? text : "an error without a message";
}

/* --- the list of tools: answers to tools/list, page by page, within limits ------------------ */

static void empty(struct arena *pages)
{
	for (size_t i = 0; i < UPSTREAM_PAGES_MAX; i++)
		arena_fini(&pages[i]);
}

void upstream_list_begin(struct upstream *u)
{
	empty(u->next_pages);
	u->npages = u->next_ntools = u->list_bytes = u->list_values = 0;
}

/* The depth of a message is limited. */
static size_t count_values(const struct json_node *node)
{
	size_t count = 1;

	for (const struct json_node *n = node->child; n; n = n->next)
		count += count_values(n);
	return count;
}

static int add_tool(struct upstream *u, const struct json_node *node, struct cj_error *err)
{
	const char *name = json_get_text(node, "name");

	if (!name || !*name || strlen(name) > TOOL_CHOICE_NAME_MAX)
		return cj_reject(err, "lists a tool whose name is no text of 1 to %d bytes",
				 TOOL_CHOICE_NAME_MAX);
	if (u->next_ntools == UPSTREAM_TOOLS_MAX)
		return cj_reject(err, "has more than %d tools", UPSTREAM_TOOLS_MAX);
	for (size_t i = 0; i < u->next_ntools; i++)
		if (strcmp(u->next_tools[i].name, name) == 0)
			return cj_reject(err, "lists the tool '%.128s' twice", name);
	struct upstream_tool *t = &u->next_tools[u->next_ntools++];
	*t = (struct upstream_tool){ .node = node, .name = name, .values = count_values(node) };
	u->list_values += t->values;
	if (u->list_values > UPSTREAM_LIST_VALUES)
		return cj_reject(err, "describes its tools with more than %d values",
				 UPSTREAM_LIST_VALUES);
	return 0;
}

/* One page; takes the arena.  *out_cursor: of the next page, NULL: it was the last. */
static int add_page(struct upstream *u, struct arena *a, size_t size,
		    const struct json_node *result, const char **out_cursor, struct cj_error *err)
{
	const struct json_node *tools = json_get_typed(result, "tools", JSON_ARRAY);

	if (u->npages == UPSTREAM_PAGES_MAX)
		return cj_reject(err, "lists its tools on more than %d pages", UPSTREAM_PAGES_MAX);
	arena_move(&u->next_pages[u->npages++], a);
	u->list_bytes += size;
	if (u->list_bytes > UPSTREAM_LIST_BYTES)
		return cj_reject(err, "describes its tools in more than %u bytes",
				 UPSTREAM_LIST_BYTES);
	if (!tools)
		return cj_reject(err, "answered tools/list without \"tools\"");
	for (const struct json_node *n = tools->child; n; n = n->next)
		if (add_tool(u, n, err) < 0)
			return -err->code;
	*out_cursor = json_get_text(result, "nextCursor");
	return 0;
}

/* The list that was read becomes the list in force. */
static void end_list(struct upstream *u)
{
	struct cj_error err = { 0 };

	if (tool_choice_make(u->spec, u->next_tools, u->next_ntools, &err) < 0) {
		u->failure = err;
		u->has_failed = true;
		return;
	}
	empty(u->pages);
	memcpy(u->pages, u->next_pages, sizeof(u->pages));
	memset(u->next_pages, 0, sizeof(u->next_pages));
	memcpy(u->tools, u->next_tools, sizeof(u->tools));
	u->ntools = u->next_ntools;
	u->is_listed = true;
	u->is_stale = false;
	u->generation++;
	u->state = UPSTREAM_READY;
	u->failure = (struct cj_error){ 0 };
}

/* A server without the capability has no tools. */
static void list_or_skip(struct upstream *u, const struct json_node *result)
{
	const struct json_node *all = json_get_typed(result, "capabilities", JSON_OBJECT);

	upstream_list_begin(u);
	if (json_get_typed(all, "tools", JSON_OBJECT)) {
		u->state = UPSTREAM_LISTING;
		upstream_write_list(u, NULL);
	} else {
		end_list(u);
	}
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
		static const char method[] = "server/discover";
		auto_json_writer struct json_writer *w = json_writer_create(false);
		u->step_id = begin(u, w, method);
		put_meta(w);
		end_request(u, w, (struct upstream_message){ .id = u->step_id, .method = method });
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
	static const char method[] = "notifications/initialized";
	auto_json_writer struct json_writer *w = json_writer_create(false);
	mcp_begin_notification(w, method);
	end_request(u, w, (struct upstream_message){ .method = method });
	list_or_skip(u, m->result);
}

static void take_discovered(struct upstream *u, const struct mcp_message *m)
{
	const struct json_node *n = json_get_items(m->result, "supportedVersions");

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
	if (add_page(u, &r->arena, r->size, r->message.result, &cursor, &err) < 0)
		upstream_fail(u, "%s", err.msg);
	else if (cursor)
		upstream_write_list(u, cursor);
	else
		end_list(u);
}

/* --- the value of a call: what its program gets -------------------------------------------- */

/* The text of a block; NULL: it has another type. */
static const char *text_of(const struct json_node *block)
{
	return strcmp(mcp_text(block, "type"), "text") == 0 ? json_get_text(block, "text") : NULL;
}

/* The texts of all blocks, a line each, cut. */
static const char *join_texts(const struct json_node *content, struct arena *a)
{
	char *joined = arena_alloc(a, ERROR_TEXT_MAX + 1);
	size_t size = 0;

	for (const struct json_node *n = content ? content->child : NULL; joined && n;
	     n = n->next) {
		const char *text = text_of(n);
		size_t room = ERROR_TEXT_MAX - size, more = text ? strlen(text) : 0;
		if (more == 0 || room < 2)
			continue;
		if (size > 0)
			joined[size++] = '\n';
		if (more > room - 1)
			more = utf8_prefix(text, room - 1);
		memcpy(joined + size, text, more);
		size += more;
	}
	return size > 0 ? joined : "the tool failed, and did not say why";
}

/*
 * The value of a result of tools/call: structuredContent, else the text of a single block, else the
 * blocks.  *out_error: the text of an error; NULL: none.  Owns: what is new is in the arena.
 */
static const struct json_node *value_of(const struct json_node *result, struct arena *a,
					const char **out_error)
{
	static const struct json_node nothing = { .type = JSON_NULL };
	const struct json_node *structured = mcp_member(result, "structuredContent");
	const struct json_node *content = json_get_typed(result, "content", JSON_ARRAY);
	const char *type = json_get_text(result, "resultType");

	*out_error = NULL;
	if (type && strcmp(type, "complete") != 0)
		*out_error = "the tool asks for something that only a person can answer; call "
			     "another tool";
	else if (json_is_true(result, "isError"))
		*out_error = join_texts(content, a);
	else if (structured && structured->type != JSON_NULL)
		return structured;
	else if (content && content->count == 1 && text_of(content->child))
		return json_get(content->child, "text");
	return *out_error ? NULL : content ? content : &nothing;
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
		value = value_of(m->result, &r->arena, &error);
	}
	upstream_end_call(c, value, error);
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
	if (number == u->step_id) {
		u->step_id = 0;
		if (u->state == UPSTREAM_OPENING)
			take_initialized(u, &r->message);
		else if (u->state == UPSTREAM_ASKING)
			take_discovered(u, &r->message);
		else if (u->state == UPSTREAM_LISTING)
			take_page(u, r);
		return;
	}
	struct upstream_call *c;
	TAILQ_FOREACH(c, &u->calls, link)
		if (c->id == number) {
			take_result(c, r);
			return;
		}
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
	else if (r.message.kind == MCP_RESPONSE)
		take_response(u, &r);
	else
		take_unasked(u, &r.message);
	arena_fini(&r.arena);
}
