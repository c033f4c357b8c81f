/* SPDX-License-Identifier: Apache-2.0 */
/* Runs from the queue to their workers, the workers' lines, and the end of each run, once. */
#include "runtime/service/queue/execution.h"

#include <assert.h>
#include <sys/socket.h>

#include "runtime/base/clock.h"
#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/jail/protocol.h"
#include "runtime/service/operations/audit.h"
#include "runtime/service/http/http.h"
#include "runtime/service/operations/metrics.h"
#include "runtime/service/log/slog.h"
#include "runtime/service/queue/run_caller.h"
#include "runtime/service/queue/run_calls.h"

static_assert(EXECUTION_GRACE_MS > STEP_TIMEOUT_MS,
	      "the error of a step arrives before the service gives up");

/*
 * A control character takes six bytes in JSON, so the two streams and the artefacts may grow by
 * that factor; the constant is for names and everything else.
 */
#define LINE_MAX_OF(output_bytes) (12 * (output_bytes) + 6 * JOB_ARTIFACTS_MAX + (16u << 20))

/* A run whose record must be whole gets no result without this line, and does not go on. */
static void on_call_ended(void *context, const struct call_record *call)
{
	struct run *run = context;

	metrics_count_call(run->all->metrics, call->end);
	spans_add_call(&run->spans, call->name, call->end, call->ms);
	if (call->end == CALL_REFUSED && run->refused_calls++ >= EXECUTION_REFUSED_CALLS_AUDITED)
		return;
	if (audit_call(run->all->audit, &run->order, call) || run->lacks_audit)
		return;
	run->lacks_audit = true;
	execution_cancel(run);
}

/* Before the audit line of the run's end is written, and with its summary. */
static void end_calls(struct run *run)
{
	run_calls_end(&run->calls, &run->last_call);
	/* The key trace_file.  A failure is logged, and the run's result does not change. */
	const struct run_order *order = &run->order;
	const struct run_span span = {
		.kind = order->session[0] != '\0' ? "exec" : "run",
		.traceparent = order->job.trace.traceparent,
		.parent = order->job.trace.parent,
		.id = order->job.id,
		.profile = order->profile,
		.session = order->session,
		.error_stage = run->summary.error_stage,
		.totals = run->summary.totals,
	};
	struct line_file *file = run->all->trace_file;
	struct cj_error err = { 0 };
	if (file->fd >= 0 && run->spans.began_us > 0 &&
	    spans_write(&run->spans, &span, file, &err) < 0)
		slog_failure(SLOG_WARNING, order->job.trace.request_id, &err,
			     "write the spans of a run");
	spans_fini(&run->spans);
}

enum api_code execution_answer_call(struct run *run, uint64_t call, const char *member,
				    struct blob value)
{
	if (run->calls)
		return run_calls_answer(run->calls, call, member, value);
	return call == 0 || call > run->last_call ? API_NOT_FOUND : API_CALL_ENDED;
}

static void ignore_line(struct worker_conn *conn, const char *text, size_t size)
{
	(void)conn, (void)text, (void)size;
}

static void remove_exiting(struct worker_conn *conn, const char *why)
{
	struct executions *all = conn->owner;
	(void)why; /* its run is complete */

	TAILQ_REMOVE(&all->exiting, conn, link);
	all->exiting_count--;
	worker_conn_destroy(&conn);
}

/* The end of the run; its worker may still be cleaning up. */
static void finish(struct run *run)
{
	struct executions *all = run->all;
	struct worker_conn *conn = take_ptr(run->conn);

	metrics_count_run(all->metrics, run->order.profile,
			  run->ops.spawn ? METRICS_IN_SESSION : run->tier, &run->summary,
			  clock_us() - run->begun_us);
	if (run->is_lost) {
		worker_conn_destroy(&conn);
	} else if (conn) {
		conn->owner = all;
		conn->line = ignore_line;
		conn->ended = remove_exiting;
		conn->deadline_ms = clock_ms() + EXECUTION_EXIT_MS;
		worker_conn_pause(conn, false);
		TAILQ_INSERT_TAIL(&all->exiting, conn, link);
		all->exiting_count++;
	}
	runs_finish(all->runs, run, clock_epoch_ms());
}

static void complete(struct run *run, const char *line, size_t size)
{
	const struct summary *s = &run->summary;
	bool is_probe = run->ops.on_complete && !run->ops.spawn; /* health.c logs its failures */

	/* errors about the host are for the log, not for the caller */
	if (s->totals.status == STATUS_SETUP_ERROR && !s->is_callers_own && !is_probe)
		slog(SLOG_ERROR, run->order.job.trace.request_id, "run %s (%s): %s: %s",
		     run->order.job.id, run->order.profile, s->error_stage, s->error_message);
	end_calls(run);
	if (audit_run(run->all->audit, &run->order, run->tier, s) && !run->lacks_audit)
		run_caller_answer(run, line, size, API_OK);
	else
		run_caller_answer(run, NULL, 0, API_AUDIT_UNAVAILABLE);
	finish(run);
}

