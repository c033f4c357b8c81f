/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_reply - the service's reply to a request of the MCP server, as it arrives.
 *
 * The reply is JSON, or for a run with events, lines of JSON with the result at their end.  An
 * error of the API becomes the reason why the run has no result.
 */
#pragma once

#include "runtime/base/byte_queue.h"
#include "runtime/base/error.h"
#include "runtime/run/mcp/calls/mcp_run.h"

#define MCP_REPLY_MAX (768u << 20) /* two streams of 256M in base64, and more */

struct mcp_reply {
	struct mcp_run *run;
	struct byte_queue kept; /* an incomplete line, or the body so far */
	bool is_done;           /* the run's `done` was called */
	/* Takes the events "call" and "answer" from the run; it may change the line, and end the
	 * reply.  NULL: they are as others. */
	void (*call_event)(struct mcp_reply *r, char *line, size_t size);
};

/* The reply is to be lines of JSON. */
bool mcp_reply_has_lines(const struct mcp_reply *r);

void mcp_reply_fini(struct mcp_reply *r);

/* A piece of the body of a reply with this status.  May call `event` and `done` of the run. */
int mcp_reply_keep(struct mcp_reply *r, unsigned status, const char *bytes, size_t size,
		   struct cj_error *err);
/* The whole reply is here.  retry_after: seconds; 0: the reply has none. */
void mcp_reply_end(struct mcp_reply *r, unsigned status, uint64_t retry_after);
/* The run has no result. */
void mcp_reply_fail(struct mcp_reply *r, const struct cj_error *why);
