/* SPDX-License-Identifier: Apache-2.0 */
/* The methods, by a table. */
#include "runtime/run/mcp/mcp_protocol.h"

#include <strings.h>

#include "runtime/base/scope.h"
#include "runtime/base/text.h"

#define LIST_TTL_MS 60000 /* the tools change only with the profiles */

/* Newest first. */
static const char *const legacy_versions[] = { "2025-11-25", "2025-06-18", "2025-03-26",
					       "2024-11-05", NULL };
static const char *const modern_versions[] = { "2026-07-28", NULL };
static const char first_over_http[] = "2025-03-26";
static const char structured_since[] = "2025-06-18"; /* as dates, versions sort as text */

static const char instructions[] =
    "Each tool runs a program in a sandbox on the user's machine. A call begins with an empty "
    "sandbox, unless it names a session. So put all code and data of a task into one call, or "
    "create a session. Read 'message' first: it says what happened, and what to change.";

struct mcp_request_head;
struct method {
	const char *name;
	int (*answer)(struct mcp_request_head *r, struct mcp_fault *fault);
	bool is_legacy, is_modern;
	const char *named; /* the member of the parameters that Mcp-Name repeats; NULL: none */
	enum mcp_task_method task_method;
};

/* A request while it is answered. */
struct mcp_request_head {
	struct mcp_protocol *protocol;
	const struct mcp_message *message;
	const struct method *method;
	enum mcp_era era;
	struct json_writer *w;
	struct mcp_asked *out;
};

static int refuse_params(struct mcp_fault *fault, const char *text)
{
	return mcp_refuse(fault, MCP_INVALID_PARAMS, "%s", text);
}

static void put_capabilities(struct json_writer *w, enum mcp_era era)
{
	json_member_object(w, "capabilities");
	json_member_object(w, "tools");
	json_close_object(w);
	if (era == MCP_ERA_MODERN)
		mcp_put_extensions(w);
	json_close_object(w);
}

static void put_caching(const struct mcp_request_head *r)
{
	if (r->era != MCP_ERA_MODERN)
		return;
	json_member_u64(r->w, "ttlMs", LIST_TTL_MS);
	json_member_text(r->w, "cacheScope", "private");
}

static int initialize(struct mcp_request_head *r, struct mcp_fault *fault)
{
	const char *asked = json_get_text(r->message->params, "protocolVersion");

	if (!asked)
		return refuse_params(fault, "\"protocolVersion\" is missing");
	const char *version = text_is_one_of(asked, legacy_versions) ? asked : legacy_versions[0];
	(void)snprintf(r->protocol->version, sizeof(r->protocol->version), "%s", version);
	r->protocol->was_opened = true;
	mcp_begin_result(r->w, &r->message->id, MCP_ERA_LEGACY);
	json_member_text(r->w, "protocolVersion", version);
	put_capabilities(r->w, MCP_ERA_LEGACY);
	mcp_put_implementation(r->w, "serverInfo");
	json_member_text(r->w, "instructions", instructions);
	mcp_end(r->w);
	return 0;
}

static int discover(struct mcp_request_head *r, struct mcp_fault *fault)
{
	(void)fault;
	mcp_begin_result(r->w, &r->message->id, r->era);
	json_member_array(r->w, "supportedVersions");
	for (const char *const *v = modern_versions; *v; v++)
		json_put_string(r->w, *v);
	for (const char *const *v = legacy_versions; *v; v++)
		json_put_string(r->w, *v);
	json_close_array(r->w);
	put_capabilities(r->w, r->era);
	json_member_text(r->w, "instructions", instructions);
	put_caching(r);
	mcp_end(r->w);
	return 0;
}

static int ping(struct mcp_request_head *r, struct mcp_fault *fault)
{
	(void)fault;
	mcp_begin_result(r->w, &r->message->id, r->era);
	mcp_end(r->w);
	return 0;
}

