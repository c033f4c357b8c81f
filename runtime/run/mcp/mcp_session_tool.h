/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_session_tool - the tools of sessions, as tools/list shows them.  Pure. */
#pragma once

#include "runtime/run/mcp/mcp_tool.h"

/*
 * mcp_session_tool_init - the tool of this kind.
 *
 * `runs`: the tools of the profiles that a session may have; borrowed.
 */
void mcp_session_tool_init(struct mcp_tool *t, enum mcp_tool_kind kind, const char *prefix,
			   const struct mcp_tool *runs, size_t nruns);

/* One element of "tools". */
void mcp_session_tool_put(struct json_writer *w, const struct mcp_tool *tool, enum mcp_era era);
