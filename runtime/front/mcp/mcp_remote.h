/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_remote - runs of the MCP server at a service, cejail-serve(8).  Acts.
 *
 * Each run is a request on a connection of its own, without blocking.  Closing the connection
 * cancels the run.
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/json/json.h"
#include "runtime/run/mcp/calls/mcp_run.h"
#include "runtime/base/loop.h"

/* *out is to be closed with its `close`.  Borrows the path. */
int mcp_remote_open(struct loop *loop, const char *socket_path, struct mcp_place *out,
		    struct cj_error *err);

/* GET /v1/profiles: blocks, for the start.  *out lives in the arena. */
int mcp_remote_list_profiles(const char *socket_path, struct arena *a, const struct json_node **out,
			     struct cj_error *err);
