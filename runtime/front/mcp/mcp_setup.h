/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_setup - finds out which tools the server has.  Acts: reads profiles, or asks the service. */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/front/mcp/mcp_options.h"
#include "runtime/run/mcp/mcp_tool.h"

struct mcp_setup {
	struct arena arena; /* owns all texts */
	struct mcp_tool tools[MCP_PROFILES_MAX + MCP_SESSION_TOOLS];
	size_t count;
	struct strings accepted; /* what a host may lack without a warning to the user */
	const char *socket;      /* of the service; NULL: jails are built here */
};

/*
 * mcp_setup_read - the profiles that were asked for, or those of python, node and shell whose
 * interpreter is installed.
 *
 * Owns: the caller calls mcp_setup_fini(), also after a failure.
 */
int mcp_setup_read(struct mcp_setup *s, const struct mcp_options *o, struct cj_error *err);
void mcp_setup_fini(struct mcp_setup *s);
