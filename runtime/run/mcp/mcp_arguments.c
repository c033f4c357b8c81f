/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of tools/call, checked and rewritten.  Pure. */
#include "runtime/run/mcp/mcp_arguments.h"

#include <string.h>

#include "profiles/profile.h"
#include "profiles/settings.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"

#define FILES_MAX 1000

struct call {
	const struct mcp_tool *tool;
	struct config config; /* the command line's, with what the call lowers */
	bool *wanted;
	struct json_writer *w;
	struct mcp_plan *plan;
	const char *profile; /* of the session; NULL: not known */
};

/* --- values ---------------------------------------------------------------------- */

static int need_type(const struct json_node *node, const char *name, enum json_type type,
		     struct cj_error *err)
{
	if (node->type == type)
		return 0;
	return cj_reject(err, "'%s' must be %s, not %s", name, json_type_name(type),
			 json_type_name(node->type));
}

static void put_as(struct json_writer *w, const char *key, const struct json_node *node)
{
	json_member_node(w, key, node);
}

static int put_text(struct call *c, const struct json_node *node, struct cj_error *err)
{
	if (need_type(node, node->key, JSON_STRING, err) < 0)
		return -err->code;
	put_as(c->w, node->key, node);
	return 0;
}

static int put_args(struct call *c, const struct json_node *node, struct cj_error *err)
{
	(void)err;
	put_as(c->w, "args_json", node);
	return 0;
}

static int put_argv(struct call *c, const struct json_node *node, struct cj_error *err)
{
	if (need_type(node, node->key, JSON_ARRAY, err) < 0)
		return -err->code;
	for (const struct json_node *m = node->child; m; m = m->next)
		if (need_type(m, "each item of argv", JSON_STRING, err) < 0)
			return -err->code;
	put_as(c->w, "args", node);
	return 0;
}