/*
 * The run ends without a result of its worker.  API_OK: it was cancelled, and has a result that
 * says so.  API_INTERNAL: the service failed.  Else its session has ended or has no room for it, so
 * nobody ran it.  `reason` is for the log, and for the audit of a failure; NULL: there is none.
 */
static void end_without_result(struct run *run, enum api_code why, const char *reason)
{
	bool is_failure = why == API_INTERNAL, is_exec = run->order.session[0] != '\0';
	struct summary *s = &run->summary;
	size_t size = 0;
	auto_free char *line = why == API_OK ? order_write_cancelled(&run->order, &size) : NULL;

	*s = (struct summary){ .totals.status = is_failure ? STATUS_SETUP_ERROR : STATUS_CANCELLED,
			       .totals.exit_code = -1 };
	if (is_failure && reason) {
		(void)snprintf(s->error_stage, sizeof(s->error_stage), "service");
		(void)snprintf(s->error_message, sizeof(s->error_message), "%s", reason);
	}
	if (reason)
		slog(is_failure ? SLOG_ERROR : SLOG_WARNING, run->order.job.trace.request_id,
		     "run %s (%s%s%s): %s", run->order.job.id, run->order.profile,
		     is_exec ? ", session " : "", run->order.session, reason);
	run->has_summary = true;
	end_calls(run);
	if (run->is_audited) /* a failure is logged and counted there */
		(void)audit_run(run->all->audit, &run->order, run->tier, s);
	run_caller_answer(run, line, size, why == API_OK && !line ? API_INTERNAL : why);
	finish(run);
}

/* No record of the run is kept. */
static void refuse(struct run *run, enum api_code why)
{
	run_caller_answer(run, NULL, 0, why);
	worker_conn_destroy(&run->conn);
	runs_drop(run->all->runs, run);
}

static void read_summary(struct run *run, const char *text, size_t size)
{
	auto_arena struct arena a = { 0 };
	const struct json_node *root = NULL;
	struct cj_error err = { 0 };

	if (json_parse("worker", text, size, &a, &root, &err) < 0 ||
	    summary_read(root, &run->summary, &err) < 0) {
		slog_failure(SLOG_ERROR, run->order.job.trace.request_id, &err,
			     "read a worker's summary");
		return;
	}
	run->has_summary = true;
}

static void on_line(struct worker_conn *conn, const char *text, size_t size)
{
	struct run *run = conn->owner;
	struct readiness_line said;

	switch (worker_conn_line(text)) {
	case WORKER_READY:
		if (!run->ops.spawn && run->tier == TIER_INTERPRETER)
			pool_note_ready(run->all->pool, run->order.profile, text, size);
		return;
	case WORKER_UNREADY:
		ready_read(text, size, &said);
		end_without_result(run, run->ops.spawn ? API_TOO_MANY_WAITING : API_INTERNAL,
				   said.why);
		return;
	case WORKER_EVENT:
		run_caller_tell(run, text, size);
		return;
	case WORKER_SUMMARY:
		read_summary(run, text, size);
		return;
	case WORKER_RESULT:
		if (!run->has_summary || size <= sizeof(RUN_RESULT_BEFORE) + 2 ||
		    strncmp(text, RUN_RESULT_BEFORE, sizeof(RUN_RESULT_BEFORE) - 1) != 0 ||
		    strcmp(text + size - 2, "}}") != 0)
			break;
		run_caller_begin(run);
		complete(run, text, size);
		return;
	default:
		break;
	}
	worker_conn_break(conn, "it sent a line that the protocol does not have");
}

static void on_ended(struct worker_conn *conn, const char *why)
{
	struct run *run = conn->owner;
	char text[128];

	run->is_lost = true;
	if (run->host_ended) {
		end_without_result(run, API_SESSION_ENDED, NULL);
	} else if (run->ops.spawn && !why[0]) {
		/* the reason may be on its way: the end of the session */
		run->is_cancelled = true;
		run->deadline_ms = clock_ms() + EXECUTION_LOST_MS;
	} else {
		(void)snprintf(text, sizeof(text), "its worker ended without a result%s%s",
			       why[0] ? ": " : "", why);
		end_without_result(run, API_INTERNAL, text);
	}
}

