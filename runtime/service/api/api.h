/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api - what runs programs and sessions, and the API in front of it: the table of routes, the
 * access check, the handlers.  Documented in profiles/schema/openapi.json and cejail-serve(8).
 *
 * server.h adds sockets to listen on, signals and probes.  mcp_local.c has the same parts in the
 * process of the MCP server, and asks the API without HTTP.
 */
#pragma once

#include <sys/queue.h>

#include "runtime/base/loop.h"
#include "runtime/run/mcp/calls/mcp_reply.h"
#include "runtime/run/mcp/calls/mcp_tasks.h"
#include "runtime/service/access/account.h"
#include "runtime/service/api/health.h"
#include "runtime/service/config/profile_cache.h"
#include "runtime/service/http/http.h"
#include "runtime/service/operations/audit.h"
#include "runtime/service/operations/metrics.h"
#include "runtime/service/queue/execution.h"
#include "runtime/service/queue/pool.h"
#include "runtime/service/queue/runs.h"
#include "runtime/service/queue/zygotes.h"
#include "runtime/service/sessions/sessions.h"
#include "runtime/service/worker/spawner.h"

struct api {
	struct loop *loop;                   /* borrowed, open */
	struct spawner *spawner;             /* borrowed */
	const struct service_config *config; /* the one in force */
	struct http *http;
	struct accounts accounts;
	struct metrics *metrics;
	struct audit audit;
	struct line_file trace_file;
	struct profile_cache *profiles;
	struct runs runs;
	struct pool pool;
	struct zygotes zygotes;
	struct executions executions;
	struct sessions sessions;
	struct health health; /* of a service: its owner calls health_adopt() and health_tick() */
	uid_t own_uid;        /* of the service */
	uint64_t started_ms;  /* since the epoch */
	LIST_HEAD(api_mcp_calls, api_mcp_call) mcp_calls;
	struct mcp_tasks mcp_tasks;
};

/* The caller calls api_close(), also after a failure, and of an API that is all zero. */
int api_open(struct api *a, struct loop *loop, struct spawner *spawner, struct cj_error *err);
/* Gives a new configuration to every part; it must live until the next one. */
int api_adopt(struct api *a, struct service_config *c, struct cj_error *err);
/* Requests, runs and sessions.  Returns the time in ms until there is more to do, or -1. */
int api_tick(struct api *a, uint64_t now_ms);
/* Prepares workers.  Returns as above. */
int api_prepare(struct api *a);
void api_end_prepared(struct api *a);
/* Cancels everything; callers that still wait are answered. */
void api_close(struct api *a);

/* --- operations without HTTP, for MCP ---------------------------------------------------- */

/*
 * A request of MCP to the API of the same process, carried out by the handlers of the routes: with
 * the rights of the caller.
 *
 * The request that it is made for has paid for its rate, and has passed the checks of Origin and
 * Host.  Its token is checked again: a reload may have taken its rights away.
 */
struct api_asked {
	struct exchange *exchange; /* NULL: not asked yet, replied, or cancelled */
	struct mcp_reply reply;
	/* The last callback, after `done` of the run; not of one that was cancelled. */
	void (*ended)(struct api_asked *i);
};

/* `outer`: NULL: the request is this process' own.  Takes the body.  The owner has set `ended`. */
int api_asked_ask(struct api_asked *i, struct api *api, const struct exchange *outer,
		  struct mcp_run *r, char *body, size_t size, struct cj_error *err);
/* Calls `done` of the run, and uses *i no more after it. */
void api_asked_cancel(struct api_asked *i);
void api_asked_fini(struct api_asked *i);
