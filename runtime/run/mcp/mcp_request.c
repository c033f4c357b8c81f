/* SPDX-License-Identifier: Apache-2.0 */
/* Calls as requests. */
#include "runtime/run/mcp/mcp_request.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/run/mcp/mcp_text.h"

void mcp_request_fini(struct mcp_request *r)
{
	cj_free(&r->body);
}

/* --- requests with a body of JSON ------------------------------------------------------ */

static int keep_body(struct mcp_request *out, struct json_writer *w, struct cj_error *err)
{
	const char *text = NULL;

	if (json_writer_take(w, &text, &out->size, err) < 0)
		return -err->code;
	out->body = strndup(text, out->size);
	return out->body ? 0 : cj_fail(err, ENOMEM, "read the arguments");
}

static int write_program(struct mcp_request *out, const struct mcp_tool *tool,
			 const struct mcp_given *given, const struct json_node *arguments,
			 const char *run_id, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct mcp_plan plan = { .run_id = run_id };

	if (!w)
		return cj_fail(err, ENOMEM, "read the arguments");
	if (mcp_arguments_write(w, tool, given, arguments, &plan, err) < 0)
		return -err->code;
	if (tool->kind == MCP_TOOL_SESSION_CREATE)
		out->operation = MCP_CREATE_SESSION;
	else
		out->operation = plan.session[0] ? MCP_EXEC_PROGRAM : MCP_RUN_PROGRAM;
	(void)snprintf(out->session, sizeof(out->session), "%s", plan.session);
	return keep_body(out, w, err);
}

/* --- files and the end of a session ------------------------------------------------------ */

/* The arguments of one of these tools. */
struct file_call {
	struct mcp_request *to;
	const char *path, *text, *base64;
};

static int take_text(const struct json_node *node, const char **out, struct cj_error *err)
{
	if (node->type != JSON_STRING)
		return cj_reject(err, "'%s' must be a string", node->key);
	*out = node->text;
	return 0;
}

static int take_session(struct file_call *c, const struct json_node *node, struct cj_error *err)
{
	return mcp_arguments_take_session(node, c->to->session, err);
}

static int take_path(struct file_call *c, const struct json_node *node, struct cj_error *err)
{
	return take_text(node, &c->path, err);
}

static int take_content(struct file_call *c, const struct json_node *node, struct cj_error *err)
{
	return take_text(node, &c->text, err);
}

static int take_base64(struct file_call *c, const struct json_node *node, struct cj_error *err)
{
	return take_text(node, &c->base64, err);
}

static int take_number(const struct json_node *node, uint64_t min, uint64_t max, uint64_t *out,
		       struct cj_error *err)
{
	struct cj_error ignored = { 0 };

	if (node->type == JSON_NUMBER && parse_u64(node->text, min, max, out, &ignored) == 0)
		return 0;
	return cj_reject(err, "'%s' must be an integer from %" PRIu64 " to %" PRIu64, node->key,
			 min, max);
}

static int take_offset(struct file_call *c, const struct json_node *node, struct cj_error *err)
{
	return take_number(node, 0, INT64_MAX, &c->to->offset, err);
}

static int take_length(struct file_call *c, const struct json_node *node, struct cj_error *err)
{
	return take_number(node, 1, MCP_IMAGE_MAX, &c->to->length, err);
}

static int take_executable(struct file_call *c, const struct json_node *node, struct cj_error *err)
{
	if (node->type != JSON_BOOL)
		return cj_reject(err, "'%s' must be true or false", node->key);
	c->to->is_executable = node->boolean;
	return 0;
}

#define PUT  (1u << MCP_TOOL_SESSION_PUT_FILE)
#define GET  (1u << MCP_TOOL_SESSION_GET_FILE)
#define LIST (1u << MCP_TOOL_SESSION_LIST_FILES)
#define END  (1u << MCP_TOOL_SESSION_END)

static const struct argument {
	const char *name;
	int (*take)(struct file_call *c, const struct json_node *node, struct cj_error *err);
	unsigned kinds, required;
} known[] = {
	{ "session", take_session, PUT | GET | LIST | END, PUT | GET | LIST | END },
	{ "path", take_path, PUT | GET | LIST, PUT | GET },
	{ "offset", take_offset, GET, 0 },
	{ "length", take_length, GET, 0 },
	{ "text", take_content, PUT, 0 },
	{ "base64", take_base64, PUT, 0 },
	{ "executable", take_executable, PUT, 0 },
};
#define KNOWN (sizeof(known) / sizeof(known[0]))

static int take_argument(struct file_call *c, unsigned kind, const struct json_node *node,
			 struct cj_error *err)
{
	for (size_t i = 0; i < KNOWN; i++)
		if ((known[i].kinds & kind) && strcmp(known[i].name, node->key) == 0)
			return known[i].take(c, node, err);
	return cj_reject(err, "unknown argument '%.64s'; see the input schema of the tool",
			 node->key);
}

