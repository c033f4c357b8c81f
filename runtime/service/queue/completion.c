/* SPDX-License-Identifier: Apache-2.0 */
/* How runs end: audited, counted and answered, exactly once. */
#include "runtime/service/queue/execution_parts.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/json/json.h"
#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/run/report/result.h"
#include "runtime/service/log/slog.h"

#define RETRY_SOON_MS 1000

void execution_destroy(struct execution *e)
{
	worker_conn_destroy(&e->conn);
	free(e);
}

/* --- answers ---------------------------------------------------------------- */

void execution_report_dropped(struct execution *e)
{
	char line[64];

	if (e->dropped == 0)
		return;
	int size = snprintf(line, sizeof(line), "{\"type\":\"dropped\",\"events\":%llu}\n",
			    (unsigned long long)e->dropped);
	if (exchange_put(e->ops.exchange, line, (size_t)size, false))
		e->dropped = 0;
}

/* `message` NULL: the code's. */
static void put_error(const struct execution *e, struct exchange *x, enum api_code why,
		      const char *message)
{
	size_t size = 0;
	auto_free char *line = api_error_line(why, message, execution_request_id(e), &size);

	if (line)
		(void)exchange_put(x, line, size, true);
}

static void answer_failure(struct execution *e, enum api_code why)
{
	const char *message = why == API_SESSION_ENDED ? e->host_ended : NULL;
	struct exchange *x = take_ptr(e->ops.exchange);

	if (e->ops.on_complete)
		e->ops.on_complete(e->ops.context, NULL, 0, why);
	if (x && exchange_is_streaming(x)) {
		put_error(e, x, why, message);
		exchange_end_stream(x);
	} else if (x) {
		exchange_refuse(x, why, message, NULL,
				api_rows[why].http_status == 503 ? RETRY_SOON_MS : 0);
	}
}

/* `line` is the whole of {"type":"result","result":RESULT}: the reply is RESULT, verbatim. */
static void answer_result(struct execution *e, const char *line, size_t size)
{
	struct exchange *x = e->ops.exchange;
	size_t before = sizeof(RESULT_BEFORE) - 1;
	struct http_reply reply = { .status = 200,
				    .content_type = "application/json",
				    .skip = before,
				    .size = size - before };

	if (e->ops.on_complete)
		e->ops.on_complete(e->ops.context, line + before, size - before - 1, API_OK);
	if (!x)
		return;
	if (exchange_is_streaming(x)) {
		execution_report_dropped(e);
		if (exchange_put(x, line, size, true))
			(void)exchange_put(x, "\n", 1, true);
		else
			put_error(e, x, API_TOO_MANY_WAITING, NULL);
		exchange_end_stream(x);
	} else {
		reply.text = malloc(size + 1);
		if (reply.text) {
			memcpy(reply.text, line, size);
			reply.text[size - 1] = '\n';
		}
		exchange_reply(x, &reply);
	}
	e->ops.exchange = NULL;
}

/* --- the audit -------------------------------------------------------------- */

bool execution_audit(struct execution *e, const struct summary *s)
{
	const struct executions_context *c = &e->all->context;
	struct cj_error err = { 0 };

	if (!audit_is_on(c->audit))
		return !e->run->order.audit_required;
	int rc = audit_run(c->audit, &e->run->order, e->run->tier, s, &err);
	if (rc == 0)
		return true;
	metrics_count_audit_failure(c->metrics);
	slog_failure(SLOG_ERROR, execution_request_id(e), &err,
		     s ? "write the audit line of a run's end"
		       : "write the audit line of a run's start");
	return !e->run->order.audit_required;
}

/* --- completion ------------------------------------------------------------- */

/* The end of the run; its worker may still be cleaning up. */
static void finish_run(struct execution *e)
{
	struct executions *all = e->all;
	uint64_t request_us = clock_us() - e->begun_us;

	metrics_count_run(all->context.metrics, e->run->order.profile,
			  e->ops.spawn ? METRICS_IN_SESSION : e->run->tier, &e->run->summary,
			  request_us);
	runs_finish(all->context.runs, e->run, clock_epoch_ms());
	e->run = NULL;
	if (!e->conn)
		return;
	TAILQ_REMOVE(&all->running, e, link);
	TAILQ_INSERT_TAIL(&all->exiting, e, link);
	all->exiting_count++;
	e->deadline_ms = clock_ms() + EXECUTION_EXIT_MS;
}

