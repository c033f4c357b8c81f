/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_request - a call of a tool as a request to the service's API, cejail-serve(8).  Pure. */
#pragma once

#include "runtime/run/mcp/mcp_arguments.h"

#define MCP_PATH_MAX   1000 /* of a file in a session; the service may allow less */
#define MCP_TARGET_MAX (3 * MCP_PATH_MAX + 192)

struct mcp_request {
	const char *method;
	char target[MCP_TARGET_MAX];
	const char *content_type; /* NULL: there is no body */
	char *body;               /* malloc'ed */
	size_t size;
	bool has_result; /* the reply is that of a run: a result, and events if asked for */
};

/* Fails: as mcp_arguments_write() does.  The caller calls mcp_request_fini(), also then. */
int mcp_request_write(struct mcp_request *out, const struct mcp_tool *tool,
		      const struct mcp_given *given, const struct json_node *arguments,
		      const char *run_id, struct cj_error *err);
void mcp_request_fini(struct mcp_request *r);
