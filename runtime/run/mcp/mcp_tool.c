/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions, schemas and annotations of tools.  Pure. */
#include "runtime/run/mcp/mcp_tool.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/text.h"
#include "runtime/run/mcp/text/mcp_prose.h"
#include "runtime/run/mcp/text/mcp_schema.h"
#include "runtime/run/mcp/mcp_session_tool.h"

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

/* --- the description ------------------------------------------------------------- */

static void say_size(struct mcp_prose *p, const char *what, uint64_t bytes)
{
	char text[32];

	if (!is_limited(bytes))
		return;
	text_format_size(bytes, text, sizeof(text));
	mcp_say(p, "; %s: %s", what, text);
}

static void say_limits(struct mcp_prose *p, const struct mcp_tool *t)
{
	const struct ceilings *l = &t->limits;
	char text[32];

	mcp_say(p, " Limits of a call: time: ");
	if (is_limited(l->wall_ms)) {
		text_format_duration(l->wall_ms, text, sizeof(text));
		mcp_say(p, "%s", text);
	} else {
		mcp_say(p, "none");
	}
	if (is_limited(l->millicpus))
		mcp_say(p, "; CPUs: %" PRIu64 ".%02" PRIu64, l->millicpus / 1000,
			l->millicpus % 1000 / 10);
	say_size(p, "memory", l->memory_bytes);
	say_size(p, "files", l->disk_bytes);
	mcp_say(p, ".");
}

static void say_output(struct mcp_prose *p, const struct mcp_tool *t)
{
	uint64_t kept = t->limits.output_bytes, most = mcp_tool_text_max(t);
	char text[32];

	text_format_size(is_limited(kept) && kept < most ? kept : most, text, sizeof(text));
	mcp_say(p, " Of stdout and of stderr the answer has at most %s, their beginning and end.",
		text);
}

static void say_network(struct mcp_prose *p, const struct mcp_tool *t)
{
	if (!t->has_network)
		mcp_say(p, " There is no network; do not try what needs one.");
	else if (t->lacks_uplink)
		mcp_say(p, " There is no network here, because this host has no uplink; do not "
			   "try what needs one.");
	else if (t->has_allow_list)
		mcp_say(p, " The network reaches only destinations that the user has allowed.");
	else
		mcp_say(p, " The network reaches the public Internet, but no private or local "
			   "addresses.");
}

static void describe(struct mcp_prose *p, const struct mcp_tool *t)
{
	mcp_say(p, "Runs code in a sandbox and returns its output");
	if (t->about)
		mcp_say(p, ". Profile '%s': %s", t->profile, t->about);
	mcp_say(p,
		". Each call starts in a new, empty sandbox: nothing remains of an earlier call%s. "
		"Write results to standard output.",
		t->has_sessions ? ", unless 'session' names one" : "");
	mcp_say(p, " The program finds 'files' below /box, and 'args' as JSON in /box/args.json. "
		   "The answer contains the files that it writes to /box/out.");
	if (t->stores_files)
		mcp_say(p, " Larger files are linked.");
	if (t->value_path)
		mcp_say(p, " To return a value, the program writes it as JSON to %s.",
			t->value_path);
	say_limits(p, t);
	say_output(p, t);
	say_network(p, t);
}

/* --- the schemas ----------------------------------------------------------------- */

static void put_file_schema(struct json_writer *w)
{
	static const char *const required[] = { "path", NULL };

	mcp_schema_open(w, "files", "array", "Files to create before the program starts.");
	json_put_key(w, "items");
	mcp_schema_open_object(w);
	mcp_schema_put(w, "path", "string", "Absolute, or relative to /box.");
	mcp_schema_put(w, "text", "string", "The content; or give base64.");
	mcp_schema_put(w, "base64", "string", "The content of a binary file.");
	json_close_object(w);
	mcp_schema_put_required(w, required);
	json_close_object(w);
	json_close_object(w);
}

static void put_timeout_schema(struct json_writer *w, const struct mcp_tool *t)
{
	struct ceilings most;

	find_most(t, &most);
	mcp_schema_open(w, "timeout_seconds", "number",
			t->kind == MCP_TOOL_RUN
			    ? "Ends the program earlier than the limit of this tool would."
			    : "Ends the program earlier than the limit of the profile would.");
	json_put_key(w, "exclusiveMinimum");
	json_put_u64(w, 0);
	if (is_limited(most.wall_ms)) {
		json_put_key(w, "maximum");
		json_put_milli(w, most.wall_ms);
	}
	json_close_object(w);
}

/* A pattern can't have a maximum, so the text has it. */
void mcp_tool_put_memory_input(struct json_writer *w, const struct mcp_tool *t)
{
	struct mcp_prose text = { .size = 0 };
	struct ceilings most;
	char size[32];

	find_most(t, &most);
	mcp_say(&text, "A lower memory limit than that of %s: \"64M\".",
		t->kind == MCP_TOOL_RUN ? "this tool" : "the profile");
	if (is_limited(most.memory_bytes)) {
		text_format_size(most.memory_bytes, size, sizeof(size));
		mcp_say(&text, " The maximum is %s.", size);
	}
	mcp_schema_open(w, "memory", "string", text.text);
	json_member_text(w, "pattern", "^[0-9]+[KMG]?$");
	json_close_object(w);
}

static void put_network_schema(struct json_writer *w)
{
	static const char *const values[] = { "none", NULL };

	mcp_schema_put_enum(w, "network", values, "\"none\": run without a network.");
}

