/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tools as tools/list shows them.  tools.json has their texts and schemas, and is part of the
 * program; what depends on the settings are values here, which it names.
 */
#include "runtime/run/mcp/mcp_tool.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/text.h"
#include "runtime/run/mcp/text/mcp_prose.h"

/* The Makefile makes an object of the file. */
extern const char tools_start[] __asm__("_binary_runtime_run_mcp_tools_json_start");
extern const char tools_end[] __asm__("_binary_runtime_run_mcp_tools_json_end");

/* A member of tools.json for each; those of sessions are also the tools' names. */
static const char *const kind_names[MCP_TOOL_KIND_COUNT] = {
	[MCP_TOOL_RUN] = "run",
	[MCP_TOOL_SESSION_CREATE] = "session_create",
	[MCP_TOOL_SESSION_EXEC] = "session_exec",
	[MCP_TOOL_SESSION_PUT_FILE] = "session_put_file",
	[MCP_TOOL_SESSION_GET_FILE] = "session_get_file",
	[MCP_TOOL_SESSION_LIST_FILES] = "session_list_files",
	[MCP_TOOL_SESSION_END] = "session_end",
};

void mcp_tool_init_session(struct mcp_tool *t, enum mcp_tool_kind kind, const char *prefix,
			   const struct mcp_tool *runs, size_t nruns)
{
	*t = (struct mcp_tool){ .kind = kind,
				.text_max = nruns > 0 ? runs[0].text_max : 0,
				.runs = runs,
				.nruns = nruns,
				.has_sessions = true };
	(void)snprintf(t->name, sizeof(t->name), "%s%s", prefix, kind_names[kind]);
}

/* --- limits ------------------------------------------------------------------------ */

static const struct mcp_tool *find_run(const struct mcp_tool *tool, const char *profile)
{
	for (size_t i = 0; profile && i < tool->nruns; i++)
		if (strcmp(tool->runs[i].profile, profile) == 0)
			return &tool->runs[i];
	return NULL;
}

static void merge_runs(const struct mcp_tool *tool, bool to_lowest, struct ceilings *out)
{
	*out = tool->nruns > 0 ? tool->runs[0].limits : (struct ceilings){ 0 };
	for (size_t i = 1; i < tool->nruns; i++)
		rights_ceilings_merge(out, &tool->runs[i].limits, to_lowest);
}

void mcp_tool_limits(const struct mcp_tool *tool, const char *profile, struct ceilings *out)
{
	const struct mcp_tool *run = tool->kind == MCP_TOOL_RUN ? tool : find_run(tool, profile);

	if (run)
		*out = run->limits;
	else
		merge_runs(tool, true, out);
}

/* The most that any call of the tool may ask for. */
static void find_most(const struct mcp_tool *tool, struct ceilings *out)
{
	if (tool->kind == MCP_TOOL_RUN)
		*out = tool->limits;
	else
		merge_runs(tool, false, out);
}

uint64_t mcp_tool_text_max(const struct mcp_tool *tool)
{
	return tool->text_max > 0 ? tool->text_max : MCP_TEXT_DEFAULT;
}

static bool is_limited(uint64_t value)
{
	return value > 0 && value < CEILING_NONE;
}

/* --- the values that tools.json names --------------------------------------------- */

enum value_kind { VALUE_NONE, VALUE_TEXT, VALUE_TRUE, VALUE_FALSE, VALUE_MILLI, VALUE_PROFILES };

struct value {
	const char *name;
	enum value_kind kind;
	const char *text;
	uint64_t milli;
};
#define VALUES_MAX    32
#define SIZE_MAX_TEXT 32

struct values {
	const struct mcp_tool *tool;
	struct value items[VALUES_MAX];
	size_t count;
	char time[SIZE_MAX_TEXT], cpus[SIZE_MAX_TEXT], memory[SIZE_MAX_TEXT], disk[SIZE_MAX_TEXT],
	    output[SIZE_MAX_TEXT], max_memory[SIZE_MAX_TEXT];
};

static void add(struct values *v, const char *name, enum value_kind kind, const char *text,
		uint64_t milli)
{
	assert(v->count < VALUES_MAX);
	v->items[v->count++] = (struct value){ name, kind, text, milli };
}