static int load_tools(struct mcp_protocol *p, struct mcp_fault *fault)
{
	struct cj_error err = { 0 };

	if (p->tools || !p->load || p->load(p, &err) == 0)
		return 0;
	return mcp_refuse(fault, MCP_INTERNAL_ERROR, "%s", err.msg);
}

static int list_tools(struct mcp_request_head *r, struct mcp_fault *fault)
{
	const struct mcp_protocol *p = r->protocol;
	struct cj_error err = { 0 };

	if (load_tools(r->protocol, fault) < 0)
		return -EINVAL;
	if (mcp_member(r->message->params, "cursor"))
		return refuse_params(fault, "\"cursor\" is not valid: all tools are in one page");
	mcp_begin_result(r->w, &r->message->id, r->era);
	json_member_array(r->w, "tools");
	if (mcp_tools_put(r->w, p->tools, p->ntools, r->era, &err) < 0)
		return mcp_refuse(fault, MCP_INTERNAL_ERROR, "%s", err.msg);
	json_close_array(r->w);
	put_caching(r);
	mcp_end(r->w);
	return 0;
}

/* Each request declares it anew. */
static bool takes_tasks(const struct mcp_request_head *r)
{
	const struct json_node *given =
	    json_get_typed(r->message->meta, MCP_META_CAPABILITIES, JSON_OBJECT);

	return r->era == MCP_ERA_MODERN &&
	       json_get_typed(json_get_typed(given, "extensions", JSON_OBJECT), MCP_TASKS,
			      JSON_OBJECT);
}

static int ask_task(struct mcp_request_head *r, struct mcp_fault *fault)
{
	struct mcp_asked *out = r->out;

	if (!takes_tasks(r)) {
		out->http_status = 400;
		mcp_put_capability_fault(r->w, &r->message->id);
		return 0;
	}
	out->task = json_get_text(r->message->params, "taskId");
	if (!out->task)
		return refuse_params(fault, "\"taskId\" must be the id of a task");
	out->action = MCP_TASK;
	out->task_method = r->method->task_method;
	return 0;
}

static int call_tool(struct mcp_request_head *r, struct mcp_fault *fault)
{
	const struct mcp_message *m = r->message;
	const char *name = json_get_text(m->params, "name");
	const struct json_node *arguments = mcp_member(m->params, "arguments");
	const struct json_node *token = mcp_member(m->meta, "progressToken");
	struct mcp_asked *out = r->out;

	if (load_tools(r->protocol, fault) < 0)
		return -EINVAL;
	if (!name)
		return refuse_params(fault, "\"name\" must be the name of a tool");
	for (size_t i = 0; i < r->protocol->ntools && !out->tool; i++)
		if (strcmp(r->protocol->tools[i].name, name) == 0)
			out->tool = &r->protocol->tools[i];
	if (!out->tool)
		return mcp_refuse(fault, MCP_INVALID_PARAMS, "unknown tool: %.64s", name);
	if (arguments && arguments->type != JSON_OBJECT)
		return refuse_params(fault, "\"arguments\" must be an object");
	if (token && !mcp_id_read(token, &out->progress))
		return refuse_params(fault, "\"progressToken\" must be an integer or a string");
	out->action = MCP_CALL;
	out->takes_tasks = takes_tasks(r);
	out->arguments = arguments;
	out->traceparent = json_get_text(m->meta, "traceparent");
	return 0;
}

static const struct method methods[] = {
	{ "initialize", initialize, true, false },
	{ "ping", ping, true, false },
	{ "server/discover", discover, false, true },
	{ "tools/list", list_tools, true, true },
	{ "tools/call", call_tool, true, true, "name" },
	{ "tasks/get", ask_task, false, true, "taskId", MCP_TASK_GET },
	{ "tasks/update", ask_task, false, true, "taskId", MCP_TASK_UPDATE },
	{ "tasks/cancel", ask_task, false, true, "taskId", MCP_TASK_CANCEL },
};

