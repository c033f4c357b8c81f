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
#include <unistd.h>

#include "netns/uplink/uplink.h"
#include "runtime/base/json/json_template.h"
#include "runtime/base/text.h"
#include "runtime/run/mcp/mcp_text.h"

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

static void merge_runs(const struct mcp_tool *tool, bool to_lowest, struct ceilings *out)
{
	*out = tool->nruns > 0 ? tool->runs[0].limits : (struct ceilings){ 0 };
	for (size_t i = 1; i < tool->nruns; i++)
		rights_ceilings_merge(out, &tool->runs[i].limits, to_lowest);
}

void mcp_tool_limits(const struct mcp_tool *tool, const char *profile, struct ceilings *out)
{
	const struct mcp_tool *run = tool->kind == MCP_TOOL_RUN ? tool : NULL;

	for (size_t i = 0; profile && !run && i < tool->nruns; i++)
		if (strcmp(tool->runs[i].profile, profile) == 0)
			run = &tool->runs[i];
	if (run)
		*out = run->limits;
	else
		merge_runs(tool, true, out);
}

uint64_t mcp_tool_text_max(const struct mcp_tool *tool)
{
	return tool->text_max > 0 ? tool->text_max : MCP_TEXT_DEFAULT;
}

static bool is_limited(uint64_t value)
{
	return value > 0 && value < CEILING_NONE;
}

#define VALUES_MAX    32
#define SIZE_MAX_TEXT 32

struct values {
	const struct mcp_tool *tool;
	struct json_value items[VALUES_MAX];
	size_t count;
	char time[SIZE_MAX_TEXT], cpus[SIZE_MAX_TEXT], memory[SIZE_MAX_TEXT], disk[SIZE_MAX_TEXT],
	    output[SIZE_MAX_TEXT], max_memory[SIZE_MAX_TEXT];
};

static void add(struct values *v, struct json_value value)
{
	assert(v->count < VALUES_MAX);
	v->items[v->count++] = value;
}

/* NULL: the tool has no such value. */
static void add_text(struct values *v, const char *name, const char *text)
{
	add(v, (struct json_value){ name, text ? JSON_VALUE_TEXT : JSON_VALUE_NONE, .text = text });
}

static void add_bool(struct values *v, const char *name, bool is_true)
{
	add(v, (struct json_value){ name, JSON_VALUE_BOOL, .number = is_true });
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
	struct ceilings most = *l; /* that any call of the tool may ask for */

	if (t->kind != MCP_TOOL_RUN)
		merge_runs(t, false, &most);
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
	add(v, (struct json_value){ "max_seconds",
				    is_limited(most.wall_ms) ? JSON_VALUE_MILLI : JSON_VALUE_NONE,
				    .number = most.wall_ms });
	add(v, (struct json_value){ "image_max", JSON_VALUE_U64, .number = MCP_IMAGE_MAX });
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

static void find_values(struct values *v, const struct mcp_tool *t, enum mcp_era era)
{
	v->tool = t;
	v->count = 0;
	add_text(v, "name", t->name);
	add_text(v, "profile", t->profile);
	add_text(v, "about", t->about);
	add_text(v, "value_path", t->value_path);
	add_text(v, "calls", t->calls);
	add_text(v, "first_run", t->nruns > 0 ? t->runs[0].name : NULL);
	add_text(v, "owner", t->kind == MCP_TOOL_RUN ? "this tool" : "the profile");
	add_bool(v, "has_sessions", t->has_sessions);
	add_bool(v, "stores_files", t->stores_files);
	add_bool(v, "has_titles", era != MCP_ERA_OLD);
	add(v, (struct json_value){ "profiles", JSON_VALUE_TEXTS,
				    .texts = t->nruns > 0 ? &t->runs[0].profile : NULL,
				    .stride = sizeof(t->runs[0]), .count = t->nruns });
	add_limits(v);
	add_network(v);
}

int mcp_tools_put(struct json_writer *w, const struct mcp_tool *tools, size_t count,
		  enum mcp_era era, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	struct json_template template = { .name = "tools.json" };
	int rc = json_parse(template.name, tools_start, (size_t)(tools_end - tools_start), &a,
			    &template.root, err);

	for (size_t i = 0; rc == 0 && i < count; i++) {
		struct values values;
		find_values(&values, &tools[i], era);
		template.values = values.items;
		template.nvalues = values.count;
		rc = json_template_write(w, &template, kind_names[tools[i].kind], err);
	}
	return rc;
}

const char *const mcp_profiles_standard[] = { "python", "node", "shell", NULL };

bool mcp_profiles_has_interpreter(const struct config *c)
{
	static const char *const places[] = { "/usr/local/bin", "/usr/bin", "/bin" };
	const char *name = c->command.count > 0 ? c->command.items[0] : NULL;
	char path[128];

	if (name && name[0] == '{')
		name = c->command.items[1];
	if (!name || strchr(name, '/') || strcmp(c->rootfs, "host") != 0)
		return true;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", places[i], name);
		if (access(path, X_OK) == 0)
			return true;
	}
	return false;
}

bool mcp_profiles_has_uplink(const struct config *c)
{
	static const enum uplink_kind kinds[] = { UPLINK_HOST, UPLINK_PASTA, UPLINK_SLIRP4NETNS };
	struct cj_error unavailable = { 0 };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if ((c->uplink == UPLINK_AUTO || c->uplink == kinds[i]) &&
		    uplink_probe(kinds[i], NULL, &unavailable) == 0)
			return true;
	return false;
}

int mcp_profiles_describe(struct mcp_tool *t, const char *prefix, const char *profile,
			  const struct config *c, const char *about, struct arena *a,
			  struct cj_error *err)
{
	(void)snprintf(t->name, sizeof(t->name), "%srun_%s", prefix, profile);
	t->profile = profile;
	rights_ceilings_of(c, &t->limits);
	t->has_network = c->network == NETWORK_PUBLIC;
	t->has_allow_list = c->allow.count > 0;
	t->writes_host = c->binds.count > 0;
	t->reaches_host = c->connects.count > 0;
	t->about = about ? arena_strdup(a, about) : NULL;
	t->value_path = c->value_path ? arena_strdup(a, c->value_path) : NULL;
	if ((about && !t->about) || (c->value_path && !t->value_path))
		return cj_fail(err, ENOMEM, "describe the tools");
	return 0;
}

void mcp_profiles_add_sessions(struct mcp_tool *tools, size_t *count, const char *prefix)
{
	size_t nruns = *count;

	for (size_t i = 0; i < nruns; i++)
		tools[i].has_sessions = true;
	for (size_t i = MCP_TOOL_SESSION_CREATE; i < MCP_TOOL_KIND_COUNT; i++)
		mcp_tool_init_session(&tools[(*count)++], (enum mcp_tool_kind)i, prefix, tools,
				      nruns);
}
