/* SPDX-License-Identifier: Apache-2.0 */
/* Runs from the queue to their workers, and the workers' lines. */
#include "runtime/service/queue/execution.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "runtime/base/clock.h"
#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/service/queue/execution_parts.h"
#include "runtime/service/log/slog.h"

/*
 * A control character takes six bytes in JSON, so the two streams and the artefacts may grow by
 * that factor; the constant is for names and everything else.
 */
#define LINE_MAX_OF(output_bytes) (12 * (output_bytes) + 6 * JOB_ARTIFACTS_MAX + (16u << 20))

struct executions *executions_create(const struct executions_context *c)
{
	struct executions *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->context = *c;
	TAILQ_INIT(&e->running);
	TAILQ_INIT(&e->exiting);
	return e;
}

void executions_set_limits(struct executions *e, struct executions_limits limits)
{
	e->limits = limits;
}

/* --- the worker's lines ----------------------------------------------------- */

static void read_summary(struct execution *e, const char *text, size_t size)
{
	auto_arena struct arena a = { 0 };
	const struct json_node *root = NULL;
	struct cj_error err = { 0 };

	if (json_parse("worker", text, size, &a, &root, &err) < 0 ||
	    summary_read(root, &e->run->summary, &err) < 0) {
		slog_failure(SLOG_ERROR, execution_request_id(e), &err, "read a worker's summary");
		return;
	}
	e->run->has_summary = true;
}

static bool is_result(const struct execution *e, const char *text, size_t size)
{
	return e->run->has_summary && size > sizeof(RESULT_BEFORE) + 2 &&
	       strncmp(text, RESULT_BEFORE, sizeof(RESULT_BEFORE) - 1) == 0 &&
	       strcmp(text + size - 2, "}}") == 0;
}

static void on_taken(void *holder)
{
	struct execution *e = holder;
	worker_conn_pause(e->conn, false);
}

static void begin_stream(struct execution *e)
{
	if (!exchange_is_streaming(e->ops.exchange))
		exchange_begin_stream(e->ops.exchange, on_taken);
}

/* The worker waits for a slow caller, until the run's deadline or until it is cancelled. */
static void forward_event(struct execution *e, const char *text, size_t size)
{
	struct exchange *x = e->ops.exchange;

	if (!x || !e->run->order.job.wants_events)
		return;
	begin_stream(e);
	execution_report_dropped(e);
	if (e->dropped == 0) {
		/* one buffer: a caller gets the whole line or nothing of it */
		auto_free char *line = malloc(size + 1);
		if (line) {
			memcpy(line, text, size);
			line[size] = '\n';
		}
		if (line && exchange_put(x, line, size + 1, false)) {
			worker_conn_pause(e->conn, exchange_is_behind(x) && !e->is_cancelled);
			return;
		}
	}
	e->dropped++;
}

static void on_line(struct worker_conn *conn, const char *text, size_t size)
{
	struct execution *e = conn->owner;
	struct readiness_line said;

	if (!e->run)
		return; /* lines after the result are ignored */
	switch (worker_conn_line(text)) {
	case WORKER_READY:
		if (!e->ops.spawn && e->run->tier == TIER_INTERPRETER)
			pool_note_ready(e->all->context.pool, e->run->order.profile, text, size);
		return;
	case WORKER_UNREADY:
		ready_read(text, size, &said);
		if (e->ops.spawn)
			execution_fail_at_host(e, said.why);
		else
			execution_fail(e, said.why);
		return;
	case WORKER_EVENT:
		forward_event(e, text, size);
		return;
	case WORKER_SUMMARY:
		read_summary(e, text, size);
		return;
	case WORKER_RESULT:
		if (!is_result(e, text, size))
			break;
		if (e->run->order.job.wants_events && e->ops.exchange)
			begin_stream(e);
		execution_complete(e, text, size);
		return;
	default:
		break;
	}
	worker_conn_break(conn, "it sent a line that the protocol does not have");
}

static void remove_exiting(struct execution *e)
{
	TAILQ_REMOVE(&e->all->exiting, e, link);
	e->all->exiting_count--;
	execution_destroy(e);
}

static void on_ended(struct worker_conn *conn, const char *why)
{
	struct execution *e = conn->owner;
	char text[128];

	/* The reason may be on its way: the end of the session. */
	if (e->run && e->ops.spawn && !e->host_ended && !why[0]) {
		e->is_lost = e->is_cancelled = true;
		e->deadline_ms = clock_ms() + EXECUTION_LOST_MS;
		return;
	}
	if (e->run && e->host_ended) {
		execution_fail_with_host(e);
	} else if (e->run) {
		(void)snprintf(text, sizeof(text), "its worker ended without a result%s%s",
			       why[0] ? ": " : "", why);
		execution_fail(e, text);
	}
	remove_exiting(e);
}

/* Cancels the run, and no longer waits for a slow caller. */
static void close_control(struct execution *e)
{
	worker_conn_close_control(e->conn);
	e->is_cancelled = true;
	worker_conn_pause(e->conn, false);
}

