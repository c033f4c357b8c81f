/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts - what runs programs and sessions, and the API in front of it.
 *
 * server.h adds sockets to listen on, signals and probes.  mcp_local.c has the same parts in the
 * process of the MCP server, and asks the API only by api.h.
 */
#pragma once

#include "runtime/base/loop.h"
#include "runtime/service/access/account.h"
#include "runtime/service/operations/audit.h"
#include "runtime/service/api/api.h"
#include "runtime/service/config/profile_cache.h"
#include "runtime/service/operations/metrics.h"
#include "runtime/service/queue/execution.h"
#include "runtime/service/queue/pool.h"
#include "runtime/service/queue/runs.h"
#include "runtime/service/queue/zygotes.h"
#include "runtime/service/sessions/sessions.h"
#include "runtime/service/worker/spawner.h"

struct serve_parts {
	struct loop *loop;       /* borrowed, open */
	struct spawner *spawner; /* borrowed */
	struct http *http;
	struct accounts accounts;
	struct metrics *metrics;
	struct audit audit;
	struct profile_cache *profiles;
	struct runs runs;
	struct pool pool;
	struct zygotes zygotes;
	struct executions executions;
	struct sessions sessions;
	struct keeper_conns *keepers;
	struct api api;
};

/* The caller calls serve_parts_close(), also after a failure, and of parts that are all zero. */
int serve_parts_open(struct serve_parts *p, struct loop *loop, struct spawner *spawner,
		     struct cj_error *err);
/* Gives a new configuration to every part; it must live until the next one. */
int serve_parts_adopt(struct serve_parts *p, struct service_config *c, struct cj_error *err);
/* Requests, runs and sessions.  Returns the time in ms until there is more to do, or -1. */
int serve_parts_tick(struct serve_parts *p, uint64_t now_ms);
/* Prepares workers.  Returns as above. */
int serve_parts_prepare(struct serve_parts *p);
void serve_parts_end_prepared(struct serve_parts *p);
/* Cancels everything; callers that still wait are answered. */
void serve_parts_close(struct serve_parts *p);
