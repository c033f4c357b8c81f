/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool_choice - which tools of a server are offered, and their names.  No system calls.
 *
 * A tool is offered if its annotations say readOnlyHint, unless a deny pattern matches its name, or
 * if an allow pattern matches it.  A server's annotations are its own claim: deny what you do not
 * trust.
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/base/json/json.h"
#include "runtime/front/mcp/upstream/servers_file.h"

#define TOOL_CHOICE_PATTERN_MAX 128
#define TOOL_CHOICE_NAME_MAX    128 /* of SERVER.TOOL */

/* A tool as its server lists it. */
struct upstream_tool {
	const struct json_node *node; /* in the server's answer */
	const char *name;             /* at the server */
	const char *full_name;        /* "SERVER.TOOL", as code inside calls it; NULL: not named */
	size_t values;                /* in the node */
	bool is_offered;
};

/* Printable characters; '*' and '?' match, brackets and backslashes are refused. */
bool tool_choice_is_pattern(const char *text);
bool tool_choice_matches(const char *pattern, const char *name);

/*
 * tool_choice_make - set is_offered of each tool.
 *
 * Fails: a pattern matches no tool; a tool is allowed and denied.  The error names the server, the
 *        pattern and what to change.
 */
int tool_choice_make(const struct server_spec *server, struct upstream_tool *tools, size_t count,
		     struct cj_error *err);

/*
 * tool_choice_name - the full name of a tool.
 *
 * Characters that a name may not have become '_', a dot in the server's name too; a first character
 * that is no letter, digit or '_' gets '_' before it; what is too long is cut.  A name that
 * `is_taken` knows gets "_2", "_3", ... behind it.  NULL: no memory.
 */
const char *tool_choice_name(const char *server, const char *tool, struct arena *a,
			     bool (*is_taken)(const void *context, const char *name),
			     const void *context);
