/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_text - sentences for a model, and paths as parts of URIs (RFC 3986, section 3.3). */
#pragma once

#include "runtime/base/text.h"
#include "runtime/run/mcp/mcp_tool.h"

#define MCP_PROSE_MAX 2048

struct mcp_prose {
	char text[MCP_PROSE_MAX];
};

#define mcp_say(prose, ...) text_append((prose)->text, MCP_PROSE_MAX, __VA_ARGS__)

/* What happened in a run, and what a model should change.  `result` has the schema of
 * profiles/schema/result.json. */
void mcp_say_result(struct mcp_prose *s, const struct json_node *result,
		    const struct mcp_tool *tool);

/* What a session's network opens: the members "mode", "allow" and "deny" of `network`. */
void mcp_say_rules(struct mcp_prose *s, const struct json_node *network);

/* Is the middle of a stream missing in the answer? */
bool mcp_text_is_truncated(const struct json_node *result, const struct mcp_tool *tool);

/* "BEFOREdirectory/path", in the arena; NULL: no memory. */
const char *mcp_uri_join(const char *before, const char *directory, const char *path,
			 struct arena *a);
