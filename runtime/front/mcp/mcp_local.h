/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_local - runs and sessions of the MCP server on this machine, by the parts of the service in
 * the same process.  They end with it.  Acts.
 *
 * A profile that has been called once gets a jail prepared ahead, so that its next call is fast.
 * After the first cell of a session, it also gets a session whose interpreter waits.
 */
#pragma once

#include "runtime/run/mcp/calls/mcp_run.h"
#include "runtime/base/loop.h"
#include "runtime/service/queue/pool.h"
#include "runtime/service/worker/spawner.h"

struct mcp_local_options {
	struct loop *loop;
	struct spawner *spawner; /* taken */
	/* What of a jail can be prepared ahead: FIT_COLD is nothing. */
	enum request_fit fit;
};

/* *out is to be closed with its `close`.  Takes the spawner, also when it fails. */
int mcp_local_open(const struct mcp_local_options *o, struct mcp_place *out, struct cj_error *err);
