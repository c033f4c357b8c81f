/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_request - what a call of a tool asks of the service.  No system calls.
 *
 * Inside the service and in the MCP server that has its parts, the API carries it out as it is
 * (api.h).  For a service behind a socket it is written as HTTP, cejail-serve(8).
 */
#pragma once

#include "runtime/run/mcp/mcp_arguments.h"

#define MCP_PATH_MAX   1000 /* of a file in a session; the service may allow less */
#define MCP_TARGET_MAX (3 * MCP_PATH_MAX + 192)

enum mcp_operation {
	MCP_RUN_PROGRAM,
	MCP_CREATE_SESSION,
	MCP_EXEC_PROGRAM,
	MCP_PUT_FILE,
	MCP_GET_FILE,
	MCP_LIST_FILES,
	MCP_END_SESSION,
	MCP_OPERATION_COUNT
};

struct mcp_request {
	enum mcp_operation operation;
	char session[PLAN_ID_MAX];                /* "": none */
	char path[sizeof("box/") + MCP_PATH_MAX]; /* of a file: "box/a b", "tmp/a"; "": none */
	uint64_t offset, length;                  /* of the part of a file to get */
	bool is_executable;                       /* the file to put */
	char *body;                               /* malloc'ed; NULL: none */
	size_t size;
};

/* Fails: as mcp_arguments_write() does.  The caller calls mcp_request_fini(), also then. */
int mcp_request_write(struct mcp_request *out, const struct mcp_tool *tool,
		      const struct mcp_given *given, const struct json_node *arguments,
		      const char *run_id, struct cj_error *err);
void mcp_request_fini(struct mcp_request *r);

/* The same over HTTP; *out_content_type is NULL where there is no body.  Returns the method. */
const char *mcp_request_put_http(const struct mcp_request *r,
				 char out_target[static MCP_TARGET_MAX],
				 const char **out_content_type);
