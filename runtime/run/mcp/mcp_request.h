/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_request - the arguments of a call of a tool become a request to the service.  No system
 * calls.
 *
 * The body is that of POST /v1/runs (profiles/schema/request.json) or of a session's routes.  A
 * call chooses the program and its data, and may only lower limits: what it asks for is compared
 * with mcp_tool_limits(), also where the API would let the same caller ask for more.  Everything of
 * the host in the request (paths, connections, the environment) is from the command line.
 *
 * Inside the service and in the MCP server that has its parts, the API carries the request out as
 * it is (api.h).  For a service behind a socket it is written as HTTP, cejail-serve(8).
 */
#pragma once

#include "profiles/config.h"
#include "profiles/plan/plan.h"
#include "runtime/base/json/json.h"
#include "runtime/run/mcp/mcp_tool.h"

#define MCP_PATH_MAX   1000 /* of a file in a session; the service may allow less */
#define MCP_TARGET_MAX (3 * MCP_PATH_MAX + 192)

/* What the command line gives to every run. */
struct mcp_given {
	const struct config *config; /* the options alone, without a profile */
	const bool *wanted;          /* rows of settings[] that were given */
	const char *tools;           /* {"tools": [...]} for each program; NULL: none */
	const char *session_profile; /* of the session that the call names; NULL: not known */
};

struct mcp_request {
	enum mcp_tool_kind kind;                  /* of a run in a session MCP_TOOL_SESSION_EXEC */
	char session[PLAN_ID_MAX];                /* "": none */
	char path[sizeof("box/") + MCP_PATH_MAX]; /* of a file: "box/a b", "tmp/a"; "": none */
	uint64_t offset, length;                  /* of the part of a file to get */
	bool is_executable;                       /* the file to put */
	char *body;                               /* malloc'ed, the caller's; NULL: none */
	size_t size;
};

/*
 * mcp_request_write - the request of a call; `arguments` is an object, or NULL.
 *
 * Owns:  the caller frees the body, also after a failure.
 * Fails: an argument is missing, unknown, of another type, or above a limit.  The message is for
 *        the model: it says what to change.
 */
int mcp_request_write(struct mcp_request *out, const struct mcp_tool *tool,
		      const struct mcp_given *given, const struct json_node *arguments,
		      const char *run_id, struct cj_error *err);

/* The same over HTTP; *out_content_type is NULL where there is no body.  Returns the method. */
const char *mcp_request_put_http(const struct mcp_request *r,
				 char out_target[static MCP_TARGET_MAX],
				 const char **out_content_type);
