/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_sentence - what happened in a run, and what a model should change.  Pure. */
#pragma once

#include "runtime/base/json/json.h"
#include "runtime/run/mcp/mcp_tool.h"
#include "runtime/run/mcp/text/mcp_prose.h"

/* `result`: profiles/schema/result.json. */
void mcp_sentence_say(struct mcp_prose *s, const struct json_node *result,
		      const struct mcp_tool *tool);

/* Is the middle of a stream missing in the answer? */
bool mcp_sentence_is_truncated(const struct json_node *result, const struct mcp_tool *tool);