/* NULL: there is none. */
static const struct method *find_method(const char *name)
{
	for (size_t i = 0; i < COUNT_OF(methods); i++)
		if (strcmp(methods[i].name, name) == 0)
			return &methods[i];
	return NULL;
}

/* Over HTTP the header says which version was selected; a request without one is of the first. */
static int adopt_header(struct mcp_request_head *r, struct mcp_fault *fault)
{
	const char *version = r->protocol->headers->version;

	if (!version)
		version = strcmp(r->message->method, "initialize") == 0 ? "" : first_over_http;
	if (text_is_one_of(version, modern_versions))
		return refuse_params(fault, "\"" MCP_META_VERSION "\" is missing in \"_meta\"");
	if (version[0] && !text_is_one_of(version, legacy_versions)) {
		mcp_put_version_fault(r->w, &r->message->id, modern_versions, version);
		return 1;
	}
	(void)snprintf(r->protocol->version, sizeof(r->protocol->version), "%s", version);
	return 0;
}

/* `initialize` and `ping` may come first. */
static int choose_legacy(struct mcp_request_head *r, struct mcp_fault *fault)
{
	const char *method = r->message->method;
	int rc = r->protocol->headers ? adopt_header(r, fault) : 0;

	if (rc != 0)
		return rc;
	const char *version = r->protocol->version;
	r->era = strcmp(version[0] ? version : legacy_versions[0], structured_since) < 0
		     ? MCP_ERA_OLD
		     : MCP_ERA_LEGACY;
	if (version[0] || strcmp(method, "initialize") == 0 || strcmp(method, "ping") == 0)
		return 0;
	return refuse_params(fault, "the request has no \"" MCP_META_VERSION "\" in \"_meta\", and "
				    "there was no \"initialize\" before");
}

/* 1: the version fault is written. */
static int choose_era(struct mcp_request_head *r, struct mcp_fault *fault)
{
	const struct json_node *meta = r->message->meta;
	const struct json_node *version = mcp_member(meta, MCP_META_VERSION);

	if (!version)
		return choose_legacy(r, fault);
	r->era = MCP_ERA_MODERN;
	if (version->type != JSON_STRING)
		return refuse_params(fault, "\"" MCP_META_VERSION "\" must be a string");
	if (r->protocol->headers &&
	    mcp_headers_check(r->protocol->headers, r->message, version->text, fault) < 0)
		return -EINVAL;
	if (!text_is_one_of(version->text, modern_versions)) {
		mcp_put_version_fault(r->w, &r->message->id, modern_versions, version->text);
		return 1;
	}
	if (!json_get_typed(meta, MCP_META_CAPABILITIES, JSON_OBJECT))
		return refuse_params(fault,
				     "\"" MCP_META_CAPABILITIES "\" is missing in \"_meta\"");
	return 0;
}

/* Over HTTP an error of the request's envelope has a status of its own; one of a method has not. */
static int answer_request(struct mcp_request_head *r, struct mcp_fault *fault)
{
	r->out->http_status = 400;
	int rc = choose_era(r, fault);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	bool is_modern = r->era == MCP_ERA_MODERN;
	r->method = find_method(r->message->method);
	if (r->method && !(is_modern ? r->method->is_modern : r->method->is_legacy))
		r->method = NULL;
	r->out->era = r->era;
	r->out->http_status = r->method || !is_modern ? 200 : 404;
	if (r->method)
		return r->method->answer(r, fault);
	return mcp_refuse(fault, MCP_METHOD_NOT_FOUND, "unknown method: %.64s", r->message->method);
}

void mcp_protocol_take(struct mcp_protocol *p, const char *line, size_t size, struct arena *a,
		       struct json_writer *w, struct mcp_asked *out)
{
	struct mcp_message message;
	struct mcp_fault fault;
	struct mcp_request_head r = { .protocol = p, .message = &message, .w = w, .out = out };

