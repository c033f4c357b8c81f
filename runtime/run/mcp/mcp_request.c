/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of tools/call, checked by a table and rewritten. */
#include "runtime/run/mcp/mcp_request.h"

#include <inttypes.h>

#include "profiles/profile.h"
#include "profiles/settings.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"

#define FILES_MAX 1000

struct call {
	const struct mcp_tool *tool;
	struct mcp_request *out;
	struct json_writer *w; /* of a body of JSON */
	struct config config;  /* the command line's, with what the call lowers */
	bool *wanted;
	const char *profile; /* of the session; NULL: not known */
	const char *tools;   /* that the program may call; NULL: none */
	const char *path, *text, *base64;
};

/* The body is JSON, and has the settings of a jail; else it is a file, or there is none. */
static bool has_settings(const struct mcp_tool *tool)
{
	return tool->kind <= MCP_TOOL_SESSION_EXEC;
}

static int need_type(const struct json_node *node, const char *name, enum json_type type,
		     struct cj_error *err)
{
	if (node->type == type)
		return 0;
	return cj_reject(err, "'%s' must be %s, not %s", name, json_type_name(type),
			 json_type_name(node->type));
}

/* The head of what checks or takes an argument. */
#define TAKER(name)                                                                                \
	int name(MAYBE_UNUSED struct call *c, const struct json_node *node,                        \
		 MAYBE_UNUSED struct cj_error *err)

static TAKER(check_texts)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "each item of %s", node->key);
	for (const struct json_node *m = node->child; m; m = m->next)
		if (need_type(m, name, JSON_STRING, err) < 0)
			return -err->code;
	return 0;
}

static int check_file(const struct json_node *file, struct cj_error *err)
{
	static const char *const members[] = { "path", "text", "base64", NULL };

	if (need_type(file, "each item of files", JSON_OBJECT, err) < 0)
		return -err->code;
	for (const struct json_node *m = file->child; m; m = m->next) {
		if (!text_is_one_of(m->key, members))
			return cj_reject(err,
					 "a file has 'path', and 'text' or 'base64'; not "
					 "'%.64s'",
					 m->key);
		if (need_type(m, m->key, JSON_STRING, err) < 0)
			return -err->code;
	}
	if (!mcp_member(file, "path"))
		return cj_reject(err, "a file has no 'path'");
	if (!mcp_member(file, "text") == !mcp_member(file, "base64"))
		return cj_reject(err, "a file needs either 'text' or 'base64'");
	return 0;
}

static TAKER(check_files)
{
	if (node->count > FILES_MAX)
		return cj_reject(err, "'files' has more than %d items", FILES_MAX);
	for (const struct json_node *m = node->child; m; m = m->next)
		if (check_file(m, err) < 0)
			return -err->code;
	return 0;
}

static TAKER(check_context)
{
	return strcmp(node->text, "none") == 0 || strcmp(node->text, "repl") == 0
		   ? 0
		   : cj_reject(err, "'context' must be \"none\" or \"repl\"");
}

static TAKER(check_profile)
{
	for (size_t i = 0; i < c->tool->nruns; i++)
		if (strcmp(c->tool->runs[i].profile, node->text) == 0) {
			c->profile = c->tool->runs[i].profile;
			return 0;
		}
	return cj_reject(err, "'profile' must be one of those in the input schema");
}

/* The service reads a bare number as seconds, and has the limit. */
static TAKER(put_lease)
{
	json_member_text(c->w, "lease", node->text);
	return 0;
}

static int want(struct call *c, const char *key, const char *value, struct cj_error *err)
{
	const struct setting *s = setting_by_key(key);

	c->wanted[s - settings] = true;
	return setting_set(&c->config, s, key, value, err);
}

/* write_settings() compares both with the limits of the tool: "profile" may come after them. */
static TAKER(lower_timeout)
{
	if (want(c, "timeout", node->text, err) < 0)
		return cj_reject(err, "'timeout_seconds' must be a number of seconds above 0, "
				      "like 2.5");
	return 0;
}