/* Cancels the run, and no longer waits for a slow caller. */
static void close_control(struct run *run, uint64_t deadline_ms)
{
	worker_conn_close_control(run->conn);
	worker_conn_pause(run->conn, false);
	run->is_cancelled = true;
	run->deadline_ms = deadline_ms;
}

static void fail_start(struct run *run, const struct cj_error *err)
{
	char why[CJ_ERROR_MSG_MAX + 64];

	if (run->ops.spawn && err->code == EPIPE) {
		run->host_ended = "the session has ended";
		end_without_result(run, API_SESSION_ENDED, NULL);
	} else {
		(void)snprintf(why, sizeof(why), "no worker for it: %s", err->msg);
		end_without_result(run, API_INTERNAL, why);
	}
}

/* The far end of a new socket for the calls, or -1: there is none, and calls fail. */
static int open_calls(struct run *run, int *out_near_fd)
{
	const struct executions *all = run->all;
	int ends[2];

	if (!run->order.job.has_tools)
		return -1;
	if (all->open_calls)
		return all->open_calls(all->calls_context);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -1;
	*out_near_fd = ends[0];
	return ends[1];
}

static int send_job(struct run *run, struct cj_error *err)
{
	const struct executions *c = run->all;
	const struct run_calls_ops ops = { on_call_ended, run };
	struct run_order *o = &run->order;
	auto_fd int near_fd = -1;
	auto_fd int calls_fd = open_calls(run, &near_fd);

	o->job.calls_fd = calls_fd > 0 ? calls_fd : 0;
	o->job.calls_brief = near_fd >= 0;
	o->job.calls_quoted = c->audit->arguments_max;
	if (pool_send_job(c->pool, o->profile, pool_best_tier(o->fit), &o->job, &run->conn,
			  &run->tier, err) < 0)
		return -err->code;
	return near_fd < 0
		   ? 0
		   : run_calls_begin(run->conn->loop, take_fd(&near_fd), &ops, &run->calls, err);
}

/* Nothing of a run happens before its audit line is written. */
static void start(struct run *run, uint64_t now_ms)
{
	const struct executions *c = run->all;
	const struct run_order *o = &run->order;
	struct cj_error err = { 0 };

	run->tier = TIER_COLD;
	run->has_tier = !run->ops.spawn;
	int rc = run->ops.spawn ? run->ops.spawn(run->ops.context, &run->conn, &err)
				: pool_find(c->pool, o->profile, pool_best_tier(o->fit), &run->conn,
					    &run->tier, &err);
	if (rc == 0 && !audit_run(run->all->audit, &run->order, run->tier, NULL)) {
		refuse(run, API_AUDIT_UNAVAILABLE);
		return;
	}
	run->is_audited = rc == 0;
	if (rc == 0)
		rc = send_job(run, &err);
	runs_start(c->runs, run, clock_epoch_ms());
	if (rc < 0) {
		fail_start(run, &err);
		return;
	}
	run->conn->owner = run;
	run->conn->line = on_line;
	run->conn->ended = on_ended;
	run->conn->line_max = LINE_MAX_OF(o->output_bytes);
	if (!run->ops.spawn) {
		enum tier wanted = pool_wanted_tier(c->pool, o->profile, o->fit);
		metrics_count_pool(c->metrics, o->profile, wanted, run->tier);
		metrics_count_bypass(
		    c->metrics, o->profile,
		    pool_bypass_of(c->pool, o->profile, o->fit, o->why_cold, run->tier));
	}
	cj_free(&run->order.job.body);
	if (run->ops.exchange)
		exchange_drop_body(run->ops.exchange);
	if (o->wall_ms > 0)
		run->deadline_ms = now_ms + o->wall_ms + EXECUTION_GRACE_MS;
}

static void on_caller_gone(void *holder)
{
	struct run *run = holder;

	run->ops.exchange = NULL;
	slog(SLOG_INFO, run->order.job.trace.request_id,
	     "run %s: its caller disconnected or cancelled it", run->order.job.id);
	execution_cancel(run);
}

struct run *execution_begin(struct executions *all, const struct run_order *order,
			    const struct run_ops *ops, struct cj_error *err)
{
	struct run *run =
	    runs_add(all->runs, order, clock_ms() + all->limits.queue_ms, clock_epoch_ms());

	if (!run) {
		free(order->job.body);
		(void)!cj_fail(err, ENOMEM, "queue a run");
		return NULL;
	}
	run->all = all;
	run->ops = *ops;
	run->begun_us = ops->exchange ? exchange_whole_us(ops->exchange) : clock_us();
	if (audit_is_on(all->audit))
		sha256_hex(order->job.body, order->job.body_size, run->order.request_sha256);
	if (all->trace_file->fd >= 0 && (ops->exchange || ops->spawn)) /* a probe has neither */
		spans_begin(&run->spans, run->begun_us);
	if (ops->exchange)
		exchange_hold(ops->exchange, on_caller_gone, run);
	return run;
}

