/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of tools/call, checked and rewritten.  Pure. */
#include "runtime/front/mcp/protocol/mcp_arguments.h"

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
};

static int no_memory(struct cj_error *err)
{
	return cj_fail(err, ENOMEM, "read the arguments");
}

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
	json_put_key(w, key);
	json_put_node(w, node);
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

static int lower_timeout(struct call *c, const struct json_node *node, struct cj_error *err)
{
	uint64_t max_ms = c->tool->wall_ms;
	char text[32];

	if (need_type(node, node->key, JSON_NUMBER, err) < 0)
		return -err->code;
	if (want(c, "timeout", node->text, err) < 0)
		return cj_reject(err, "'timeout_seconds' must be a number of seconds above 0, "
				      "like 2.5");
	if (max_ms == 0 || c->config.wall_ms <= max_ms)
		return 0;
	text_format_duration(max_ms, text, sizeof(text));
	return cj_reject(err, "'timeout_seconds' is above the limit of this tool, which is %s",
			 text);
}

static int lower_memory(struct call *c, const struct json_node *node, struct cj_error *err)
{
	uint64_t max_bytes = c->tool->memory_bytes;
	char text[32];

	if (need_type(node, node->key, JSON_STRING, err) < 0 ||
	    want(c, "memory", node->text, err) < 0)
		return -err->code;
	if (max_bytes == 0 || c->config.memory_bytes <= max_bytes)
		return 0;
	text_format_size(max_bytes, text, sizeof(text));
	return cj_reject(err, "'memory' is above the limit of this tool, which is %s", text);
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

static int refuse_session(struct call *c, const struct json_node *node, struct cj_error *err)
{
	(void)c;
	(void)node;
	return cj_reject(err, "'session': there are no sessions in this version; put all code and "
			      "data into one call, and leave 'session' out");
}

static const struct argument {
	const char *name;
	int (*take)(struct call *c, const struct json_node *node, struct cj_error *err);
} known[] = {
	{ "code", put_text },          { "args", put_args },
	{ "argv", put_argv },          { "stdin", put_text },
	{ "files", put_files },        { "timeout_seconds", lower_timeout },
	{ "memory", lower_memory },    { "network", lower_network },
	{ "session", refuse_session },
};
#define KNOWN (sizeof(known) / sizeof(known[0]))

static int refuse_unknown(const char *name, struct cj_error *err)
{
	const char *names[KNOWN + 1] = { NULL };

	for (size_t i = 0; i < KNOWN; i++)
		names[i] = known[i].name;
	const char *near = text_nearest(name, names);
	if (near)
		return cj_reject(err, "unknown argument '%.64s'; did you mean '%s'?", name, near);
	return cj_reject(err, "unknown argument '%.64s'; see the input schema of the tool", name);
}

static int take_argument(struct call *c, const struct json_node *node, struct cj_error *err)
{
	for (size_t i = 0; i < KNOWN; i++)
		if (strcmp(known[i].name, node->key) == 0)
			return known[i].take(c, node, err);
	return refuse_unknown(node->key, err);
}

/* --- the request ------------------------------------------------------------------ */

static int write_request(struct call *c, const struct json_node *arguments, const char *run_id,
			 struct cj_error *err)
{
	if (!mcp_member(arguments, "code"))
		return cj_reject(err, "'code' is missing: it is the whole program");
	json_open_object(c->w);
	json_member_text(c->w, "profile", c->tool->profile);
	json_member_text(c->w, "id", run_id);
	for (const struct json_node *m = arguments->child; m; m = m->next)
		if (take_argument(c, m, err) < 0)
			return -err->code;
	json_member_bool(c->w, "artifacts", true);
	profile_put(c->w, &c->config, c->wanted);
	json_close_object(c->w);
	return 0;
}

int mcp_arguments_write(struct json_writer *w, const struct mcp_tool *tool,
			const struct mcp_given *given, const struct json_node *arguments,
			const char *run_id, struct cj_error *err)
{
	auto_free bool *wanted = calloc(settings_count, sizeof(*wanted));
	struct call c = { .tool = tool, .wanted = wanted, .w = w };

	if (!wanted)
		return no_memory(err);
	memcpy(wanted, given->wanted, settings_count * sizeof(*wanted));
	int rc = config_copy(&c.config, given->config, err);
	if (rc == 0)
		rc = write_request(&c, arguments, run_id, err);
	config_fini(&c.config);
	return rc;
}