	*out = (struct mcp_asked){ .action = MCP_NOTHING, .http_status = 202 };
	int rc = mcp_message_read(line, size, a, &message, &fault);
	out->id = message.id;
	if (rc == 0 && message.kind == MCP_RESPONSE)
		return;
	if (rc == 0 && message.kind == MCP_NOTIFICATION) {
		if (strcmp(message.method, "notifications/cancelled") == 0 &&
		    mcp_id_read(mcp_member(message.params, "requestId"), &out->id))
			out->action = MCP_CANCEL;
		return;
	}
	out->action = MCP_ANSWER;
	out->http_status = 400;
	if (rc == 0)
		rc = answer_request(&r, &fault);
	if (rc < 0) {
		out->action = MCP_ANSWER;
		mcp_put_fault(w, &message.id, &fault);
	}
}

static const char encoded_before[] = "=?base64?", encoded_after[] = "?=";

static int refuse_header(struct mcp_fault *fault, const char *name, const char *why)
{
	return mcp_refuse(fault, MCP_HEADER_MISMATCH, "the header %s %s", name, why);
}

static int check_header(const char *name, const char *value, const char *body,
			struct mcp_fault *fault)
{
	if (!value)
		return refuse_header(fault, name, "is missing");
	if (!body || strcmp(value, body) != 0)
		return refuse_header(fault, name, "does not match the body");
	return 0;
}

/* The length of the base64 in the value, whose start is *out; 0: it is not encoded. */
static size_t find_encoded(const char *value, const char **out)
{
	size_t before = sizeof(encoded_before) - 1, after = sizeof(encoded_after) - 1;
	size_t size = strlen(value);

	if (size <= before + after || !text_begins_with(value, encoded_before) ||
	    strcmp(value + size - after, encoded_after) != 0)
		return 0;
	*out = value + before;
	return size - before - after;
}

static bool equals_encoded(const char *base64, size_t size, const char *body)
{
	auto_free char *bytes = malloc(TEXT_BASE64_ROOM(size) + 1);
	size_t count = 0;

	return bytes && text_base64_decode(base64, size, bytes, &count) == 0 &&
	       count == strlen(body) && memcmp(bytes, body, count) == 0;
}

int mcp_headers_check(const struct mcp_headers *h, const struct mcp_message *m, const char *version,
		      struct mcp_fault *fault)
{
	if (check_header("MCP-Protocol-Version", h->version, version, fault) < 0 ||
	    check_header("Mcp-Method", h->method, m->method, fault) < 0)
		return -EINVAL;
	static const char name[] = "Mcp-Name";
	const struct method *method = find_method(m->method);
	const char *base64 = NULL;
	const char *body = method && method->named ? json_get_text(m->params, method->named) : NULL;
	if (!body)
		return 0;
	size_t size = h->name ? find_encoded(h->name, &base64) : 0;
	if (size == 0)
		return check_header(name, h->name, body, fault);
	return equals_encoded(base64, size, body)
		   ? 0
		   : refuse_header(fault, name, "does not match the body");
}

/* One item without its parameters; a part of it may be a star. */
static bool item_allows(const char *item, size_t size, const char *type)
{
	const char *slash = strchr(type, '/');
	size_t before = slash ? (size_t)(slash - type) + 1 : 0;

	while (size > 0 && strchr(" \t", item[size - 1]))
		size--;
	if (size == 3 && strncmp(item, "*/*", 3) == 0)
		return true;
	if (size == before + 1 && item[before] == '*')
		return strncasecmp(item, type, before) == 0;
	return size == strlen(type) && strncasecmp(item, type, size) == 0;
}

bool mcp_headers_accept(const char *accept, const char *type)
{
	if (!accept)
		return true;
	while (*accept) {
		accept += strspn(accept, " \t,");
		if (item_allows(accept, strcspn(accept, ",;"), type))
			return true;
		accept += strcspn(accept, ",");
	}
	return false;
}
