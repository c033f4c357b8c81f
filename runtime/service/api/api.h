/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api - requests to replies: the table of routes, the access check, the handlers.
 * Documented in profiles/schema/openapi.json and cejail-serve(8).
 */
#pragma once

#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "runtime/run/mcp/calls/mcp_reply.h"
#include "runtime/run/mcp/calls/mcp_tasks.h"
#include "runtime/service/http/http.h"

struct account;
struct accounts;
struct executions;
struct keeper_conns;
struct sessions;
struct health;
struct json_writer;
struct metrics;
struct pool;
struct profile_cache;
struct request;
struct runs;
struct service_config;

/* What the handlers use; all of it is borrowed.  The server fills it before the first request. */
struct api {
	const struct service_config *config; /* the one in force */
	struct http *http;
	struct accounts *accounts;
	struct runs *runs;
	struct executions *executions;
	struct sessions *sessions;
	struct keeper_conns *keepers;
	struct profile_cache *profiles;
	struct metrics *metrics;
	const struct pool *pool;
	const struct zygotes *zygotes;
	const struct health *health;
	uid_t own_uid;       /* of the service */
	uint64_t started_ms; /* since the epoch */
	LIST_HEAD(api_mcp_calls, api_mcp_call) mcp_calls;
	struct mcp_tasks mcp_tasks;
};

/* What http.h calls. */
struct http_ops api_ops(struct api *a);
/* Time has passed.  Returns the time in ms until there is more to do, or -1. */
int api_tick(struct api *a, uint64_t now_ms);

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
