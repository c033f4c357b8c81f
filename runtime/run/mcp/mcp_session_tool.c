/* SPDX-License-Identifier: Apache-2.0 */
/* Names, descriptions and schemas of the tools of sessions.  Pure. */
#include "runtime/run/mcp/mcp_session_tool.h"

#include <stdio.h>

#include "runtime/run/mcp/text/mcp_schema.h"

#define FILES_RULE                                                                                 \
	" Paths are below /box or /tmp; a relative path is relative to /box. Links are not followed."

static const char session_text[] = "The id that session_create has returned.";

/* --- inputs ---------------------------------------------------------------------------- */

static void put_create_input(struct json_writer *w, const struct mcp_tool *t)
{
	static const char *const required[] = { "profile", NULL };
	static const char *const contexts[] = { "none", "repl", NULL };
	static const char *const networks[] = { "none", NULL };

	mcp_schema_open(w, "profile", "string", "What code in the session runs in.");
	json_put_key(w, "enum");
	json_open_array(w);
	for (size_t i = 0; i < t->nruns; i++)
		json_put_string(w, t->runs[i].profile);
	json_close_array(w);
	json_close_object(w);
	mcp_schema_put_enum(w, "context", contexts,
			    "\"repl\": one interpreter runs all code, so that variables remain. "
			    "\"none\", the default: each program is a new process.");
	mcp_schema_put(
	    w, "lease_seconds", "number",
	    "The session ends when no call has used it for this time. The default and the "
	    "maximum are 3600, or what the service allows.");
	mcp_tool_put_memory_input(w, t);
	mcp_schema_put_enum(w, "network", networks, "\"none\": no network in the session.");
	json_close_object(w);
	mcp_schema_put_required(w, required);
}

static void put_exec_input(struct json_writer *w, const struct mcp_tool *t)
{
	static const char *const required[] = { "session", NULL };

	mcp_schema_put(w, "session", "string", session_text);
	mcp_schema_put(w, "code", "string", "Code for the session's profile; or give 'command'.");
	mcp_schema_put_list(w, "command", "A command with its arguments, without a shell.");
	mcp_tool_put_program_input(w, t);
	json_close_object(w);
	mcp_schema_put_required(w, required);
}

static void put_put_input(struct json_writer *w, const struct mcp_tool *t)
{
	static const char *const required[] = { "session", "path", NULL };

	(void)t;
	mcp_schema_put(w, "session", "string", session_text);
	mcp_schema_put(w, "path", "string", "The file; missing directories are created.");
	mcp_schema_put(w, "text", "string", "The content; or give base64.");
	mcp_schema_put(w, "base64", "string", "The content of a binary file.");
	mcp_schema_put(w, "executable", "boolean", "Whether the file can be executed.");
	json_close_object(w);
	mcp_schema_put_required(w, required);
}

static void put_get_input(struct json_writer *w, const struct mcp_tool *t)
{
	static const char *const required[] = { "session", "path", NULL };

	(void)t;
	mcp_schema_put(w, "session", "string", session_text);
	mcp_schema_put(w, "path", "string", "The file.");
	mcp_schema_open(w, "offset", "integer", "The byte where the part to read begins.");
	json_member_u64(w, "minimum", 0);
	json_close_object(w);
	mcp_schema_open(w, "length", "integer",
			"The most bytes to read. The default is 262144, and all of an image.");
	json_member_u64(w, "minimum", 1);
	json_member_u64(w, "maximum", MCP_IMAGE_MAX);
	json_close_object(w);
	json_close_object(w);
	mcp_schema_put_required(w, required);
}

static void put_list_input(struct json_writer *w, const struct mcp_tool *t)
{
	static const char *const required[] = { "session", NULL };

	(void)t;
	mcp_schema_put(w, "session", "string", session_text);
	mcp_schema_put(w, "path", "string", "The directory; the default is /box.");
	json_close_object(w);
	mcp_schema_put_required(w, required);
}

static void put_end_input(struct json_writer *w, const struct mcp_tool *t)
{
	static const char *const required[] = { "session", NULL };

	(void)t;
	mcp_schema_put(w, "session", "string", session_text);
	json_close_object(w);
	mcp_schema_put_required(w, required);
}

/* --- outputs ---------------------------------------------------------------------------- */

static const char message_text[] = "What happened.";

static void put_create_output(struct json_writer *w)
{
	static const char *const required[] = { "message", "session",     "profile", "context",
						"state",   "lease_until", NULL };

	mcp_schema_put(w, "message", "string", message_text);
	mcp_schema_put(w, "session", "string", "The id for the other tools.");
	mcp_schema_put(w, "profile", "string", NULL);
	mcp_schema_put(w, "context", "string", NULL);
	mcp_schema_put(w, "state", "string", "live");
	mcp_schema_put(w, "lease_until", "string",
		       "When the session ends, unless a call uses it before.");
	json_close_object(w);
	mcp_schema_put_required(w, required);
}

static void put_end_output(struct json_writer *w)
{
	static const char *const required[] = { "message", "session", "state", NULL };

	mcp_schema_put(w, "message", "string", message_text);
	mcp_schema_put(w, "session", "string", NULL);
	mcp_schema_put(w, "state", "string", "ended");
	json_close_object(w);
	mcp_schema_put_required(w, required);
}

static void put_put_output(struct json_writer *w)
{
	static const char *const required[] = { "message", "path", "bytes", NULL };

	mcp_schema_put(w, "message", "string", message_text);
	mcp_schema_put(w, "path", "string", NULL);
	mcp_schema_put(w, "bytes", "integer", NULL);
	json_close_object(w);
	mcp_schema_put_required(w, required);
}