static int take_arguments(struct file_call *c, enum mcp_tool_kind tool,
			  const struct json_node *arguments, struct cj_error *err)
{
	unsigned kind = 1u << tool;

	for (size_t i = 0; i < KNOWN; i++)
		if ((known[i].required & kind) && !mcp_member(arguments, known[i].name))
			return cj_reject(err, "'%s' is missing", known[i].name);
	for (const struct json_node *m = arguments->child; m; m = m->next)
		if (take_argument(c, kind, m, err) < 0)
			return -err->code;
	if (tool == MCP_TOOL_SESSION_PUT_FILE && !c->text == !c->base64)
		return cj_reject(err, "give either 'text' or 'base64'");
	return 0;
}

/* "/box/a b", or "a b" below /box, becomes "box/a b". */
static int keep_path(struct mcp_request *out, const char *path, struct cj_error *err)
{
	if (strlen(path) > MCP_PATH_MAX)
		return cj_reject(err, "'path' is longer than %d bytes", MCP_PATH_MAX);
	(void)snprintf(out->path, sizeof(out->path), "%s%s", path[0] == '/' ? "" : "box/",
		       path + (path[0] == '/'));
	return 0;
}

static int keep_content(struct mcp_request *out, const struct file_call *c, struct cj_error *err)
{
	size_t room = c->text ? strlen(c->text) : TEXT_BASE64_ROOM(strlen(c->base64));

	out->body = malloc(room + 1);
	if (!out->body)
		return cj_fail(err, ENOMEM, "read the arguments");
	out->size = room;
	if (c->text)
		memcpy(out->body, c->text, room);
	else if (text_base64_decode(c->base64, strlen(c->base64), out->body, &out->size) < 0)
		return cj_reject(err, "'base64' is not valid base64");
	return 0;
}

static int write_file_call(struct mcp_request *out, enum mcp_tool_kind tool,
			   const struct json_node *arguments, struct cj_error *err)
{
	static const enum mcp_operation operations[] = {
		[MCP_TOOL_SESSION_PUT_FILE] = MCP_PUT_FILE,
		[MCP_TOOL_SESSION_GET_FILE] = MCP_GET_FILE,
		[MCP_TOOL_SESSION_LIST_FILES] = MCP_LIST_FILES,
		[MCP_TOOL_SESSION_END] = MCP_END_SESSION,
	};
	static const struct json_node nothing = { .type = JSON_OBJECT };
	struct file_call c = { .to = out };

	out->operation = operations[tool];
	out->length = MCP_IMAGE_MAX;
	if (take_arguments(&c, tool, arguments ? arguments : &nothing, err) < 0)
		return -err->code;
	if (tool != MCP_TOOL_SESSION_END && keep_path(out, c.path ? c.path : "/box", err) < 0)
		return -err->code;
	return tool == MCP_TOOL_SESSION_PUT_FILE ? keep_content(out, &c, err) : 0;
}

int mcp_request_write(struct mcp_request *out, const struct mcp_tool *tool,
		      const struct mcp_given *given, const struct json_node *arguments,
		      const char *run_id, struct cj_error *err)
{
	*out = (struct mcp_request){ .body = NULL };
	if (tool->kind <= MCP_TOOL_SESSION_EXEC)
		return write_program(out, tool, given, arguments, run_id, err);
	return write_file_call(out, tool->kind, arguments, err);
}

/* --- over HTTP ---------------------------------------------------------------------------- */

const char *mcp_request_put_http(const struct mcp_request *r,
				 char out_target[static MCP_TARGET_MAX],
				 const char **out_content_type)
{
	static const struct {
		const char *method, *type;
		const char *before, *behind; /* the id of the session */
	} rows[MCP_OPERATION_COUNT] = {
		[MCP_RUN_PROGRAM] = { "POST", "application/json", "/v1/runs", "" },
		[MCP_CREATE_SESSION] = { "POST", "application/json", "/v1/sessions", "" },
		[MCP_EXEC_PROGRAM] = { "POST", "application/json", "/v1/sessions/", "/execs" },
		[MCP_PUT_FILE] = { "PUT", "application/octet-stream", "/v1/sessions/", "/files/" },
		[MCP_GET_FILE] = { "GET", NULL, "/v1/sessions/", "/files/" },
		[MCP_LIST_FILES] = { "GET", NULL, "/v1/sessions/", "/files/" },
		[MCP_END_SESSION] = { "DELETE", NULL, "/v1/sessions/", "" },
	};
	char *to = out_target + snprintf(out_target, MCP_TARGET_MAX, "%s%s%s",
					 rows[r->operation].before, r->session,
					 rows[r->operation].behind);

	to = mcp_uri_put_path(to, r->path);
	*to = '\0';
	size_t room = MCP_TARGET_MAX - (size_t)(to - out_target);
	if (r->operation == MCP_LIST_FILES)
		(void)snprintf(to, room, "%s?list", to[-1] == '/' ? "" : "/");
	else if (r->operation == MCP_GET_FILE)
		(void)snprintf(to, room, "?offset=%" PRIu64 "&length=%" PRIu64, r->offset,
			       r->length);
	else if (r->is_executable)
		(void)snprintf(to, room, "?executable");
	*out_content_type = rows[r->operation].type;
	return rows[r->operation].method;
}