static TAKER(lower_memory)
{
	return want(c, "memory", node->text, err);
}

static TAKER(check_none)
{
	return strcmp(node->text, "none") == 0
		   ? 0
		   : cj_reject(err, "'network' can only be \"none\"; only the user can open more");
}

static TAKER(lower_network)
{
	static const char *const with_network[] = { "network.uplink",       "network.start",
						    "network.allow",        "network.allow_by",
						    "network.names",        "network.deny",
						    "network.allow_private" };

	if (check_none(c, node, err) < 0)
		return -err->code;
	for (size_t i = 0; i < COUNT_OF(with_network); i++)
		c->wanted[setting_by_key(with_network[i]) - settings] = false;
	return want(c, "network.mode", "none", err);
}

/* An id as the service has them, so that it may be a part of a URL. */
static TAKER(take_session)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789_-";
	size_t size = strlen(node->text);

	if (c->tool->kind == MCP_TOOL_RUN && !c->tool->has_sessions)
		return cj_reject(err, "'session': there are no sessions here; put all code and "
				      "data into one call, and leave 'session' out");
	if (size == 0 || size >= PLAN_ID_MAX || strspn(node->text, allowed) != size)
		return cj_reject(err, "'session' must be an id that session_create has returned");
	memcpy(c->out->session, node->text, size + 1);
	return 0;
}

