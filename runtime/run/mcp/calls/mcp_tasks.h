/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_tasks - calls that take longer than a client waits: io.modelcontextprotocol/tasks (SEP-2663).
 *
 * A call of a client that declared the extension becomes a task when it has run for a while: the
 * answer is a task id, and tasks/get has the result when there is one.  A task belongs to its
 * caller.  Results that nobody has fetched are discarded after an hour, or when there are too many.
 * Over HTTP no connection shows that a client is gone: a task that it no longer asks for is
 * cancelled.
 */
#pragma once

#include <sys/queue.h>

#include "profiles/plan/plan.h"
#include "runtime/run/mcp/mcp_protocol.h"
#include "runtime/run/request/rights.h"

#define MCP_TASK_AFTER_MS     20000 /* a client waits 60 s by default */
#define MCP_TASK_POLL_MS      2000
#define MCP_TASK_KEEP_MS      3600000
#define MCP_TASK_ABANDONED_MS 300000 /* without a request for it */
#define MCP_TASKS_MAX         32     /* finished ones of a caller; their bytes: result.h */

struct mcp_call;

struct mcp_task {
	LIST_ENTRY(mcp_task) link;
	struct mcp_call *call; /* NULL: it is over */
	char id[PLAN_ID_MAX], caller[CALLER_NAME_MAX];
	uint64_t created_ms, updated_ms; /* since the epoch, for texts */
	uint64_t begun_ms, ended_ms;     /* on clock_ms(), as the next */
	uint64_t asked_ms;               /* when its client last named it */
	bool is_cancelled, is_fetched;
	char *answer; /* the message with the result; NULL: none */
	size_t size;
};

struct mcp_tasks {
	LIST_HEAD(, mcp_task) list; /* newest first */
};

void mcp_tasks_fini(struct mcp_tasks *all);

/* NULL: no memory. */
struct mcp_task *mcp_tasks_add(struct mcp_tasks *all, const char *caller, const char *id,
			       struct mcp_call *call);
/* The answer that says that the call is a task now. */
void mcp_task_put_created(struct json_writer *w, const struct mcp_id *id, const struct mcp_task *t);
/* The call is over.  Copies its answer; NULL: it has none, and has failed if not cancelled. */
void mcp_task_end(struct mcp_tasks *all, struct mcp_task *t, const char *answer, size_t size,
		  bool is_cancelled);

/* Answers an MCP_TASK of this caller. */
void mcp_tasks_answer(struct mcp_tasks *all, const char *caller, const struct mcp_asked *asked,
		      struct json_writer *w);

/* Cancels the calls of tasks that their clients have abandoned, and discards old results.  Returns
 * the time in ms until there can be one, or -1. */
int mcp_tasks_tick(struct mcp_tasks *all, uint64_t now_ms);

/* Is there a result that its client will probably fetch soon?  A service that ends waits for it. */
bool mcp_tasks_are_awaited(const struct mcp_tasks *all, uint64_t now_ms);