/* NULL: the tool has no such value. */
static void add_text(struct values *v, const char *name, const char *text)
{
	add(v, name, text ? VALUE_TEXT : VALUE_NONE, text, 0);
}

static void add_bool(struct values *v, const char *name, bool is_true)
{
	add(v, name, is_true ? VALUE_TRUE : VALUE_FALSE, NULL, 0);
}

static const char *size_text(uint64_t bytes, char out[static SIZE_MAX_TEXT])
{
	if (!is_limited(bytes))
		return NULL;
	text_format_size(bytes, out, SIZE_MAX_TEXT);
	return out;
}

static void add_limits(struct values *v)
{
	const struct mcp_tool *t = v->tool;
	const struct ceilings *l = &t->limits;
	uint64_t text_max = mcp_tool_text_max(t);
	struct ceilings most;

	find_most(t, &most);
	(void)snprintf(v->time, sizeof(v->time), "none");
	if (is_limited(l->wall_ms))
		text_format_duration(l->wall_ms, v->time, sizeof(v->time));
	add_text(v, "time", v->time);
	(void)snprintf(v->cpus, sizeof(v->cpus), "%" PRIu64 ".%02" PRIu64, l->millicpus / 1000,
		       l->millicpus % 1000 / 10);
	add_text(v, "cpus", is_limited(l->millicpus) ? v->cpus : NULL);
	add_text(v, "memory", size_text(l->memory_bytes, v->memory));
	add_text(v, "disk", size_text(l->disk_bytes, v->disk));
	bool keeps_less = is_limited(l->output_bytes) && l->output_bytes < text_max;
	add_text(v, "output", size_text(keeps_less ? l->output_bytes : text_max, v->output));
	add_text(v, "max_memory", size_text(most.memory_bytes, v->max_memory));
	add(v, "max_seconds", is_limited(most.wall_ms) ? VALUE_MILLI : VALUE_NONE, NULL,
	    most.wall_ms);
	add(v, "image_max", VALUE_MILLI, NULL, MCP_IMAGE_MAX * UINT64_C(1000));
}

static void add_network(struct values *v)
{
	const struct mcp_tool *t = v->tool;
	bool changes_host = t->writes_host || t->reaches_host;
	bool has_uplink = t->has_network && !t->lacks_uplink;

	add_bool(v, "has_network", t->has_network);
	add_bool(v, "no_network", !t->has_network);
	add_bool(v, "lacks_uplink", t->has_network && t->lacks_uplink);
	add_bool(v, "is_allow_list", has_uplink && t->has_allow_list);
	add_bool(v, "is_public", has_uplink && !t->has_allow_list);
	add_bool(v, "is_read_only", !changes_host && !t->has_network && !t->stores_files);
	add_bool(v, "changes_host", changes_host);
	add_bool(v, "is_open", t->has_network || t->reaches_host);
}

static void find_values(struct values *v, const struct mcp_tool *t)
{
	v->tool = t;
	v->count = 0;
	add_text(v, "name", t->name);
	add_text(v, "profile", t->profile);
	add_text(v, "about", t->about);
	add_text(v, "value_path", t->value_path);
	add_text(v, "owner", t->kind == MCP_TOOL_RUN ? "this tool" : "the profile");
	add_bool(v, "has_sessions", t->has_sessions);
	add_bool(v, "stores_files", t->stores_files);
	add(v, "profiles", VALUE_PROFILES, NULL, 0);
	add_limits(v);
	add_network(v);
}

/* Every name in tools.json is one of ours: the unit tests write all tools. */
static const struct value *find_value(const struct values *v, const char *name, size_t size)
{
	for (size_t i = 0; i < v->count; i++)
		if (strlen(v->items[i].name) == size && memcmp(v->items[i].name, name, size) == 0)
			return &v->items[i];
	assert(!"a value that the tools do not have");
	return NULL;
}

/* Of an object with "if": whether the tool has that value. */
static bool holds(const struct values *v, const struct json_node *node)
{
	const char *name = json_get_text(node, "if");
	const struct value *value = name ? find_value(v, name, strlen(name)) : NULL;

	return !name || (value->kind != VALUE_NONE && value->kind != VALUE_FALSE);
}

