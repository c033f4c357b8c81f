/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_call - a call of a tool, from its arguments to its answer, wherever it runs and whatever
 * carries its messages.
 *
 * The owner sends the messages: mcp_server.h as lines on standard output, api_mcp.c over HTTP.
 */
#pragma once

#include "runtime/base/json/json.h"
#include "runtime/run/mcp/calls/mcp_run.h"
#include "runtime/run/mcp/calls/mcp_tasks.h"
#include "runtime/run/mcp/mcp_answer.h"
#include "runtime/run/mcp/mcp_message.h"
#include "runtime/run/mcp/mcp_protocol.h"
#include "runtime/run/mcp/mcp_request.h"

/* How the owner serves its calls. */
struct mcp_call;
struct mcp_call_ops {
	/* A message to the client.  `may_drop`: nobody waits for it.  NULL: there is no memory for
	 * an answer that the client waits for. */
	void (*send)(struct mcp_call *c, struct json_writer *w, bool may_drop);
	/* A result, before its answer.  *stored says which files are stored, in the arena.  May be
	 * NULL: none are. */
	void (*see)(struct mcp_call *c, const struct json_node *result, struct arena *a,
		    struct mcp_stored *stored);
	/* The last callback: frees the call. */
	void (*over)(struct mcp_call *c);
};

/* A member of its owner's struct; the owner sets the first four. */
struct mcp_call {
	const struct mcp_call_ops *ops;
	const struct mcp_place *place;
	struct mcp_tasks *tasks;
	const char *caller; /* whose tasks they are */

	struct mcp_id id;
	enum mcp_era era;
	struct mcp_tool tool; /* its texts are the owner's */
	struct mcp_run run;
	struct mcp_progress progress;
	struct mcp_task *task;                             /* NULL: it is not answered yet */
	uint64_t task_at_ms;                               /* it becomes one; 0: never */
	bool is_cancelled;                                 /* no answer */
	char session[PLAN_ID_MAX], path[MCP_PATH_MAX + 1]; /* arguments; "": not given */
	bool has_length;
};

/*
 * mcp_call_begin - start the call.
 *
 * Owns: `given` and what `asked` points to are only read here.  A call that cannot start is
 * answered with the reason.  May end the call before it returns.
 */
void mcp_call_begin(struct mcp_call *c, const struct mcp_asked *asked,
		    const struct mcp_given *given);

/* Ends its run, without an answer.  May end the call before it returns. */
void mcp_call_cancel(struct mcp_call *c);

/*
 * Makes a task of a call that takes long, if the client takes one.
 * Sends the progress that is due.  A silent program makes progress, too, so that a client that
 * counts it does not give up.  Returns the time in ms until the next, or -1.
 */
int mcp_call_beat(struct mcp_call *c);