void mcp_tool_put_program_input(struct json_writer *w, const struct mcp_tool *t)
{
	mcp_schema_put(w, "args", NULL,
		       "Data for the program: any JSON value, written to /box/args.json.");
	mcp_schema_put_list(w, "argv", "Command line arguments of the program.");
	mcp_schema_put(w, "stdin", "string", "Standard input of the program.");
	put_file_schema(w);
	put_timeout_schema(w, t);
}

static void put_input_schema(struct json_writer *w, const struct mcp_tool *t)
{
	static const char *const required[] = { "code", NULL };

	json_put_key(w, "inputSchema");
	mcp_schema_open_object(w);
	mcp_schema_put(w, "code", "string", "The whole program.");
	mcp_tool_put_program_input(w, t);
	mcp_tool_put_memory_input(w, t);
	if (t->has_network)
		put_network_schema(w);
	if (t->has_sessions)
		mcp_schema_put(w, "session", "string",
			       "Run in this session, which session_create has made.");
	json_close_object(w);
	mcp_schema_put_required(w, required);
	json_close_object(w);
}

static void put_files_output(struct json_writer *w)
{
	static const char *const required[] = { "path", "bytes", "type", NULL };

	mcp_schema_open(w, "files", "array", "New and changed files in /box/out.");
	json_put_key(w, "items");
	mcp_schema_open_object(w);
	mcp_schema_put(w, "path", "string", NULL);
	mcp_schema_put(w, "bytes", "integer", NULL);
	mcp_schema_put(w, "type", "string", "The media type, by content.");
	mcp_schema_put(w, "uri", "string", "Where the file is.");
	json_close_object(w);
	mcp_schema_put_required(w, required);
	json_close_object(w);
	json_close_object(w);
}

static void put_usage_output(struct json_writer *w)
{
	static const char *const required[] = { "wall_ms", "cpu_ms", NULL };

	json_put_key(w, "usage");
	mcp_schema_open_object(w);
	mcp_schema_put(w, "wall_ms", "integer", NULL);
	mcp_schema_put(w, "cpu_ms", "integer", NULL);
	mcp_schema_put(w, "memory_peak_bytes", "integer", NULL);
	json_close_object(w);
	mcp_schema_put_required(w, required);
	json_close_object(w);
}

static void put_session_output(struct json_writer *w)
{
	mcp_schema_put(w, "session", "string", "The session that the program ran in.");
	mcp_schema_put(w, "last_value", "string",
		       "In an interpreter: the value of the last expression, as text.");
}

void mcp_tool_put_result_output(struct json_writer *w, const struct mcp_tool *t)
{
	static const char *const required[] = { "status",  "stdout", "stderr",     "truncated",
						"files",   "usage",  "limits_hit", "denied",
						"message", "run_id", NULL };

	json_put_key(w, "outputSchema");
	mcp_schema_open_object(w);
	mcp_schema_put(w, "status", "string",
		       "exited, signaled, timeout, cpu_limit, oom, output_limit, cancelled or "
		       "setup_error.");
	mcp_schema_put(w, "exit_code", "integer", "Only with the status exited.");
	mcp_schema_put(w, "signal", "integer", "Only with the status signaled.");
	mcp_schema_put(w, "stdout", "string", NULL);
	mcp_schema_put(w, "stderr", "string", NULL);
	mcp_schema_put(w, "truncated", "boolean", "The middle of stdout or of stderr is missing.");
	if (t->value_path)
		mcp_schema_put(w, "value", NULL, "The value that the program returned.");
	if (t->has_sessions)
		put_session_output(w);
	put_files_output(w);
	put_usage_output(w);
	mcp_schema_put_list(w, "limits_hit", "The limits that the program reached.");
	mcp_schema_put_list(w, "denied", "What the sandbox refused.");
	mcp_schema_put_list(w, "warnings", NULL);
	mcp_schema_put(w, "message", "string", "What happened, and what to change.");
	mcp_schema_put(w, "run_id", "string", NULL);
	json_close_object(w);
	mcp_schema_put_required(w, required);
	json_close_object(w);
}

/* --- the tool -------------------------------------------------------------------- */

static void put_annotations(struct json_writer *w, const struct mcp_tool *t)
{
	bool changes_host = t->writes_host || t->reaches_host;

	json_put_key(w, "annotations");
	json_open_object(w);
	json_member_bool(w, "readOnlyHint", !changes_host && !t->has_network && !t->stores_files);
	json_member_bool(w, "destructiveHint", changes_host);
	json_member_bool(w, "idempotentHint", false);
	json_member_bool(w, "openWorldHint", t->has_network || t->reaches_host);
	json_close_object(w);
}

void mcp_tool_put(struct json_writer *w, const struct mcp_tool *tool, enum mcp_era era)
{
	struct mcp_prose text = { .size = 0 };
	char title[96];

	if (tool->kind != MCP_TOOL_RUN) {
		mcp_session_tool_put(w, tool, era);
		return;
	}
	describe(&text, tool);
	(void)snprintf(title, sizeof(title), "Run code (%.32s) in a sandbox", tool->profile);
	json_open_object(w);
	json_member_text(w, "name", tool->name);
	if (era != MCP_ERA_OLD)
		json_member_text(w, "title", title);
	json_member_text(w, "description", text.text);
	put_input_schema(w, tool);
	if (era != MCP_ERA_OLD)
		mcp_tool_put_result_output(w, tool);
	put_annotations(w, tool);
	json_close_object(w);
}