/* The value that is the whole of a string, as in "{max_seconds}"; NULL: it is another text. */
static const struct value *whole_value(const struct values *v, const struct json_node *node)
{
	size_t size = node->type == JSON_STRING ? strcspn(node->text, "}") : 0;

	if (size < 2 || node->text[0] != '{' || node->text[size] != '}' || node->text[size + 1])
		return NULL;
	return find_value(v, node->text + 1, size - 1);
}

/* --- writing --------------------------------------------------------------------- */

static void say(struct mcp_prose *p, const struct values *v, const char *text)
{
	while (*text) {
		size_t plain = strcspn(text, "{");
		mcp_say(p, "%.*s", (int)plain, text);
		text += plain;
		if (*text) {
			size_t size = strcspn(++text, "}");
			mcp_say(p, "%s", find_value(v, text, size)->text);
			text += size + 1;
		}
	}
}

/* A text, or the parts of one. */
static void put_description(struct json_writer *w, const struct values *v,
			    const struct json_node *node)
{
	struct mcp_prose p = { .size = 0 };

	if (node->type == JSON_STRING)
		say(&p, v, node->text);
	for (const struct json_node *part = node->child; part; part = part->next) {
		if (part->type == JSON_STRING)
			say(&p, v, part->text);
		else if (holds(v, part))
			say(&p, v, json_get_text(part, "say"));
	}
	json_put_string(w, p.text);
}

static void put_value(struct json_writer *w, const struct values *v, const struct value *value)
{
	switch (value->kind) {
	case VALUE_TRUE:
	case VALUE_FALSE:
		json_put_bool(w, value->kind == VALUE_TRUE);
		break;
	case VALUE_MILLI:
		json_put_milli(w, value->milli);
		break;
	case VALUE_PROFILES:
		json_open_array(w);
		for (size_t i = 0; i < v->tool->nruns; i++)
			json_put_string(w, v->tool->runs[i].profile);
		json_close_array(w);
		break;
	case VALUE_NONE:
	case VALUE_TEXT:
		json_put_string(w, value->text);
		break;
	}
}

/* What walks through tools.json. */
struct template
{
	struct json_writer *w;
	struct values values;
	const struct json_node *groups;
	enum mcp_era era;
};

static void put_members(struct template *t, const struct json_node *object, unsigned depth);

/* tools.json nests less than JSON_DEPTH_MAX levels, and no group uses itself. */
static void put_member(struct template *t, const struct json_node *node, unsigned depth)
{
	const struct value *value = whole_value(&t->values, node);

	if (strncmp(node->key, "use ", 4) == 0) {
		put_members(t, json_get(t->groups, node->key + 4), depth);
		return;
	}
	if (!holds(&t->values, node) || (value && value->kind == VALUE_NONE))
		return;
	if (depth == 0 && t->era == MCP_ERA_OLD &&
	    (strcmp(node->key, "title") == 0 || strcmp(node->key, "outputSchema") == 0))
		return;
	const struct json_node *then = json_get_typed(node, "then", JSON_OBJECT);
	json_put_key(t->w, node->key);
	if (value) {
		put_value(t->w, &t->values, value);
	} else if (node->type == JSON_OBJECT) {
		json_open_object(t->w);
		put_members(t, then ? then : node, depth + 1);
		json_close_object(t->w);
	} else if (strcmp(node->key, "description") == 0 || strcmp(node->key, "title") == 0) {
		put_description(t->w, &t->values, node);
	} else {
		json_put_node(t->w, node);
	}
}

static void put_members(struct template *t, const struct json_node *object, unsigned depth)
{
	for (const struct json_node *m = object->child; m; m = m->next)
		put_member(t, m, depth);
}

int mcp_tool_put(struct json_writer *w, const struct mcp_tool *tool, enum mcp_era era,
		 struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	struct template t = { .w = w, .era = era };
	const struct json_node *root = NULL;

	if (json_parse("tools.json", tools_start, (size_t)(tools_end - tools_start), &a, &root,
		       err) < 0)
		return -err->code;
	t.groups = json_get(root, "groups");
	find_values(&t.values, tool);
	json_open_object(w);
	put_members(&t, json_get(root, kind_names[tool->kind]), 0);
	json_close_object(w);
	return 0;
}
