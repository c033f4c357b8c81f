/* SPDX-License-Identifier: Apache-2.0 */
/* The ends of runs: on record, counted, answered; once.  Acts. */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/json/json.h"
#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/front/report/result.h"
#include "runtime/front/serve/queue/execution_parts.h"
#include "runtime/front/serve/operations/slog.h"

#define RETRY_SOON_MS 1000

void execution_destroy(struct execution *f)
{
	worker_conn_destroy(&f->wire);
	free(f->body);
	free(f);
}

/* --- answers ---------------------------------------------------------------- */

void execution_tell_dropped(struct execution *f)
{
	char line[64];

	if (f->dropped == 0)
		return;
	int size = snprintf(line, sizeof(line), "{\"type\":\"dropped\",\"events\":%llu}\n",
			    (unsigned long long)f->dropped);
	if (exchange_put(f->exchange, line, (size_t)size, false))
		f->dropped = 0;
}

static void put_error(const struct execution *f, struct exchange *x, enum api_code why)
{
	size_t size = 0;
	auto_free char *line = api_error_line(why, execution_request_id(f), &size);

	if (line)
		(void)exchange_put(x, line, size, true);
}

static void answer_failure(struct execution *f, enum api_code why)
{
	struct exchange *x = take_ptr(f->exchange);

	if (f->landed)
		f->landed(f->context, NULL, 0, why);
	if (x && exchange_is_streaming(x)) {
		put_error(f, x, why);
		exchange_end_stream(x);
	} else if (x) {
		exchange_refuse(x, why, NULL, NULL,
				api_rows[why].http_status == 503 ? RETRY_SOON_MS : 0);
	}
}

/* `line` is the whole of {"type":"result","result":RESULT}: the reply is RESULT, verbatim. */
static void answer_result(struct execution *f, const char *line, size_t size)
{
	struct exchange *x = f->exchange;
	size_t before = sizeof(RESULT_BEFORE) - 1;
	struct http_reply reply = { .status = 200,
				    .content_type = "application/json",
				    .skip = before,
				    .size = size - before };

	if (f->landed)
		f->landed(f->context, line + before, size - before - 1, API_CODE_COUNT);
	if (!x)
		return;
	if (exchange_is_streaming(x)) {
		execution_tell_dropped(f);
		if (exchange_put(x, line, size, true))
			(void)exchange_put(x, "\n", 1, true);
		else
			put_error(f, x, API_TOO_MANY_WAITING);
		exchange_end_stream(x);
	} else {
		reply.text = malloc(size + 1);
		if (reply.text) {
			memcpy(reply.text, line, size);
			reply.text[size - 1] = '\n';
		}
		exchange_reply(x, &reply);
	}
	f->exchange = NULL;
}

/* --- the record ------------------------------------------------------------- */

static struct audit_run about(const struct execution *f)
{
	return (struct audit_run){
		.id = f->run->id,
		.caller = f->run->caller,
		.profile = f->run->profile,
		.profile_sha256 = f->profile_sha256,
		.code_sha256 = f->code_sha256,
		.request_sha256 = f->request_sha256,
		.code_bytes = f->code_bytes,
		.trace = &f->run->trace,
		.tier = f->run->tier,
	};
}

bool execution_record(struct execution *f, const struct summary *s)
{
	struct service *service = f->service;
	struct audit_run run = about(f);
	struct cj_error err = { 0 };

	if (!audit_is_on(&service->audit))
		return !f->terms.audit_required;
	int rc = s ? audit_end(&service->audit, &run, s, &err)
		   : audit_start(&service->audit, &run, &err);
	if (rc == 0)
		return true;
	metrics_count_audit_failure(service->metrics);
	slog_failure(SLOG_ERROR, execution_request_id(f), &err,
		     s ? "record a run's end" : "record a run");
	return !f->terms.audit_required;
}

/* --- landing ---------------------------------------------------------------- */

/* The end of the run; its worker may still be busy leaving. */
static void finish_run(struct execution *f)
{
	struct service *s = f->service;
	uint64_t request_us = clock_us() - f->begun_us;

	metrics_count_run(s->metrics, f->run->profile, f->run->tier, &f->run->summary, request_us);
	runs_finish(&s->runs, f->run, service_wall_ms());
	f->run = NULL;
	if (!f->wire)
		return;
	TAILQ_REMOVE(&s->flights->flying, f, link);
	TAILQ_INSERT_TAIL(&s->flights->leaving, f, link);
	s->flights->nleaving++;
	f->deadline_ms = clock_ms() + EXECUTION_LEAVE_MS;
}

/* What the caller is not told, because it is the host's, stands here; a probe's is health.c's. */
static void log_failure(const struct execution *f)
{
	const struct summary *s = &f->run->summary;

	if (s->status == STATUS_SETUP_ERROR && !s->is_callers_own && !f->landed)
		slog(SLOG_ERROR, execution_request_id(f), "run %s (%s): %s: %s", f->run->id,
		     f->run->profile, s->error_stage, s->error_message);
}

void execution_land(struct execution *f, const char *line, size_t size)
{
	log_failure(f);
	if (execution_record(f, &f->run->summary))
		answer_result(f, line, size);
	else
		answer_failure(f, API_AUDIT_UNAVAILABLE);
	finish_run(f);
}

/* An end that no worker told of. */
static void record_ours(struct execution *f, const struct summary *s)
{
	f->run->summary = *s;
	f->run->has_summary = true;
	if (f->is_on_record)
		(void)execution_record(f, s); /* said and counted there */
}

/* No result will come.  What is in the record says that it was we who failed. */
void execution_land_without(struct execution *f, const char *why)
{
	struct summary s = { .status = STATUS_SETUP_ERROR,
			     .exit_code = -1,
			     .error_stage = "service" };

	(void)snprintf(s.error_message, sizeof(s.error_message), "%s", why);
	slog(SLOG_ERROR, execution_request_id(f), "run %s (%s): %s", f->run->id, f->run->profile,
	     why);
	record_ours(f, &s);
	answer_failure(f, API_INTERNAL);
	finish_run(f);
}

/* Its worker is not asked: the result of a cancelled run, from us. */
static char *write_cancelled(const struct execution *f, size_t *out_size)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const struct result_about profile = { .profile_name = f->run->profile,
					      .profile_sha256 = f->profile_sha256 };
	struct cj_error err = { 0 };
	struct outcome o;
	const char *text = NULL;
	size_t size = 0;

	if (!w)
		return NULL;
	outcome_init(&o, f->run->id, 0);
	outcome_decide(&o, STATUS_CANCELLED);
	(void)snprintf(o.code_sha256, sizeof(o.code_sha256), "%s", f->code_sha256);
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

void execution_land_cancelled(struct execution *f)
{
	const struct summary s = { .status = STATUS_CANCELLED, .exit_code = -1 };
	size_t size = 0;
	auto_free char *line = write_cancelled(f, &size);

	record_ours(f, &s);
	if (line)
		answer_result(f, line, size);
	else
		answer_failure(f, API_INTERNAL);
	finish_run(f);
}

void execution_turn_away(struct execution *f, enum api_code why)
{
	answer_failure(f, why);
	runs_drop(&f->service->runs, f->run);
	execution_destroy(f);
}