/* --- starting --------------------------------------------------------------- */

/* The worker that is prepared furthest for this request, or a new one. */
static int find_worker(struct execution *e, struct cj_error *err)
{
	struct pool *pool = e->all->context.pool;

	e->run->tier = TIER_COLD;
	if (e->ops.spawn)
		return e->ops.spawn(e->ops.context, &e->conn, err);
	e->run->has_tier = true;
	e->conn = pool_take(pool, e->run->order.profile, e->run->order.fit, &e->run->tier);
	if (e->conn)
		return 0;
	return pool_spawn_new(pool, e->run->order.profile, e->run->order.fit, &e->conn,
			      &e->run->tier, err);
}

/* Which tier it got, and why. */
static void count_tier(const struct execution *e)
{
	const struct executions_context *c = &e->all->context;

	metrics_count_pool(c->metrics, e->run->order.profile,
			   pool_wanted_tier(c->pool, e->run->order.profile, e->run->order.fit),
			   e->run->tier);
	metrics_count_bypass(c->metrics, e->run->order.profile,
			     pool_bypass_of(c->pool, e->run->order.profile, e->run->order.fit,
					    e->run->order.why_cold, e->run->tier));
}

/*
 * If a prepared worker has died meanwhile, the next one takes the job, and at last a cold one.
 * When a cold worker has died, its last line says why.
 */
static int hand_over(struct execution *e, struct cj_error *err)
{
	while (worker_send_job(&e->conn->worker, &e->run->order.job, err) < 0) {
		bool was_cold = e->run->tier == TIER_COLD;
		if (was_cold && err->code == EPIPE)
			break;
		worker_conn_destroy(&e->conn);
		if (was_cold || find_worker(e, err) < 0)
			return -err->code;
	}
	e->conn->owner = e;
	e->conn->line = on_line;
	e->conn->ended = on_ended;
	e->conn->line_max = LINE_MAX_OF(e->run->order.output_bytes);
	if (!e->ops.spawn)
		count_tier(e);
	return 0;
}

/* Nothing of a run happens before its audit line is written. */
static int try_start(struct execution *e, bool *out_refused, struct cj_error *err)
{
	if (find_worker(e, err) < 0)
		return -err->code;
	*out_refused = !execution_audit(e, NULL);
	if (*out_refused)
		return 0;
	e->is_audited = true;
	return hand_over(e, err);
}

static void start(struct execution *e, uint64_t now_ms)
{
	struct cj_error err = { 0 };
	bool is_refused = false;

	int rc = try_start(e, &is_refused, &err);
	if (is_refused) {
		execution_refuse(e, API_AUDIT_UNAVAILABLE);
		return;
	}
	runs_start(e->all->context.runs, e->run, clock_epoch_ms());
	if (rc < 0 && e->ops.spawn && err.code == EPIPE) {
		e->host_ended = "the session has ended";
		execution_fail_with_host(e);
		execution_destroy(e);
		return;
	}
	if (rc < 0) {
		char why[CJ_ERROR_MSG_MAX + 64];
		(void)snprintf(why, sizeof(why), "no worker for it: %s", err.msg);
		execution_fail(e, why);
		execution_destroy(e);
		return;
	}
	cj_free(&e->run->order.job.body);
	if (e->ops.exchange)
		exchange_drop_body(e->ops.exchange);
	if (e->run->order.wall_ms > 0)
		e->deadline_ms = now_ms + e->run->order.wall_ms + EXECUTION_GRACE_MS;
	TAILQ_INSERT_TAIL(&e->all->running, e, link);
}

/* --- from outside ------------------------------------------------------------ */

static void on_caller_gone(void *holder)
{
	struct execution *e = holder;

	e->ops.exchange = NULL;
	slog(SLOG_INFO, execution_request_id(e), "run %s: its caller disconnected or cancelled it",
	     e->run->order.job.id);
	execution_cancel(e->run);
}

enum api_code executions_admit(const struct executions *e, const struct account *a)
{
	return runs_admit(e->context.runs, a, e->limits.queue);
}

int execution_begin(struct executions *all, const struct run_order *order,
		    const struct execution_ops *ops, struct run **out_run, struct cj_error *err)
{
	struct execution *e = calloc(1, sizeof(*e));
	struct run *run = e ? runs_add(all->context.runs, order, clock_ms() + all->limits.queue_ms,
				       clock_epoch_ms())
			    : NULL;

	if (!run) {
		free(e);
		free(order->job.body);
		return cj_fail(err, ENOMEM, "queue a run");
	}
	*e = (struct execution){ .all = all, .run = run, .ops = *ops };
	e->begun_us = ops->exchange ? exchange_whole_us(ops->exchange) : clock_us();
	if (audit_is_on(all->context.audit))
		sha256_hex(order->job.body, order->job.body_size, run->order.request_sha256);
	run->execution = e;
	if (ops->exchange)
		exchange_hold(ops->exchange, on_caller_gone, e);
	if (out_run)
		*out_run = run;
	return 0;
}