static TAKER(take_executable)
{
	c->out->is_executable = node->boolean;
	return 0;
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

static TAKER(take_offset)
{
	return take_number(node, 0, INT64_MAX, &c->out->offset, err);
}

static TAKER(take_length)
{
	return take_number(node, 1, MCP_IMAGE_MAX, &c->out->length, err);
}

#define RUN    (1u << MCP_TOOL_RUN)
#define CREATE (1u << MCP_TOOL_SESSION_CREATE)
#define EXEC   (1u << MCP_TOOL_SESSION_EXEC)
#define PUT    (1u << MCP_TOOL_SESSION_PUT_FILE)
#define GET    (1u << MCP_TOOL_SESSION_GET_FILE)
#define LIST   (1u << MCP_TOOL_SESSION_LIST_FILES)
#define END    (1u << MCP_TOOL_SESSION_END)
#define NET    (1u << MCP_TOOL_SESSION_NETWORK)
#define FILES  (PUT | GET | LIST | END | NET)
#define ANY    JSON_TYPE_COUNT

static const struct argument {
	const char *name;
	unsigned kinds, required; /* of tools */
	enum json_type type;
	/* Checks or takes the value; NULL: each is valid. */
	int (*take)(struct call *c, const struct json_node *node, struct cj_error *err);
	const char *key;     /* of the request that gets the value as it is; NULL: none */
	size_t field;        /* of struct call that gets the text; 0: none */
	const char *setting; /* which number with a ceiling it lowers; NULL: none */
	const char *why;     /* of a program or session: why it must not be missing */
} known[] = {
	{ "code", RUN | EXEC, RUN, JSON_STRING, .key = "code", .why = ": it is the whole program" },
	{ "command", EXEC, 0, JSON_ARRAY, check_texts, "command" },
	{ "args", RUN | EXEC, 0, ANY, .key = "args_json" },
	{ "argv", RUN | EXEC, 0, JSON_ARRAY, check_texts, "args" },
	{ "stdin", RUN | EXEC, 0, JSON_STRING, .key = "stdin" },
	{ "files", RUN | EXEC, 0, JSON_ARRAY, check_files, "files" },
	{ "timeout_seconds", RUN | EXEC, 0, JSON_NUMBER, lower_timeout, .setting = "timeout" },
	{ "memory", RUN | CREATE, 0, JSON_STRING, lower_memory, .setting = "memory" },
	{ "network", RUN | CREATE, 0, JSON_STRING, lower_network },
	{ "network", NET, 0, JSON_STRING, check_none, "mode" },
	{ "allow", NET, 0, JSON_ARRAY, check_texts, "allow" },
	{ "deny", NET, 0, JSON_ARRAY, check_texts, "deny" },
	{ "profile", CREATE, CREATE, JSON_STRING, check_profile, "profile",
	  .why = ": it says what runs" },
	{ "context", CREATE, 0, JSON_STRING, check_context, "context" },
	{ "lease_seconds", CREATE, 0, JSON_NUMBER, put_lease },
	{ "session", RUN | EXEC | FILES, EXEC | FILES, JSON_STRING, take_session,
	  .why = ": session_create returns one" },
	{ "path", PUT | GET | LIST, PUT | GET, JSON_STRING, .field = offsetof(struct call, path) },
	{ "offset", GET, 0, ANY, take_offset },
	{ "length", GET, 0, ANY, take_length },
	{ "text", PUT, 0, JSON_STRING, .field = offsetof(struct call, text) },
	{ "base64", PUT, 0, JSON_STRING, .field = offsetof(struct call, base64) },
	{ "executable", PUT, 0, JSON_BOOL, take_executable },
};

static int take_argument(struct call *c, const struct json_node *node, struct cj_error *err)
{
	const struct argument *a = NULL;

	for (size_t i = 0; i < COUNT_OF(known) && !a; i++)
		if ((known[i].kinds & 1u << c->tool->kind) && strcmp(known[i].name, node->key) == 0)
			a = &known[i];
	if (!a) {
		const char *names[COUNT_OF(known) + 1] = { NULL };
		size_t count = 0;

		for (size_t i = 0; i < COUNT_OF(known); i++)
			if (known[i].kinds & 1u << c->tool->kind)
				names[count++] = known[i].name;
		const char *near = has_settings(c->tool) ? text_nearest(node->key, names) : NULL;
		if (near)
			return cj_reject(err, "unknown argument '%.64s'; did you mean '%s'?",
					 node->key, near);
		return cj_reject(err, "unknown argument '%.64s'; see the input schema of the tool",
				 node->key);
	}
	if (a->type != ANY && a->type != node->type && !(a->kinds & (RUN | CREATE | EXEC)))
		return cj_reject(err, "'%s' must be %s", a->name, json_type_name(a->type));
	if ((a->type != ANY && need_type(node, a->name, a->type, err) < 0) ||
	    (a->take && a->take(c, node, err) < 0))
		return -err->code;
	if (a->key)
		json_member_node(c->w, a->key, node);
	if (a->field > 0)
		*(const char **)((char *)c + a->field) = node->text;
	return 0;
}

static int take_arguments(struct call *c, const struct json_node *arguments, struct cj_error *err)
{
	static const struct {
		enum mcp_tool_kind kind;
		const char *one, *other;
	} pairs[] = { { MCP_TOOL_SESSION_EXEC, "code", "command" },
		      { MCP_TOOL_SESSION_PUT_FILE, "text", "base64" } };
	for (size_t i = 0; i < COUNT_OF(known); i++)
		if ((known[i].required & 1u << c->tool->kind) &&
		    !mcp_member(arguments, known[i].name))
			return cj_reject(err, "'%s' is missing%s", known[i].name,
					 has_settings(c->tool) ? known[i].why : "");
	for (size_t i = 0; i < COUNT_OF(pairs); i++)
		if (pairs[i].kind == c->tool->kind &&
		    !mcp_member(arguments, pairs[i].one) == !mcp_member(arguments, pairs[i].other))
			return cj_reject(err, "give either '%s' or '%s'", pairs[i].one,
					 pairs[i].other);
	for (const struct json_node *m = arguments ? arguments->child : NULL; m; m = m->next)
		if (take_argument(c, m, err) < 0)
			return -err->code;
	return 0;
}

/* After the arguments: whether there is a session is known then. */
static void put_rest(struct call *c, const char *run_id)
{
	const struct setting *timeout = setting_by_key("timeout");

	if (c->tool->kind == MCP_TOOL_RUN) /* a session of another one refuses it */
		json_member_text(c->w, "profile", c->tool->profile);
	if (c->tool->kind != MCP_TOOL_SESSION_CREATE) {
		json_member_text(c->w, "id", run_id);
		json_member_text(c->w, "artifacts", "changed");
	} else {
		c->wanted[setting_by_key("file") - settings] = false; /* of programs */
		json_member_bool(c->w, "renew_on_use", true);         /* no tool renews the lease */
	}
	if (c->tools && c->tool->kind != MCP_TOOL_SESSION_CREATE) {
		json_put_key(c->w, "tools");
		json_put_raw(c->w, c->tools, strlen(c->tools));
	}
	if (c->out->kind == MCP_TOOL_SESSION_EXEC) {
		if (!c->tools) /* nobody would answer calls of the session's tools */
			json_member_bool(c->w, "tools", false);
		json_member_bool(c->w, "interrupt", true);
		for (size_t i = 0; i < settings_count; i++)
			c->wanted[i] = c->wanted[i] && &settings[i] == timeout;
	}
	profile_put(c->w, &c->config, c->wanted);
}

/* The text of c->w, whole, is the body. */
static int take_body(struct call *c, struct cj_error *err)
{
	struct blob text;

	json_close_object(c->w);
	if (json_writer_take(c->w, &text, err) < 0)
		return -err->code;
	c->out->body = strndup(text.bytes, text.size);
	c->out->size = text.size;
	return c->out->body ? 0 : cj_fail(err, ENOMEM, "read the arguments");
}

static int write_settings(struct call *c, const struct json_node *arguments, const char *run_id,
			  struct cj_error *err)
{
	struct mcp_request *out = c->out;
	struct ceilings most;
	json_open_object(c->w);
	if (take_arguments(c, arguments, err) < 0)
		return -err->code;
	/* After the arguments: the profile of the session is known then. */
	mcp_tool_limits(c->tool, c->profile, &most);
	for (size_t i = 0; i < COUNT_OF(known); i++)
		if (known[i].setting && mcp_member(arguments, known[i].name) &&
		    rights_validate_within(&most, &c->config, known[i].setting, known[i].name,
					   err) < 0)
			return -err->code;
	if (out->kind == MCP_TOOL_RUN && out->session[0])
		out->kind = MCP_TOOL_SESSION_EXEC;
	/* The jail of a session has its settings already. */
	if (out->kind == MCP_TOOL_SESSION_EXEC && mcp_member(arguments, "memory"))
		return cj_reject(err, "'memory' cannot change in a session; give it to "
				      "session_create");
	if (out->kind == MCP_TOOL_SESSION_EXEC && mcp_member(arguments, "network"))
		return cj_reject(err, "'network' of a session changes by session_network, or give "
				      "it to session_create");
	put_rest(c, run_id);
	return take_body(c, err);
}

static int write_with_settings(struct call *c, const struct mcp_given *given,
			       const struct json_node *arguments, const char *run_id,
			       struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	auto_free bool *wanted = calloc(settings_count, sizeof(*wanted));

	if (!w || !wanted)
		return cj_fail(err, ENOMEM, "read the arguments");
	memcpy(wanted, given->wanted, settings_count * sizeof(*wanted));
	c->w = w;
	c->wanted = wanted;
	c->profile = given->session_profile;
	c->tools = given->tools;
	int rc = config_copy(&c->config, given->config, err);
	if (rc == 0)
		rc = write_settings(c, arguments, run_id, err);
	config_fini(&c->config);
	return rc;
}

static int write_file(struct call *c, const struct json_node *arguments, struct cj_error *err)
{
	struct mcp_request *out = c->out;

	c->path = "/box";
	out->length = MCP_IMAGE_MAX;
	if (take_arguments(c, arguments, err) < 0)
		return -err->code;
	if (strlen(c->path) > MCP_PATH_MAX)
		return cj_reject(err, "'path' is longer than %d bytes", MCP_PATH_MAX);
	/* "/box/a b", or "a b" below /box, becomes "box/a b" */
	if (out->kind != MCP_TOOL_SESSION_END)
		(void)snprintf(out->path, sizeof(out->path), "%s%s",
			       c->path[0] == '/' ? "" : "box/", c->path + (c->path[0] == '/'));
	if (out->kind != MCP_TOOL_SESSION_PUT_FILE)
		return 0;
	const size_t room = c->text ? strlen(c->text) : TEXT_BASE64_ROOM(strlen(c->base64));
	out->body = malloc(room + 1);
	if (!out->body)
		return cj_fail(err, ENOMEM, "read the arguments");
	out->size = room;
	if (c->text)
		memcpy(out->body, c->text, out->size);
	else if (text_base64_decode(c->base64, strlen(c->base64), out->body, &out->size) < 0)
		return cj_reject(err, "'base64' is not valid base64");
	return 0;
}

/* A call closes the network or narrows it: the request says so (mcp_request_put_http()). */
static int write_network(struct call *c, const struct json_node *arguments, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const bool closes = mcp_member(arguments, "network");
	const bool narrows = mcp_member(arguments, "allow") || mcp_member(arguments, "deny");

	c->w = w;
	json_open_object(w);
	if (!closes)
		json_member_text(w, "mode", "public");
	if (take_arguments(c, arguments, err) < 0)
		return -err->code;
	if (closes == narrows)
		return cj_reject(err, "give either 'network', or 'allow', 'deny' or both");
	return take_body(c, err);
}

int mcp_request_write(struct mcp_request *out, const struct mcp_tool *tool,
		      const struct mcp_given *given, const struct json_node *arguments,
		      const char *run_id, struct cj_error *err)
{
	struct call c = { .tool = tool, .out = out };

	*out = (struct mcp_request){ .kind = tool->kind };
	if (tool->kind == MCP_TOOL_SESSION_NETWORK)
		return write_network(&c, arguments, err);
	return has_settings(tool) ? write_with_settings(&c, given, arguments, run_id, err)
				  : write_file(&c, arguments, err);
}

const char *mcp_request_put_http(const struct mcp_request *r,
				 char out_target[static MCP_TARGET_MAX],
				 const char **out_content_type)
{
	static const struct {
		const char *method, *type;
		const char *before, *behind; /* the id of the session */
	} rows[MCP_TOOL_KIND_COUNT] = {
		[MCP_TOOL_RUN] = { "POST", "application/json", "/v1/runs", "" },
		[MCP_TOOL_SESSION_CREATE] = { "POST", "application/json", "/v1/sessions", "" },
		[MCP_TOOL_SESSION_EXEC] = { "POST", "application/json", "/v1/sessions/", "/execs" },
		[MCP_TOOL_SESSION_PUT_FILE] = { "PUT", "application/octet-stream", "/v1/sessions/",
						"/files/" },
		[MCP_TOOL_SESSION_GET_FILE] = { "GET", NULL, "/v1/sessions/", "/files/" },
		[MCP_TOOL_SESSION_LIST_FILES] = { "GET", NULL, "/v1/sessions/", "/files/" },
		[MCP_TOOL_SESSION_NETWORK] = { "PUT", "application/json", "/v1/sessions/",
					       "/network?narrow" },
		[MCP_TOOL_SESSION_END] = { "DELETE", NULL, "/v1/sessions/", "" },
	};
	char *to = out_target + snprintf(out_target, MCP_TARGET_MAX, "%s%s%s", rows[r->kind].before,
					 r->session, rows[r->kind].behind);

	to = text_put_url(to, r->path);
	size_t room = MCP_TARGET_MAX - (size_t)(to - out_target);
	if (r->kind == MCP_TOOL_SESSION_LIST_FILES)
		(void)snprintf(to, room, "%s?list", to[-1] == '/' ? "" : "/");
	else if (r->kind == MCP_TOOL_SESSION_GET_FILE)
		(void)snprintf(to, room, "?offset=%" PRIu64 "&length=%" PRIu64, r->offset,
			       r->length);
	else if (r->is_executable)
		(void)snprintf(to, room, "?executable");
	*out_content_type = rows[r->kind].type;
	return rows[r->kind].method;
}
