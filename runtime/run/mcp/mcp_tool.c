/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tools as tools/list shows them.  tools.json has their texts and schemas, and is part of the
 * program; what depends on the settings are values here, which it names.
 */
#include "runtime/run/mcp/mcp_tool.h"

#include <inttypes.h>

#include "netns/uplink/uplink.h"
#include "runtime/base/json/json_template.h"
#include "runtime/base/text.h"
#include "runtime/run/options/operands.h"

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
	[MCP_TOOL_SESSION_NETWORK] = "session_network",
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

#define SIZE_MAX_TEXT 32

/* NULL: the tool has no such value. */
static struct json_value text_value(const char *name, const char *text)
{
	return (struct json_value){ name, text ? JSON_VALUE_TEXT : JSON_VALUE_NONE, .text = text };
}

static struct json_value bool_value(const char *name, bool is_true)
{
	return (struct json_value){ name, JSON_VALUE_BOOL, .number = is_true };
}

static const char *size_text(uint64_t bytes, char out[static SIZE_MAX_TEXT])
{
	return is_limited(bytes) ? text_format_size(bytes, out, SIZE_MAX_TEXT) : NULL;
}

static int put_tool(struct json_writer *w, struct json_template *template, const struct mcp_tool *t,
		    enum mcp_era era, struct cj_error *err)
{
	const struct ceilings *l = &t->limits;
	const bool is_run = t->kind == MCP_TOOL_RUN, has_runs = t->nruns > 0;
	const bool has_network = t->has_network, changes_host = t->writes_host || t->reaches_host;
	const bool has_uplink = has_network && !t->lacks_uplink;
	const uint64_t text_max = mcp_tool_text_max(t);
	const bool keeps_less = is_limited(l->output_bytes) && l->output_bytes < text_max;
	char time[SIZE_MAX_TEXT] = "none", cpus[SIZE_MAX_TEXT], memory[SIZE_MAX_TEXT],
	     disk[SIZE_MAX_TEXT], output[SIZE_MAX_TEXT], max_memory[SIZE_MAX_TEXT];
	struct ceilings most = *l; /* that any call of the tool may ask for */

	if (!is_run)
		merge_runs(t, false, &most);
	if (is_limited(l->wall_ms))
		text_format_duration(l->wall_ms, time, sizeof(time));
	(void)snprintf(cpus, sizeof(cpus), "%" PRIu64 ".%02" PRIu64, l->millicpus / 1000,
		       l->millicpus % 1000 / 10);
	const struct json_value values[] = {
		text_value("name", t->name),
		text_value("profile", t->profile),
		text_value("about", t->about),
		text_value("value_path", t->value_path),
		text_value("calls", t->calls),
		text_value("first_run", has_runs ? t->runs[0].name : NULL),
		text_value("owner", is_run ? "this tool" : "the profile"),
		bool_value("has_sessions", t->has_sessions),
		bool_value("stores_files", t->stores_files),
		bool_value("has_titles", era != MCP_ERA_OLD),
		{ "profiles", JSON_VALUE_TEXTS, .texts = has_runs ? &t->runs[0].profile : NULL,
		  .stride = sizeof(t->runs[0]), .count = t->nruns },
		text_value("time", time),
		text_value("cpus", is_limited(l->millicpus) ? cpus : NULL),
		text_value("memory", size_text(l->memory_bytes, memory)),
		text_value("disk", size_text(l->disk_bytes, disk)),
		text_value("output", size_text(keeps_less ? l->output_bytes : text_max, output)),
		text_value("max_memory", size_text(most.memory_bytes, max_memory)),
		{ "max_seconds", is_limited(most.wall_ms) ? JSON_VALUE_MILLI : JSON_VALUE_NONE,
		  .number = most.wall_ms },
		{ "image_max", JSON_VALUE_U64, .number = MCP_IMAGE_MAX },
		bool_value("has_network", has_network),
		bool_value("no_network", !has_network),
		bool_value("lacks_uplink", has_network && t->lacks_uplink),
		bool_value("is_allow_list", has_uplink && t->has_allow_list),
		bool_value("is_public", has_uplink && !t->has_allow_list),
		bool_value("is_read_only", !changes_host && !has_network && !t->stores_files),
		bool_value("changes_host", changes_host),
		bool_value("is_open", has_network || t->reaches_host),
	};

	template->values = values;
	template->nvalues = COUNT_OF(values);
	return json_template_write(w, template, kind_names[t->kind], err);
}

int mcp_tools_put(struct json_writer *w, const struct mcp_tool *tools, size_t count,
		  enum mcp_era era, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	struct json_template template = { .name = "tools.json" };
	int rc = json_parse(template.name, tools_start, (size_t)(tools_end - tools_start), &a,
			    &template.root, err);

	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = put_tool(w, &template, &tools[i], era, err);
	return rc;
}

const char *const mcp_profiles_standard[] = { "python", "node", "shell", NULL };

bool mcp_profiles_has_interpreter(const struct config *c)
{
	const char *name = c->command.count > 0 ? c->command.items[0] : NULL;

	if (name && name[0] == '{')
		name = c->command.items[1];
	return !name || strchr(name, '/') || strcmp(c->rootfs, "host") != 0 ||
	       operands_is_command(name);
}

bool mcp_profiles_has_uplink(const struct config *c)
{
	static const enum uplink_kind kinds[] = { UPLINK_HOST, UPLINK_PASTA, UPLINK_SLIRP4NETNS };
	struct cj_error unavailable = { 0 };

	for (size_t i = 0; i < COUNT_OF(kinds); i++)
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
	bool has_network = false;

	for (size_t i = 0; i < nruns; i++) {
		tools[i].has_sessions = true;
		has_network |= tools[i].has_network;
	}
	for (size_t i = MCP_TOOL_SESSION_CREATE; i < MCP_TOOL_KIND_COUNT; i++)
		if (has_network || i != MCP_TOOL_SESSION_NETWORK)
			mcp_tool_init_session(&tools[(*count)++], (enum mcp_tool_kind)i, prefix,
					      tools, nruns);
}