/* Errors about the host are for the log, not for the caller.  health.c logs those of its probe. */
static void log_failure(const struct execution *e)
{
	const struct summary *s = &e->run->summary;

	bool is_probe = e->ops.on_complete && !e->ops.spawn;

	if (s->status == STATUS_SETUP_ERROR && !s->is_callers_own && !is_probe)
		slog(SLOG_ERROR, execution_request_id(e), "run %s (%s): %s: %s",
		     e->run->order.job.id, e->run->order.profile, s->error_stage, s->error_message);
}

void execution_complete(struct execution *e, const char *line, size_t size)
{
	log_failure(e);
	if (execution_audit(e, &e->run->summary))
		answer_result(e, line, size);
	else
		answer_failure(e, API_AUDIT_UNAVAILABLE);
	finish_run(e);
}

/* For a run that ends without a summary from its worker. */
static void use_own_summary(struct execution *e, const struct summary *s)
{
	e->run->summary = *s;
	e->run->has_summary = true;
	if (e->is_audited)
		(void)execution_audit(e, s); /* it logs and counts its failure itself */
}

/* Its session has ended or has no room for it, so nobody ran it. */
static void fail_cancelled(struct execution *e, enum api_code why)
{
	const struct summary s = { .status = STATUS_CANCELLED, .exit_code = -1 };

	use_own_summary(e, &s);
	answer_failure(e, why);
	finish_run(e);
}

/* No result will come.  The audit line and the log say that the service failed. */
void execution_fail(struct execution *e, const char *why)
{
	struct summary s = { .status = STATUS_SETUP_ERROR,
			     .exit_code = -1,
			     .error_stage = "service" };

	(void)snprintf(s.error_message, sizeof(s.error_message), "%s", why);
	slog(SLOG_ERROR, execution_request_id(e), "run %s (%s): %s", e->run->order.job.id,
	     e->run->order.profile, why);
	use_own_summary(e, &s);
	answer_failure(e, API_INTERNAL);
	finish_run(e);
}

void execution_fail_with_host(struct execution *e)
{
	fail_cancelled(e, API_SESSION_ENDED);
}

void execution_fail_at_host(struct execution *e, const char *why)
{
	slog(SLOG_WARNING, execution_request_id(e), "exec %s of session %s: %s",
	     e->run->order.job.id, e->run->order.session, why);
	fail_cancelled(e, API_TOO_MANY_WAITING);
}

/* The result of a run that was cancelled before a worker could write it. */
static char *write_cancelled(const struct execution *e, size_t *out_size)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const struct result_about profile = { .profile_name = e->run->order.profile,
					      .profile_sha256 = e->run->order.job.profile_sha256,
					      .session = e->ops.spawn ? e->run->order.session
								      : NULL };
	struct cj_error err = { 0 };
	struct outcome o;
	const char *text = NULL;
	size_t size = 0;

	if (!w)
		return NULL;
	outcome_init(&o, e->run->order.job.id, 0);
	outcome_decide(&o, STATUS_CANCELLED);
	(void)snprintf(o.code_sha256, sizeof(o.code_sha256), "%s", e->run->order.code_sha256);
	json_open_object(w);
	json_member_text(w, "type", "result");
	json_put_key(w, "result");
	int rc = result_write(w, &o, &profile, &err);
	json_close_object(w);
	outcome_fini(&o);
	if (rc < 0 || json_writer_take(w, &text, &size, &err) < 0)
		return NULL;
	*out_size = size;
	return strndup(text, size);
}

void execution_complete_cancelled(struct execution *e)
{
	const struct summary s = { .status = STATUS_CANCELLED, .exit_code = -1 };
	size_t size = 0;
	auto_free char *line = write_cancelled(e, &size);

	use_own_summary(e, &s);
	if (line)
		answer_result(e, line, size);
	else
		answer_failure(e, API_INTERNAL);
	finish_run(e);
}

void execution_refuse(struct execution *e, enum api_code why)
{
	answer_failure(e, why);
	runs_drop(e->all->context.runs, e->run);
	execution_destroy(e);
}
