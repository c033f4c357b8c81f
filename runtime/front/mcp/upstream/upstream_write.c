/* SPDX-License-Identifier: Apache-2.0 */
/* The messages to a server. */
#include "runtime/front/mcp/upstream/upstream_parts.h"

#include <string.h>

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

	if (json_writer_take(w, &m.line, &m.size, &err) < 0)
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

static void end(struct upstream *u, struct json_writer *w, struct upstream_message m)
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
	end(u, w, (struct upstream_message){ .id = u->step_id, .method = method });
}

void upstream_write_initialized(struct upstream *u)
{
	static const char method[] = "notifications/initialized";
	auto_json_writer struct json_writer *w = json_writer_create(false);

	mcp_begin_notification(w, method);
	end(u, w, (struct upstream_message){ .method = method });
}

void upstream_write_discover(struct upstream *u)
{
	static const char method[] = "server/discover";
	auto_json_writer struct json_writer *w = json_writer_create(false);

	u->step_id = begin(u, w, method);
	put_meta(w);
	end(u, w, (struct upstream_message){ .id = u->step_id, .method = method });
}

void upstream_write_list(struct upstream *u, const char *cursor)
{
	static const char method[] = "tools/list";
	auto_json_writer struct json_writer *w = json_writer_create(false);

	u->step_id = begin(u, w, method);
	if (cursor)
		json_member_text(w, "cursor", cursor);
	if (u->era == MCP_ERA_MODERN)
		put_meta(w);
	end(u, w, (struct upstream_message){ .id = u->step_id, .method = method });
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
	end(u, w, (struct upstream_message){ .id = c->id, .method = method, .name = c->tool });
}

void upstream_write_cancelled(struct upstream *u, uint64_t id, const char *reason)
{
	static const char method[] = "notifications/cancelled";
	auto_json_writer struct json_writer *w = json_writer_create(false);

	mcp_begin_notification(w, method);
	json_member_u64(w, "requestId", id);
	json_member_text(w, "reason", reason);
	end(u, w, (struct upstream_message){ .method = method });
}

void upstream_write_answer(struct upstream *u, const struct mcp_message *m)
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