static void put_get_output(struct json_writer *w)
{
	static const char *const required[] = {
		"message", "path", "bytes", "offset", "type", NULL
	};

	mcp_schema_put(w, "message", "string", message_text);
	mcp_schema_put(w, "path", "string", NULL);
	mcp_schema_put(w, "bytes", "integer", "The size of the whole file.");
	mcp_schema_put(w, "offset", "integer", "Where the part begins.");
	mcp_schema_put(w, "next_offset", "integer", "Where the next part begins, if there is one.");
	mcp_schema_put(w, "type", "string", "The media type, by content.");
	mcp_schema_put(w, "text", "string", "The content of a text file, or of the part.");
	json_close_object(w);
	mcp_schema_put_required(w, required);
}

static void put_list_output(struct json_writer *w)
{
	static const char *const required[] = { "message", "entries", "truncated", NULL };
	static const char *const of_entry[] = { "path", "type", "bytes", NULL };

	mcp_schema_put(w, "message", "string", message_text);
	mcp_schema_open(w, "entries", "array", "All entries below the directory.");
	json_put_key(w, "items");
	mcp_schema_open_object(w);
	mcp_schema_put(w, "path", "string", NULL);
	mcp_schema_put(w, "type", "string", "file, directory, symlink or other.");
	mcp_schema_put(w, "bytes", "integer", NULL);
	json_close_object(w);
	mcp_schema_put_required(w, of_entry);
	json_close_object(w);
	json_close_object(w);
	mcp_schema_put(w, "truncated", "boolean", "There are more entries.");
	json_close_object(w);
	mcp_schema_put_required(w, required);
}

/* --- the table ----------------------------------------------------------------------------- */

static const struct row {
	const char *name, *title, *text;
	void (*put_input)(struct json_writer *w, const struct mcp_tool *t);
	void (*put_output)(struct json_writer *w); /* NULL: that of a run */
	bool is_read_only, is_destructive, is_idempotent;
} rows[MCP_TOOL_KIND_COUNT] = {
	[MCP_TOOL_SESSION_CREATE] = { "session_create", "Create a sandbox session",
				      "Creates a sandbox that stays: files in /box and /tmp and background processes remain "
				      "from call to call. Pass the returned id as 'session' to the other tools. Limits are "
				      "those of the profile. Each call that uses the session renews its lease; it ends with "
				      "session_end, or when no call has used it for lease_seconds.",
				      put_create_input, put_create_output, false, false, false },
	[MCP_TOOL_SESSION_EXEC] = { "session_exec", "Run code or a command in a session",
				    "Runs code of the session's profile, or a command, in a session and returns its output. "
				    "A program that reaches its time limit is interrupted; the session goes on. The answer "
				    "contains the files in /box/out that are new or have changed. In a session of Python "
				    "with the context repl, lines with !COMMAND and %pip work as in notebooks.",
				    put_exec_input, NULL, false, false, false },
	[MCP_TOOL_SESSION_PUT_FILE] = { "session_put_file", "Write a file of a session",
					"Writes a file in a session." FILES_RULE, put_put_input,
					put_put_output, false, true, true },
	[MCP_TOOL_SESSION_GET_FILE] = { "session_get_file", "Read a file of a session",
					"Reads a file of a session: text as text, an image as an image. A large file comes in "
					"parts: pass 'next_offset' of the answer as 'offset'." FILES_RULE,
					put_get_input, put_get_output, true, false, true },
	[MCP_TOOL_SESSION_LIST_FILES] = { "session_list_files", "List the files of a session",
					  "Lists a directory of a session with everything below it." FILES_RULE,
					  put_list_input, put_list_output, true, false, true },
	[MCP_TOOL_SESSION_END] = { "session_end", "End a session",
				   "Ends a session with all its programs and files.", put_end_input,
				   put_end_output, false, true, true },
};

void mcp_session_tool_init(struct mcp_tool *t, enum mcp_tool_kind kind, const char *prefix,
			   const struct mcp_tool *runs, size_t nruns)
{
	*t = (struct mcp_tool){ .kind = kind,
				.text_max = nruns > 0 ? runs[0].text_max : 0,
				.runs = runs,
				.nruns = nruns,
				.has_sessions = true };
	(void)snprintf(t->name, sizeof(t->name), "%s%s", prefix, rows[kind].name);
}

static void put_annotations(struct json_writer *w, const struct row *row)
{
	json_put_key(w, "annotations");
	json_open_object(w);
	json_member_bool(w, "readOnlyHint", row->is_read_only);
	json_member_bool(w, "destructiveHint", row->is_destructive);
	json_member_bool(w, "idempotentHint", row->is_idempotent);
	/* What the profile allows is in the description of its own tool. */
	json_member_bool(w, "openWorldHint", row->put_output == NULL);
	json_close_object(w);
}

void mcp_session_tool_put(struct json_writer *w, const struct mcp_tool *tool, enum mcp_era era)
{
	const struct row *row = &rows[tool->kind];

	json_open_object(w);
	json_member_text(w, "name", tool->name);
	if (era != MCP_ERA_OLD)
		json_member_text(w, "title", row->title);
	json_member_text(w, "description", row->text);
	json_put_key(w, "inputSchema");
	mcp_schema_open_object(w);
	row->put_input(w, tool);
	json_close_object(w);
	if (era != MCP_ERA_OLD && row->put_output) {
		json_put_key(w, "outputSchema");
		mcp_schema_open_object(w);
		row->put_output(w);
		json_close_object(w);
	} else if (era != MCP_ERA_OLD) {
		mcp_tool_put_result_output(w, tool);
	}
	put_annotations(w, row);
	json_close_object(w);
}