void execution_cancel(struct run *run)
{
	struct execution *e = run->execution;

	if (run->state == RUN_QUEUED) {
		execution_complete_cancelled(e);
		execution_destroy(e);
	} else if (run->state == RUN_RUNNING && !e->is_cancelled) {
		close_control(e);
		e->deadline_ms = clock_ms() + EXECUTION_GRACE_MS;
	}
}

void execution_host_ended(struct run *run, const char *message)
{
	struct execution *e = run->execution;

	e->host_ended = message;
	if (run->state == RUN_QUEUED) {
		execution_fail_with_host(e);
		execution_destroy(e);
	} else if (e->is_lost) {
		execution_fail_with_host(e);
		remove_exiting(e);
	} else {
		e->is_cancelled = true;
		worker_conn_pause(e->conn, false);
		e->deadline_ms = clock_ms() + EXECUTION_CANCEL_MS;
	}
}

void executions_cancel_all(struct executions *e)
{
	struct runs *runs = e->context.runs;
	struct run *run;

	while ((run = TAILQ_FIRST(&runs->lists[RUN_QUEUED])) != NULL)
		execution_cancel(run);
	TAILQ_FOREACH(run, &runs->lists[RUN_RUNNING], link)
		execution_cancel(run);
}

void executions_drain(struct executions *e)
{
	e->is_draining = true;
}

bool executions_is_draining(const struct executions *e)
{
	return e->is_draining;
}

/* --- time ------------------------------------------------------------------- */

static void sooner(int *wait_ms, uint64_t ms)
{
	int capped = ms > 60000 ? 60000 : (int)ms;
	if (*wait_ms < 0 || capped < *wait_ms)
		*wait_ms = capped;
}

/* The deadline is over: first the control pipe is closed, later the run fails. */
static void enforce_deadline(struct execution *e, uint64_t now_ms)
{
	if (!e->is_cancelled) {
		slog(SLOG_WARNING, execution_request_id(e),
		     "run %s: deadline exceeded (%s), cancelling", e->run->order.job.id,
		     e->conn->is_paused ? "its caller reads too slowly"
					: "its worker sent no result");
		close_control(e);
		e->deadline_ms = now_ms + EXECUTION_CANCEL_MS;
		return;
	}
	if (e->host_ended)
		execution_fail_with_host(e);
	else
		execution_fail(e, e->is_lost ? "its worker ended without a result"
					     : "deadline exceeded, and its worker did not exit");
	remove_exiting(e);
}

static void enforce_deadlines(struct executions *all, uint64_t now_ms, int *wait_ms)
{
	struct execution *e, *next;

	for (e = TAILQ_FIRST(&all->running); e; e = next) {
		next = TAILQ_NEXT(e, link);
		if (e->deadline_ms > 0 && e->deadline_ms <= now_ms)
			enforce_deadline(e, now_ms);
		else if (e->deadline_ms > 0)
			sooner(wait_ms, e->deadline_ms - now_ms);
	}
	for (e = TAILQ_FIRST(&all->exiting); e; e = next) {
		next = TAILQ_NEXT(e, link);
		if (e->deadline_ms <= now_ms)
			remove_exiting(e);
		else
			sooner(wait_ms, e->deadline_ms - now_ms);
	}
}

void executions_hold(struct executions *e, bool holds)
{
	e->holds = holds;
}

/* Nothing starts while too many workers have not exited yet: they still use the machine. */
int executions_tick(struct executions *e, uint64_t now_ms)
{
	struct runs *runs = e->context.runs;
	struct run *run;
	uint64_t until_ms = 0;
	int wait_ms = -1;

	while ((run = runs_overdue(runs, now_ms, &until_ms)) != NULL)
		execution_refuse(run->execution, API_QUEUE_TIMEOUT);
	if (until_ms != UINT64_MAX)
		sooner(&wait_ms, until_ms);
	while (!e->holds && e->exiting_count < e->limits.concurrency &&
	       (run = runs_next(runs, e->limits.concurrency)) != NULL)
		start(run->execution, now_ms);
	enforce_deadlines(e, now_ms, &wait_ms);
	return wait_ms;
}

size_t executions_count(const struct executions *e)
{
	return runs_unfinished(e->context.runs) + e->exiting_count;
}

struct executions_load executions_load(const struct executions *e)
{
	return (struct executions_load){ .running = e->context.runs->counts[RUN_RUNNING],
					 .running_max = e->limits.concurrency,
					 .queued = e->context.runs->counts[RUN_QUEUED],
					 .queued_max = e->limits.queue };
}

void executions_destroy(struct executions **all)
{
	struct execution *e;

	if (!*all)
		return;
	while ((e = TAILQ_FIRST(&(*all)->running)) != NULL) {
		if ((*all)->is_draining) /* a second signal asked to end at once */
			execution_complete_cancelled(e);
		else
			execution_fail(e, "the service ends");
		remove_exiting(e);
	}
	while ((e = TAILQ_FIRST(&(*all)->exiting)) != NULL)
		remove_exiting(e);
	cj_free(all);
}
