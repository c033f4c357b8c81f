/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions, schemas and annotations of tools.  Pure. */
#include "runtime/front/mcp/protocol/mcp_tool.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/text.h"
#include "runtime/front/mcp/protocol/mcp_prose.h"

/* --- the description ------------------------------------------------------------- */

static void say_size(struct mcp_prose *p, const char *what, uint64_t bytes)
{
	char text[32];

	if (bytes == 0)
		return;
	text_format_size(bytes, text, sizeof(text));
	mcp_say(p, "; %s: %s", what, text);
}

static void say_limits(struct mcp_prose *p, const struct mcp_tool *t)
{
	char text[32];

	mcp_say(p, " Limits of a call: time: ");
	if (t->wall_ms > 0) {
		text_format_duration(t->wall_ms, text, sizeof(text));
		mcp_say(p, "%s", text);
	} else {
		mcp_say(p, "none");
	}
	if (t->millicpus > 0)
		mcp_say(p, "; CPUs: %" PRIu64 ".%02" PRIu64, t->millicpus / 1000,
			t->millicpus % 1000 / 10);
	say_size(p, "memory", t->memory_bytes);
	say_size(p, "files", t->disk_bytes);
	say_size(p, "output kept of stdout and of stderr", t->output_bytes);
	mcp_say(p, ".");
}

static void say_network(struct mcp_prose *p, const struct mcp_tool *t)
{
	if (!t->has_network)
		mcp_say(p, " There is no network.");
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
		". Each call starts in a new, empty sandbox: nothing remains of an earlier call. "
		"Write results to standard output.");
	mcp_say(p, " The program finds 'files' below /box, and 'args' as JSON in /box/args.json. "
		   "The answer contains the files that it writes to /box/out.");
	if (t->stores_files)
		mcp_say(p, " Larger files are linked.");
	if (t->value_path)
		mcp_say(p, " To return a value, the program writes it as JSON to %s.",
			t->value_path);
	say_limits(p, t);
	say_network(p, t);
}

/* --- the schemas ----------------------------------------------------------------- */

/* "KEY": {"type": TYPE, "description": TEXT; the caller closes it.  NULL: any type. */
static void open_property(struct json_writer *w, const char *key, const char *type,
			  const char *text)
{
	json_put_key(w, key);
	json_open_object(w);
	if (type)
		json_member_text(w, "type", type);
	if (text)
		json_member_text(w, "description", text);
}

static void put_property(struct json_writer *w, const char *key, const char *type, const char *text)
{
	open_property(w, key, type, text);
	json_close_object(w);
}

static void put_list(struct json_writer *w, const char *key, const char *text)
{
	open_property(w, key, "array", text);
	json_put_key(w, "items");
	json_open_object(w);
	json_member_text(w, "type", "string");
	json_close_object(w);
	json_close_object(w);
}

/* "required": the names, which a NULL ends; then nothing else is allowed. */
static void put_required(struct json_writer *w, const char *const *names)
{
	json_put_key(w, "required");
	json_open_array(w);
	for (; *names; names++)
		json_put_string(w, *names);
	json_close_array(w);
	json_member_bool(w, "additionalProperties", false);
}

static void open_object_schema(struct json_writer *w)
{
	json_open_object(w);
	json_member_text(w, "type", "object");
	json_put_key(w, "properties");
	json_open_object(w);
}

static void put_file_schema(struct json_writer *w)
{
	static const char *const required[] = { "path", NULL };

	open_property(w, "files", "array", "Files to create before the program starts.");
	json_put_key(w, "items");
	open_object_schema(w);
	put_property(w, "path", "string", "Absolute, or relative to /box.");
	put_property(w, "text", "string", "The content; or give base64.");
	put_property(w, "base64", "string", "The content of a binary file.");
	json_close_object(w);
	put_required(w, required);
	json_close_object(w);
	json_close_object(w);
}

static void put_timeout_schema(struct json_writer *w, const struct mcp_tool *t)
{
	open_property(w, "timeout_seconds", "number",
		      "Ends the program earlier than the limit of this tool would.");
	json_put_key(w, "exclusiveMinimum");
	json_put_u64(w, 0);
	if (t->wall_ms > 0) {
		json_put_key(w, "maximum");
		json_put_milli(w, t->wall_ms);
	}
	json_close_object(w);
}