void execution_cancel(struct run *run)
{
	if (run->state == RUN_QUEUED)
		end_without_result(run, API_OK, NULL);
	else if (run->state == RUN_RUNNING && !run->is_cancelled)
		close_control(run, clock_ms() + EXECUTION_GRACE_MS);
}

void execution_host_ended(struct run *run, const char *message)
{
	run->host_ended = message;
	if (run->state == RUN_QUEUED || run->is_lost) {
		end_without_result(run, API_SESSION_ENDED, NULL);
	} else {
		run->is_cancelled = true;
		worker_conn_pause(run->conn, false);
		run->deadline_ms = clock_ms() + EXECUTION_CANCEL_MS;
	}
}

void executions_cancel_all(struct executions *e)
{
	struct runs *runs = e->runs;
	struct run *run;

	while ((run = TAILQ_FIRST(&runs->lists[RUN_QUEUED])) != NULL)
		execution_cancel(run);
	TAILQ_FOREACH(run, &runs->lists[RUN_RUNNING], link)
		execution_cancel(run);
}

static void sooner(int *wait_ms, uint64_t ms)
{
	*wait_ms = loop_sooner(*wait_ms, ms > 60000 ? 60000 : (int)ms);
}

/* The deadline is over: first the control pipe is closed, later the run fails. */
static void enforce_deadline(struct run *run, uint64_t now_ms)
{
	if (!run->is_cancelled) {
		slog(SLOG_WARNING, run->order.job.trace.request_id,
		     "run %s: deadline exceeded (%s), cancelling", run->order.job.id,
		     run->conn->is_paused ? "its caller reads too slowly"
					  : "its worker sent no result");
		close_control(run, now_ms + EXECUTION_CANCEL_MS);
		return;
	}
	const char *reason = run->host_ended ? NULL
			     : run->is_lost  ? "its worker ended without a result"
					     : "deadline exceeded, and its worker did not exit";
	run->is_lost = true;
	end_without_result(run, reason ? API_INTERNAL : API_SESSION_ENDED, reason);
}

static void enforce_deadlines(struct executions *all, uint64_t now_ms, int *wait_ms)
{
	struct run *run = TAILQ_FIRST(&all->runs->lists[RUN_RUNNING]), *next;
	struct worker_conn *conn = TAILQ_FIRST(&all->exiting), *after;

	for (; run; run = next) {
		next = TAILQ_NEXT(run, link);
		if (run->deadline_ms > 0 && run->deadline_ms <= now_ms)
			enforce_deadline(run, now_ms);
		else if (run->deadline_ms > 0)
			sooner(wait_ms, run->deadline_ms - now_ms);
	}
	for (; conn; conn = after) {
		after = TAILQ_NEXT(conn, link);
		if (conn->deadline_ms <= now_ms)
			remove_exiting(conn, "");
		else
			sooner(wait_ms, conn->deadline_ms - now_ms);
	}
}

/* Nothing starts while too many workers have not exited yet: they still use the machine. */
int executions_tick(struct executions *e, uint64_t now_ms)
{
	struct runs *runs = e->runs;
	struct run *run;
	uint64_t until_ms = 0;
	int wait_ms = -1;

	while ((run = runs_overdue(runs, now_ms, &until_ms)) != NULL)
		refuse(run, API_QUEUE_TIMEOUT);
	if (until_ms != UINT64_MAX)
		sooner(&wait_ms, until_ms);
	while (!e->holds && e->exiting_count < e->limits.concurrency &&
	       (run = runs_next(runs, e->limits.concurrency)) != NULL)
		start(run, now_ms);
	enforce_deadlines(e, now_ms, &wait_ms);
	return wait_ms;
}

size_t executions_count(const struct executions *e)
{
	return runs_unfinished(e->runs) + e->exiting_count;
}

void executions_fini(struct executions *e)
{
	struct run *run;

	executions_cancel_all(e);
	while ((run = TAILQ_FIRST(&e->runs->lists[RUN_RUNNING])) != NULL) {
		run->is_lost = true; /* while draining, a second signal asked to end at once */
		end_without_result(run, e->is_draining ? API_OK : API_INTERNAL,
				   e->is_draining ? NULL : "the service ends");
	}
	while (!TAILQ_EMPTY(&e->exiting))
		remove_exiting(TAILQ_FIRST(&e->exiting), "");
}
