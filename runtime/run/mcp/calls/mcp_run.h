/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_run - a request to the API of the service as the server sees it, wherever it is answered.
 *
 * mcp_local.c runs a program here, mcp_remote.c asks a service, api_mcp.c is part of one.  All
 * take the same request, and call back from the event loop.
 */
#pragma once

#include "profiles/plan/plan.h"
#include "runtime/base/error.h"
#include "runtime/run/mcp/mcp_request.h"

/* The owner has set all of it. */
struct mcp_run {
	char id[PLAN_ID_MAX];
	const char *profile;
	const struct mcp_request *request; /* without its body; only read at the start */
	bool wants_events;
	const char *traceparent; /* of the client; NULL: none.  Only read at the start */

	/* An event: a line of JSON, as for --events-fd. */
	void (*event)(struct mcp_run *r, const char *line, size_t size);
	/* The end, exactly once, unless the start failed: the reply's body with a NUL behind it; or
	 * NULL, and `why`. */
	void (*done)(struct mcp_run *r, const char *result, size_t size, const char *why);
	void *state; /* of the side that runs it */
};

/* Where runs take place. */
struct mcp_place {
	void *context;
	/* Takes the malloc'ed request.  May call `done` before it returns. */
	int (*start)(void *context, struct mcp_run *r, char *request, size_t size,
		     struct cj_error *err);
	/* `done` follows, maybe before this returns. */
	void (*cancel)(void *context, struct mcp_run *r);
	/* The profile of a session of this caller; NULL: not known.  NULL: it can't be looked up.
	 */
	const char *(*profile_of)(void *context, const char *session);
	/* The client does not read: start no run, and receive no result that can wait elsewhere.
	 * Called before each tick; NULL: the owner limits what waits. */
	void (*hold)(void *context, bool holds);
	/* Time has passed.  Returns the time in ms until there is more to do, or -1.  NULL: there
	 * never is. */
	int (*tick)(void *context);
	void (*close)(void *context); /* ends all runs */
};