static void put_memory_schema(struct json_writer *w)
{
	open_property(w, "memory", "string",
		      "A lower memory limit than that of this tool: \"64M\".");
	json_member_text(w, "pattern", "^[0-9]+[KMG]?$");
	json_close_object(w);
}

static void put_network_schema(struct json_writer *w)
{
	open_property(w, "network", "string", "\"none\": run without a network.");
	json_put_key(w, "enum");
	json_open_array(w);
	json_put_string(w, "none");
	json_close_array(w);
	json_close_object(w);
}

static void put_input_schema(struct json_writer *w, const struct mcp_tool *t)
{
	static const char *const required[] = { "code", NULL };

	json_put_key(w, "inputSchema");
	open_object_schema(w);
	put_property(w, "code", "string", "The whole program.");
	put_property(w, "args", NULL,
		     "Data for the program: any JSON value, written to /box/args.json.");
	put_list(w, "argv", "Command line arguments of the program.");
	put_property(w, "stdin", "string", "Standard input of the program.");
	put_file_schema(w);
	put_timeout_schema(w, t);
	put_memory_schema(w);
	if (t->has_network)
		put_network_schema(w);
	json_close_object(w);
	put_required(w, required);
	json_close_object(w);
}

static void put_files_output(struct json_writer *w)
{
	static const char *const required[] = { "path", "bytes", "type", NULL };

	open_property(w, "files", "array", "The files that the program left in /box/out.");
	json_put_key(w, "items");
	open_object_schema(w);
	put_property(w, "path", "string", NULL);
	put_property(w, "bytes", "integer", NULL);
	put_property(w, "type", "string", "The media type, by content.");
	put_property(w, "uri", "string", "Where the file is.");
	json_close_object(w);
	put_required(w, required);
	json_close_object(w);
	json_close_object(w);
}

static void put_usage_output(struct json_writer *w)
{
	static const char *const required[] = { "wall_ms", "cpu_ms", NULL };

	json_put_key(w, "usage");
	open_object_schema(w);
	put_property(w, "wall_ms", "integer", NULL);
	put_property(w, "cpu_ms", "integer", NULL);
	put_property(w, "memory_peak_bytes", "integer", NULL);
	json_close_object(w);
	put_required(w, required);
	json_close_object(w);
}

static void put_output_schema(struct json_writer *w, const struct mcp_tool *t)
{
	static const char *const required[] = { "status",  "stdout", "stderr",     "truncated",
						"files",   "usage",  "limits_hit", "denied",
						"message", "run_id", NULL };

	json_put_key(w, "outputSchema");
	open_object_schema(w);
	put_property(w, "status", "string",
		     "exited, signaled, timeout, cpu_limit, oom, output_limit, cancelled or "
		     "setup_error.");
	put_property(w, "exit_code", "integer", "Only with the status exited.");
	put_property(w, "signal", "integer", "Only with the status signaled.");
	put_property(w, "stdout", "string", NULL);
	put_property(w, "stderr", "string", NULL);
	put_property(w, "truncated", "boolean", "The middle of stdout or of stderr is missing.");
	if (t->value_path)
		put_property(w, "value", NULL, "The value that the program returned.");
	put_files_output(w);
	put_usage_output(w);
	put_list(w, "limits_hit", "The limits that the program reached.");
	put_list(w, "denied", "What the sandbox refused.");
	put_list(w, "warnings", NULL);
	put_property(w, "message", "string", "What happened, and what to change.");
	put_property(w, "run_id", "string", NULL);
	json_close_object(w);
	put_required(w, required);
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

	describe(&text, tool);
	(void)snprintf(title, sizeof(title), "Run code (%.32s) in a sandbox", tool->profile);
	json_open_object(w);
	json_member_text(w, "name", tool->name);
	if (era != MCP_ERA_OLD)
		json_member_text(w, "title", title);
	json_member_text(w, "description", text.text);
	put_input_schema(w, tool);
	if (era != MCP_ERA_OLD)
		put_output_schema(w, tool);
	put_annotations(w, tool);
	json_close_object(w);
}
