/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_profiles - from the settings of a profile to its tool.  Acts: looks for interpreters. */
#pragma once

#include <stdbool.h>

#include "profiles/config.h"
#include "runtime/base/arena.h"
#include "runtime/run/mcp/mcp_tool.h"

/* Those that are offered where nobody chose any, if their interpreter is installed. */
extern const char *const mcp_profiles_standard[];

/* Is the first word of its command on this host?  In a tree of its own, it may be anywhere. */
bool mcp_profiles_has_interpreter(const struct config *c);

/* Has this host an uplink for jails of this process with these settings? */
bool mcp_profiles_has_uplink(const struct config *c);

/*
 * mcp_profiles_add_sessions - the tools of sessions, after those of the profiles.
 *
 * `tools` has room for MCP_SESSION_TOOLS more; *count goes on from those of the profiles, which can
 * then run in a session, too.  Those of sessions have their limits, so the array must not move.
 */
void mcp_profiles_add_sessions(struct mcp_tool *tools, size_t *count, const char *prefix);

/* The name, and what the settings say.  Texts are copied into the arena, but for `profile`. */
int mcp_profiles_describe(struct mcp_tool *t, const char *prefix, const char *profile,
			  const struct config *c, const char *about, struct arena *a,
			  struct cj_error *err);
