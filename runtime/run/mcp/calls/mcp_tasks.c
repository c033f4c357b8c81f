/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks of callers. */
#include "runtime/run/mcp/calls/mcp_tasks.h"

#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/run/mcp/calls/mcp_call.h"
#include "runtime/run/report/result.h"

static void destroy(struct mcp_task *t)
{
	LIST_REMOVE(t, link);
	free(t->answer);
	free(t);
}

void mcp_tasks_fini(struct mcp_tasks *all)
{
	struct mcp_task *t;

	while ((t = LIST_FIRST(&all->list)) != NULL)
		destroy(t);
}

/* Discards what is above the limits or too old, but not `kept`.  NULL: only what is too old. */
static void discard(struct mcp_tasks *all, const struct mcp_task *kept, uint64_t now_ms)
{
	size_t count = 0, bytes = 0, everything = 0;
	struct mcp_task *t, *next;

	for (t = LIST_FIRST(&all->list); t; t = next) { /* newest first */
		next = LIST_NEXT(t, link);
		bool is_own = kept && strcmp(t->caller, kept->caller) == 0;
		if (t->call)
			continue;
		everything += t->size;
		bytes += is_own ? t->size : 0;
		count += is_own;
		if (t != kept && (now_ms >= t->ended_ms + MCP_TASK_KEEP_MS ||
				  everything > KEPT_ALL_RESULTS_MAX ||
				  (is_own && (bytes > KEPT_RESULTS_MAX || count > MCP_TASKS_MAX))))
			destroy(t);
	}
}

struct mcp_task *mcp_tasks_add(struct mcp_tasks *all, const char *caller, const char *id,
			       struct mcp_call *call)
{
	struct mcp_task *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->call = call;
	t->created_ms = t->updated_ms = clock_epoch_ms();
	t->begun_ms = t->asked_ms = clock_ms();
	(void)snprintf(t->id, sizeof(t->id), "%s", id);
	(void)snprintf(t->caller, sizeof(t->caller), "%s", caller);
	LIST_INSERT_HEAD(&all->list, t, link);
	return t;
}

void mcp_task_end(struct mcp_tasks *all, struct mcp_task *t, const char *answer, size_t size,
		  bool is_cancelled)
{
	t->call = NULL;
	t->updated_ms = clock_epoch_ms();
	t->ended_ms = clock_ms();
	t->is_cancelled = is_cancelled;
	t->answer = answer ? strndup(answer, size) : NULL;
	t->size = t->answer ? size : 0;
	discard(all, t, t->ended_ms);
}

static struct mcp_task *find(const struct mcp_tasks *all, const char *caller, const char *id)
{
	struct mcp_task *t;

	LIST_FOREACH(t, &all->list, link)
	if (strcmp(t->id, id) == 0 && strcmp(t->caller, caller) == 0)
		return t;
	return NULL;
}

/* The time to live ends an hour after the last change: it grows while the call runs. */
static void put_task(struct json_writer *w, const struct mcp_task *t, const char *status)
{
	uint64_t age_ms = (t->call ? clock_ms() : t->ended_ms) - t->begun_ms;

	json_member_text(w, "taskId", t->id);
	json_member_text(w, "status", status);
	result_put_ms(w, "createdAt", t->created_ms);
	result_put_ms(w, "lastUpdatedAt", t->updated_ms);
	json_member_u64(w, "ttlMs", age_ms + MCP_TASK_KEEP_MS);
	json_member_u64(w, "pollIntervalMs", MCP_TASK_POLL_MS);
}

void mcp_task_put_created(struct json_writer *w, const struct mcp_id *id, const struct mcp_task *t)
{
	mcp_begin_typed_result(w, id, "task");
	put_task(w, t, "working");
	mcp_end(w);
}

/* The member of the answer that the task repeats; NULL: it could not be kept. */
static const struct json_node *read_answer(const struct mcp_task *t, struct arena *a)
{
	const struct json_node *root = NULL;
	struct cj_error ignored = { 0 };

	if (!t->answer || json_parse_capped("answer", t->answer, t->size, a, &root, &ignored) < 0)
		return NULL;
	return mcp_member(root, "result");
}

static void put_over(struct json_writer *w, const struct mcp_task *t)
{
	auto_arena struct arena a = { 0 };
	const struct json_node *result = t->is_cancelled ? NULL : read_answer(t, &a);

	put_task(w, t, t->is_cancelled ? "cancelled" : result ? "completed" : "failed");
	if (result) {
		json_member_node(w, "result", result);
	} else if (!t->is_cancelled) {
		json_member_object(w, "error");
		json_put_key(w, "code");
		json_put_i64(w, MCP_INTERNAL_ERROR);
		json_member_text(w, "message", "the answer could not be kept");
		json_close_object(w);
	}
}

void mcp_tasks_answer(struct mcp_tasks *all, const char *caller, const struct mcp_asked *asked,
		      struct json_writer *w)
{
	struct mcp_fault fault;

	discard(all, NULL, clock_ms());
	struct mcp_task *t = find(all, caller, asked->task);
	if (!t) {
		(void)!mcp_refuse(&fault, MCP_INVALID_PARAMS,
				  "there is no task '%.64s', or its result has been discarded",
				  asked->task);
		mcp_put_fault(w, &asked->id, &fault);
		return;
	}
	t->asked_ms = clock_ms();
	if (asked->task_method == MCP_TASK_CANCEL && t->call)
		mcp_call_cancel(t->call);
	mcp_begin_result(w, &asked->id, asked->era);
	if (asked->task_method == MCP_TASK_GET && t->call)
		put_task(w, t, "working");
	else if (asked->task_method == MCP_TASK_GET)
		put_over(w, t);
	t->is_fetched = t->is_fetched || (asked->task_method == MCP_TASK_GET && !t->call);
	mcp_end(w);
}

/* When its client has abandoned it, or its result is old; 0: it is being cancelled. */
static uint64_t due_ms(const struct mcp_task *t)
{
	if (!t->call)
		return t->ended_ms + MCP_TASK_KEEP_MS;
	return t->call->is_cancelled ? 0 : t->asked_ms + MCP_TASK_ABANDONED_MS;
}

static struct mcp_task *find_next(const struct mcp_tasks *all)
{
	struct mcp_task *t, *found = NULL;

	LIST_FOREACH(t, &all->list, link)
	if (due_ms(t) > 0 && (!found || due_ms(t) < due_ms(found)))
		found = t;
	return found;
}

/* A call that is cancelled may end at once, and its end may discard other tasks: search again. */
int mcp_tasks_tick(struct mcp_tasks *all, uint64_t now_ms)
{
	struct mcp_task *t;

	while ((t = find_next(all)) != NULL) {
		if (now_ms < due_ms(t))
			return (int)(due_ms(t) - now_ms);
		if (t->call)
			mcp_call_cancel(t->call);
		else
			destroy(t);
	}
	return -1;
}

bool mcp_tasks_are_awaited(const struct mcp_tasks *all, uint64_t now_ms)
{
	const struct mcp_task *t;

	LIST_FOREACH(t, &all->list, link)
	if (!t->call && !t->is_cancelled && !t->is_fetched &&
	    now_ms < t->ended_ms + 2 * (uint64_t)MCP_TASK_POLL_MS)
		return true;
	return false;
}