static int check_file(const struct json_node *file, struct cj_error *err)
{
	static const char *const members[] = { "path", "text", "base64", NULL };

	if (need_type(file, "each item of files", JSON_OBJECT, err) < 0)
		return -err->code;
	for (const struct json_node *m = file->child; m; m = m->next) {
		size_t i = 0;
		while (members[i] && strcmp(members[i], m->key) != 0)
			i++;
		if (!members[i])
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

static int put_files(struct call *c, const struct json_node *node, struct cj_error *err)
{
	if (need_type(node, node->key, JSON_ARRAY, err) < 0)
		return -err->code;
	if (node->count > FILES_MAX)
		return cj_reject(err, "'files' has more than %d items", FILES_MAX);
	for (const struct json_node *m = node->child; m; m = m->next)
		if (check_file(m, err) < 0)
			return -err->code;
	put_as(c->w, node->key, node);
	return 0;
}

/* --- limits, which a call can only lower ------------------------------------------ */

static int want(struct call *c, const char *key, const char *value, struct cj_error *err)
{
	const struct setting *s = setting_by_key(key);

	c->wanted[s - settings] = true;
	return setting_set(&c->config, s, key, value, err);
}

/* check_limits() compares both with the limits of the tool: "profile" may come after them. */
static int lower_timeout(struct call *c, const struct json_node *node, struct cj_error *err)
{
	if (need_type(node, node->key, JSON_NUMBER, err) < 0)
		return -err->code;
	if (want(c, "timeout", node->text, err) < 0)
		return cj_reject(err, "'timeout_seconds' must be a number of seconds above 0, "
				      "like 2.5");
	return 0;
}

static int lower_memory(struct call *c, const struct json_node *node, struct cj_error *err)
{
	if (need_type(node, node->key, JSON_STRING, err) < 0)
		return -err->code;
	return want(c, "memory", node->text, err);
}

static int lower_network(struct call *c, const struct json_node *node, struct cj_error *err)
{
	static const char *const with_network[] = { "network.uplink", "network.start",
						    "network.allow", "network.allow_private" };

	if (need_type(node, node->key, JSON_STRING, err) < 0)
		return -err->code;
	if (strcmp(node->text, "none") != 0)
		return cj_reject(err, "'network' can only be \"none\"");
	for (size_t i = 0; i < sizeof(with_network) / sizeof(with_network[0]); i++)
		c->wanted[setting_by_key(with_network[i]) - settings] = false;
	return want(c, "network.mode", "none", err);
}

/* --- sessions ---------------------------------------------------------------------- */

int mcp_arguments_take_session(const struct json_node *node, char out[static PLAN_ID_MAX],
			       struct cj_error *err)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789_-";

	if (need_type(node, node->key, JSON_STRING, err) < 0)
		return -err->code;
	size_t size = strlen(node->text);
	if (size == 0 || size >= PLAN_ID_MAX || strspn(node->text, allowed) != size)
		return cj_reject(err, "'session' must be an id that session_create has returned");
	memcpy(out, node->text, size + 1);
	return 0;
}

static int take_session(struct call *c, const struct json_node *node, struct cj_error *err)
{
	if (c->tool->kind == MCP_TOOL_RUN && !c->tool->has_sessions)
		return cj_reject(err, "'session': there are no sessions here; put all code and "
				      "data into one call, and leave 'session' out");
	return mcp_arguments_take_session(node, c->plan->session, err);
}

static int put_profile(struct call *c, const struct json_node *node, struct cj_error *err)
{
	const struct mcp_tool *runs = c->tool->runs;
	size_t i = 0;

	if (need_type(node, node->key, JSON_STRING, err) < 0)
		return -err->code;
	while (i < c->tool->nruns && strcmp(runs[i].profile, node->text) != 0)
		i++;
	if (i == c->tool->nruns)
		return cj_reject(err, "'profile' must be one of those in the input schema");
	c->profile = runs[i].profile;
	put_as(c->w, node->key, node);
	return 0;
}

static int put_context(struct call *c, const struct json_node *node, struct cj_error *err)
{
	if (need_type(node, node->key, JSON_STRING, err) < 0)
		return -err->code;
	if (strcmp(node->text, "none") != 0 && strcmp(node->text, "repl") != 0)
		return cj_reject(err, "'context' must be \"none\" or \"repl\"");
	put_as(c->w, node->key, node);
	return 0;
}

/* The service reads a bare number as seconds, and has the limit. */
static int put_lease(struct call *c, const struct json_node *node, struct cj_error *err)
{
	if (need_type(node, node->key, JSON_NUMBER, err) < 0)
		return -err->code;
	json_member_text(c->w, "lease", node->text);
	return 0;
}

static int put_command(struct call *c, const struct json_node *node, struct cj_error *err)
{
	if (need_type(node, node->key, JSON_ARRAY, err) < 0)
		return -err->code;
	for (const struct json_node *m = node->child; m; m = m->next)
		if (need_type(m, "each item of command", JSON_STRING, err) < 0)
			return -err->code;
	put_as(c->w, node->key, node);
	return 0;
}

/* --- the table ----------------------------------------------------------------------- */

#define RUN    (1u << MCP_TOOL_RUN)
#define EXEC   (1u << MCP_TOOL_SESSION_EXEC)
#define CREATE (1u << MCP_TOOL_SESSION_CREATE)

static const struct argument {
	const char *name;
	int (*take)(struct call *c, const struct json_node *node, struct cj_error *err);
	unsigned kinds;      /* of tools */
	const char *setting; /* which number with a ceiling it lowers; NULL: none */
} known[] = {
	{ "code", put_text, RUN | EXEC },
	{ "command", put_command, EXEC },
	{ "args", put_args, RUN | EXEC },
	{ "argv", put_argv, RUN | EXEC },
	{ "stdin", put_text, RUN | EXEC },
	{ "files", put_files, RUN | EXEC },
	{ "timeout_seconds", lower_timeout, RUN | EXEC, "timeout" },
	{ "memory", lower_memory, RUN | CREATE, "memory" },
	{ "network", lower_network, RUN | CREATE },
	{ "profile", put_profile, CREATE },
	{ "context", put_context, CREATE },
	{ "lease_seconds", put_lease, CREATE },
	{ "session", take_session, RUN | EXEC },
};
#define KNOWN (sizeof(known) / sizeof(known[0]))

static bool has_argument(const struct mcp_tool *tool, const struct argument *a)
{
	return (a->kinds & (1u << tool->kind)) != 0;
}

static int refuse_unknown(const struct mcp_tool *tool, const char *name, struct cj_error *err)
{
	const char *names[KNOWN + 1] = { NULL };
	size_t count = 0;

	for (size_t i = 0; i < KNOWN; i++)
		if (has_argument(tool, &known[i]))
			names[count++] = known[i].name;
	const char *near = text_nearest(name, names);
	if (near)
		return cj_reject(err, "unknown argument '%.64s'; did you mean '%s'?", name, near);
	return cj_reject(err, "unknown argument '%.64s'; see the input schema of the tool", name);
}

static int take_argument(struct call *c, const struct json_node *node, struct cj_error *err)
{
	for (size_t i = 0; i < KNOWN; i++)
		if (has_argument(c->tool, &known[i]) && strcmp(known[i].name, node->key) == 0)
			return known[i].take(c, node, err);
	return refuse_unknown(c->tool, node->key, err);
}

/* --- the request ------------------------------------------------------------------ */

static int check_required(const struct mcp_tool *tool, const struct json_node *arguments,
			  struct cj_error *err)
{
	bool has_code = mcp_member(arguments, "code") != NULL;
	bool has_command = mcp_member(arguments, "command") != NULL;

	if (tool->kind == MCP_TOOL_SESSION_CREATE)
		return mcp_member(arguments, "profile")
			   ? 0
			   : cj_reject(err, "'profile' is missing: it says what runs");
	if (tool->kind == MCP_TOOL_RUN)
		return has_code ? 0 : cj_reject(err, "'code' is missing: it is the whole program");
	if (!mcp_member(arguments, "session"))
		return cj_reject(err, "'session' is missing: session_create returns one");
	if (has_code == has_command)
		return cj_reject(err, "give either 'code' or 'command'");
	return 0;
}

/* The jail of a session has its settings already. */
static int check_session(const struct json_node *arguments, struct cj_error *err)
{
	static const char *const fixed[] = { "memory", "network" };

	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		if (mcp_member(arguments, fixed[i]))
			return cj_reject(err,
					 "'%s' cannot change in a session; give it to "
					 "session_create",
					 fixed[i]);
	return 0;
}

/* After the arguments: the profile of the session is known then. */
static int check_limits(const struct call *c, const struct json_node *arguments,
			struct cj_error *err)
{
	struct ceilings most;

	mcp_tool_limits(c->tool, c->profile, &most);
	for (size_t i = 0; i < KNOWN; i++)
		if (known[i].setting && mcp_member(arguments, known[i].name) &&
		    rights_validate_within(&most, &c->config, known[i].setting, known[i].name,
					   err) < 0)
			return -err->code;
	return 0;
}

static void keep_only(bool *wanted, const struct setting *s)
{
	bool is_wanted = wanted[s - settings];

	memset(wanted, 0, settings_count * sizeof(*wanted));
	wanted[s - settings] = is_wanted;
}

/* After the arguments: whether there is a session is known then. */
static int put_rest(struct call *c, const struct json_node *arguments, struct cj_error *err)
{
	bool is_exec = c->plan->session[0] != '\0';

	if (is_exec && check_session(arguments, err) < 0)
		return -err->code;
	if (c->tool->kind == MCP_TOOL_RUN) /* a session of another one refuses it */
		json_member_text(c->w, "profile", c->tool->profile);
	if (c->tool->kind != MCP_TOOL_SESSION_CREATE) {
		json_member_text(c->w, "id", c->plan->run_id);
		json_member_text(c->w, "artifacts", "changed");
	} else {
		c->wanted[setting_by_key("file") - settings] = false; /* of programs */
		json_member_bool(c->w, "renew_on_use", true);         /* no tool renews the lease */
	}
	if (is_exec) {
		json_member_bool(c->w, "interrupt", true);
		keep_only(c->wanted, setting_by_key("timeout"));
	}
	profile_put(c->w, &c->config, c->wanted);
	return 0;
}

static int write_request(struct call *c, const struct json_node *arguments, struct cj_error *err)
{
	if (check_required(c->tool, arguments, err) < 0)
		return -err->code;
	json_open_object(c->w);
	for (const struct json_node *m = arguments->child; m; m = m->next)
		if (take_argument(c, m, err) < 0)
			return -err->code;
	if (check_limits(c, arguments, err) < 0 || put_rest(c, arguments, err) < 0)
		return -err->code;
	json_close_object(c->w);
	return 0;
}

int mcp_arguments_write(struct json_writer *w, const struct mcp_tool *tool,
			const struct mcp_given *given, const struct json_node *arguments,
			struct mcp_plan *plan, struct cj_error *err)
{
	auto_free bool *wanted = calloc(settings_count, sizeof(*wanted));
	struct call c = { .tool = tool,
			  .wanted = wanted,
			  .w = w,
			  .plan = plan,
			  .profile = given->session_profile };

	plan->session[0] = '\0';
	if (!wanted)
		return cj_fail(err, ENOMEM, "read the arguments");
	memcpy(wanted, given->wanted, settings_count * sizeof(*wanted));
	int rc = config_copy(&c.config, given->config, err);
	if (rc == 0)
		rc = write_request(&c, arguments, err);
	config_fini(&c.config);
	return rc;
}
