/* SPDX-License-Identifier: Apache-2.0 */
/* Runs, carried out.  Acts: workers, records, replies. */
#include "runtime/front/serve/flight.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "runtime/base/json.h"
#include "runtime/base/scope.h"
#include "runtime/front/report/result.h"
#include "runtime/front/serve/service.h"
#include "runtime/front/serve/slog.h"

/* A control character takes six bytes in JSON; two streams; artefacts as base64; all the rest. */
#define LINE_MAX_OF(output_bytes) (12 * (output_bytes) + 2 * ARTIFACTS_BYTES_MAX + (4u << 20))

#define RESULT_BEFORE "{\"type\":\"result\",\"result\":"
#define RETRY_SOON_MS 1000

struct flight {
	TAILQ_ENTRY(flight) link;
	struct service *service;
	struct run *run; /* NULL: landed, and the worker is leaving */
	struct flight_order order;
	char profile_sha256[SHA256_HEX_MAX], code_sha256[SHA256_HEX_MAX];
	struct wire *wire;
	uint64_t deadline_ms; /* of the next hard step; 0: none */
	bool is_cut, is_broken, is_on_record;
	uint64_t dropped; /* events that a slow caller didn't get */
	uint64_t begun_us;
};
TAILQ_HEAD(flight_list, flight);

struct flights {
	struct flight_list flying, leaving; /* with a worker */
	size_t nleaving;
};

struct flights *flights_create(struct service *s)
{
	struct flights *f = calloc(1, sizeof(*f));

	(void)s;
	if (!f)
		return NULL;
	TAILQ_INIT(&f->flying);
	TAILQ_INIT(&f->leaving);
	return f;
}

static const char *request_id(const struct flight *f)
{
	return f->order.trace->request_id;
}

static void destroy(struct flight *f)
{
	wire_destroy(&f->wire);
	free(f->order.body);
	free(f);
}

/* --- answers ---------------------------------------------------------------- */

static void tell_dropped(struct flight *f)
{
	char line[64];

	if (f->dropped == 0)
		return;
	int size = snprintf(line, sizeof(line), "{\"type\":\"dropped\",\"events\":%llu}\n",
			    (unsigned long long)f->dropped);
	if (exchange_put(f->order.exchange, line, (size_t)size, false))
		f->dropped = 0;
}

static void answer_failure(struct flight *f, enum api_code why)
{
	struct exchange *x = take_ptr(f->order.exchange);
	size_t size = 0;

	if (f->order.landed)
		f->order.landed(f->order.context, NULL, 0, why);
	if (x && exchange_is_streaming(x)) {
		auto_free char *line = api_error_line(why, request_id(f), &size);
		if (line)
			(void)exchange_put(x, line, size, true);
		exchange_end_stream(x);
	} else if (x) {
		exchange_refuse(x, why, NULL, NULL,
				api_rows[why].http_status == 503 ? RETRY_SOON_MS : 0);
	}
}

/* `line` is the whole of {"type":"result","result":RESULT}: the reply is RESULT, verbatim. */
static void answer_result(struct flight *f, const char *line, size_t size)
{
	struct exchange *x = f->order.exchange;
	size_t before = sizeof(RESULT_BEFORE) - 1;
	struct http_reply reply = { .status = 200,
				    .content_type = "application/json",
				    .skip = before,
				    .size = size - before };

	if (f->order.landed)
		f->order.landed(f->order.context, line + before, size - before - 1, API_CODE_COUNT);
	if (!x)
		return;
	if (exchange_is_streaming(x)) {
		tell_dropped(f);
		(void)exchange_put(x, line, size, true);
		(void)exchange_put(x, "\n", 1, true);
		exchange_end_stream(x);
	} else {
		reply.text = malloc(size + 1);
		if (reply.text) {
			memcpy(reply.text, line, size);
			reply.text[size - 1] = '\n';
		}
		exchange_reply(x, &reply);
	}
	f->order.exchange = NULL;
}

/* --- the record ------------------------------------------------------------- */

static struct audit_run about(const struct flight *f)
{
	return (struct audit_run){
		.id = f->run->id,
		.caller = f->run->caller,
		.profile = f->run->profile,
		.profile_sha256 = f->profile_sha256,
		.code_sha256 = f->code_sha256,
		.code_bytes = f->order.code.size,
		.trace = &f->run->trace,
		.tier = f->run->tier,
	};
}

/* False: it is required and can't be had. */
static bool put_on_record(struct flight *f, const struct summary *s)
{
	struct service *service = f->service;
	struct audit_run run = about(f);
	struct cj_error err = { 0 };

	if (!audit_is_on(&service->audit))
		return !f->order.audit_required;
	int rc = s ? audit_end(&service->audit, &run, s, &err)
		   : audit_start(&service->audit, &run, &err);
	if (rc == 0)
		return true;
	metrics_count_audit_failure(service->metrics);
	slog_failure(SLOG_ERROR, request_id(f), &err, s ? "record a run's end" : "record a run");
	return !f->order.audit_required;
}

/* --- landing ---------------------------------------------------------------- */

/* The end of the run; its worker may still be busy leaving. */
static void finish_run(struct flight *f)
{
	struct service *s = f->service;
	uint64_t request_us = loop_now_us() - f->begun_us;

	metrics_count_run(s->metrics, f->run->profile, f->run->tier, &f->run->summary, request_us);
	runs_finish(&s->runs, f->run, service_wall_ms());
	f->run = NULL;
	if (!f->wire)
		return;
	TAILQ_REMOVE(&s->flights->flying, f, link);
	TAILQ_INSERT_TAIL(&s->flights->leaving, f, link);
	s->flights->nleaving++;
	f->deadline_ms = loop_now_ms() + FLIGHT_LEAVE_MS;
}

static void land_with_result(struct flight *f, const char *line, size_t size)
{
	if (put_on_record(f, &f->run->summary))
		answer_result(f, line, size);
	else
		answer_failure(f, API_AUDIT_UNAVAILABLE);
	finish_run(f);
}

/* No result will come.  What is in the record says that it was we who failed. */
static void land_without(struct flight *f, const char *why)
{
	struct summary *s = &f->run->summary;

	slog(SLOG_ERROR, request_id(f), "run %s (%s): %s", f->run->id, f->run->profile, why);
	*s = (struct summary){ .status = STATUS_SETUP_ERROR, .exit_code = -1 };
	(void)snprintf(s->error_stage, sizeof(s->error_stage), "service");
	(void)snprintf(s->error_message, sizeof(s->error_message), "%s", why);
	f->run->has_summary = true;
	if (f->is_on_record)
		(void)put_on_record(f, s); /* said and counted there */
	answer_failure(f, API_INTERNAL);
	finish_run(f);
}

/* It never started: the result that a cancelled run would have, from us. */
static char *write_cancelled(const struct flight *f, size_t *out_size)
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
	json_put_key(w, "type");
	json_put_string(w, "result");
	json_put_key(w, "result");
	int rc = result_write(w, &o, &profile, &err);
	json_close_object(w);
	outcome_fini(&o);
	if (rc < 0 || json_writer_take(w, &text, &size, &err) < 0)
		return NULL;
	*out_size = size;
	return strndup(text, size);
}

static void land_cancelled(struct flight *f)
{
	struct summary *s = &f->run->summary;
	size_t size = 0;
	auto_free char *line = write_cancelled(f, &size);

	*s = (struct summary){ .status = STATUS_CANCELLED, .exit_code = -1 };
	f->run->has_summary = true;
	if (line)
		answer_result(f, line, size);
	else
		answer_failure(f, API_INTERNAL);
	finish_run(f);
	destroy(f);
}

/* It was not taken after all: refused, and not remembered. */
static void turn_away(struct flight *f, enum api_code why)
{
	answer_failure(f, why);
	runs_drop(&f->service->runs, f->run);
	destroy(f);
}

/* --- the worker's lines ----------------------------------------------------- */

static void hear_summary(struct flight *f, const char *text, size_t size)
{
	auto_arena struct arena a = { 0 };
	const struct json_node *root = NULL;
	struct cj_error err = { 0 };

	if (json_parse("worker", text, size, &a, &root, &err) < 0 ||
	    summary_read(root, &f->run->summary, &err) < 0) {
		slog_failure(SLOG_ERROR, request_id(f), &err, "read a worker's summary");
		return;
	}
	f->run->has_summary = true;
}

static bool is_result(const struct flight *f, const char *text, size_t size)
{
	return f->run->has_summary && size > sizeof(RESULT_BEFORE) + 2 &&
	       strncmp(text, RESULT_BEFORE, sizeof(RESULT_BEFORE) - 1) == 0 &&
	       strcmp(text + size - 2, "}}") == 0;
}

static void pass_event(struct flight *f, const char *text, size_t size)
{
	struct exchange *x = f->order.exchange;

	if (!x || !f->order.wants_events)
		return;
	if (!exchange_is_streaming(x))
		exchange_begin_stream(x);
	tell_dropped(f);
	if (f->dropped == 0) {
		/* a line is whole or absent */
		auto_free char *line = malloc(size + 1);
		if (line) {
			memcpy(line, text, size);
			line[size] = '\n';
		}
		if (line && exchange_put(x, line, size + 1, false))
			return;
	}
	f->dropped++;
}

static void on_line(struct wire *w, const char *text, size_t size)
{
	static const char *const events[] = { "start", "stdout", "stderr", "denied", "dropped" };
	struct flight *f = w->owner;
	char type[16];

	if (!f->run)
		return; /* behind the result there is nothing that counts */
	wire_line_type(text, type);
	if (strcmp(type, "summary") == 0) {
		hear_summary(f, text, size);
	} else if (is_result(f, text, size)) {
		if (f->order.wants_events && f->order.exchange &&
		    !exchange_is_streaming(f->order.exchange))
			exchange_begin_stream(f->order.exchange);
		land_with_result(f, text, size);
	} else if (strcmp(type, "ready") != 0) {
		for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
			if (strcmp(type, events[i]) != 0)
				continue;
			pass_event(f, text, size);
			return;
		}
		f->is_broken = f->is_cut = true;
		f->deadline_ms = 1; /* at the next tick */
	}
}

static void leave(struct flight *f)
{
	TAILQ_REMOVE(&f->service->flights->leaving, f, link);
	f->service->flights->nleaving--;
	destroy(f);
}

static void on_ended(struct wire *w, const char *why)
{
	struct flight *f = w->owner;
	char text[128];

	if (f->run) {
		(void)snprintf(text, sizeof(text), "its worker ended without a result%s%s",
			       why[0] ? ": " : "", why);
		land_without(f, text);
	}
	leave(f);
}

/* --- starting --------------------------------------------------------------- */

static int hire_cold(struct flight *f, struct wire **out, struct cj_error *err)
{
	struct service *s = f->service;
	struct worker worker = WORKER_NULL;

	if (spawner_ask(&s->spawner, f->run->profile, TIER_COLD, &worker, err) < 0)
		return -err->code;
	*out = wire_create(&s->loop, &worker, err);
	return *out ? 0 : -err->code;
}

static int send_job(struct flight *f, struct cj_error *err)
{
	const struct flight_order *o = &f->order;
	struct job job = {
		.trace = f->run->trace,
		.wants_events = o->wants_events,
		.may_name_host_paths = o->may_name_host_paths,
		.memory_bytes = o->lower.memory_bytes,
		.millicpus = o->lower.millicpus,
		.pids = o->lower.pids,
		.wall_ms = o->lower.wall_ms,
		.disk_bytes = o->lower.disk_bytes,
		.output_bytes = o->lower.output_bytes,
		.sent_us = job_clock_us(),
		.body = o->body,
		.body_size = o->body_size,
	};

	(void)snprintf(job.id, sizeof(job.id), "%s", f->run->id);
	return worker_send_job(&f->wire->worker, &job, err);
}

/* A prepared worker that died meanwhile is no loss: the next one, at last a cold one. */
static int hand_over(struct flight *f, struct cj_error *err)
{
	struct service *s = f->service;

	for (;;) {
		f->run->tier = TIER_COLD;
		f->wire = pool_take(&s->pool, f->run->profile, f->order.fit, &f->run->tier);
		bool is_cold = f->wire == NULL;
		if (is_cold && hire_cold(f, &f->wire, err) < 0)
			return -err->code;
		if (send_job(f, err) == 0)
			break;
		wire_destroy(&f->wire);
		if (is_cold)
			return -err->code;
	}
	f->run->has_tier = true;
	f->wire->owner = f;
	f->wire->line = on_line;
	f->wire->ended = on_ended;
	f->wire->line_max = LINE_MAX_OF(f->order.output_bytes);
	metrics_count_pool(s->metrics, f->run->profile,
			   pool_wanted_tier(&s->pool, f->run->profile, f->order.fit), f->run->tier);
	return 0;
}

static void start(struct flight *f, uint64_t now_ms)
{
	struct service *s = f->service;
	struct cj_error err = { 0 };

	if (!put_on_record(f, NULL)) {
		turn_away(f, API_AUDIT_UNAVAILABLE);
		return;
	}
	f->is_on_record = true;
	runs_start(&s->runs, f->run, service_wall_ms());
	if (hand_over(f, &err) < 0) {
		char why[CJ_ERROR_MSG_MAX + 64];
		(void)snprintf(why, sizeof(why), "no worker takes it: %s", err.msg);
		land_without(f, why);
		destroy(f);
		return;
	}
	free(take_ptr(f->order.body));
	if (f->order.wall_ms > 0)
		f->deadline_ms = now_ms + f->order.wall_ms + FLIGHT_GRACE_MS;
	TAILQ_INSERT_TAIL(&s->flights->flying, f, link);
}

static void on_caller_gone(void *holder)
{
	struct flight *f = holder;

	f->order.exchange = NULL;
	slog(SLOG_INFO, request_id(f), "run %s: its caller went away", f->run->id);
	flight_cancel(f->service, f->run);
}

int flight_begin(struct service *s, const struct flight_order *order, struct cj_error *err)
{
	const struct run_times now = { .now_ms = loop_now_ms(), .wall_ms = service_wall_ms() };
	struct flight *f = calloc(1, sizeof(*f));
	struct run *run = f ? runs_add(&s->runs, order->id, order->account, order->profile,
				       order->trace, now, s->config->queue_ms)
			    : NULL;

	if (!run) {
		free(f);
		free(order->body);
		return cj_fail(err, ENOMEM, "take a run");
	}
	*f = (struct flight){ .service = s, .run = run, .order = *order };
	f->begun_us = order->exchange ? exchange_whole_us(order->exchange) : loop_now_us();
	f->order.trace = &run->trace;
	(void)snprintf(f->profile_sha256, sizeof(f->profile_sha256), "%s", order->profile_sha256);
	if (order->code.bytes)
		sha256_hex(order->code.bytes, order->code.size, f->code_sha256);
	run->flight = f;
	if (order->exchange)
		exchange_hold(order->exchange, on_caller_gone, f);
	return 0;
}

void flight_cancel(struct service *s, struct run *run)
{
	struct flight *f = run->flight;

	if (run->state == RUN_QUEUED) {
		land_cancelled(f);
	} else if (run->state == RUN_RUNNING && !f->is_cut) {
		wire_cut_leash(f->wire);
		f->is_cut = true;
		f->deadline_ms = loop_now_ms() + FLIGHT_GRACE_MS;
	}
	(void)s;
}

void flights_cancel_all(struct service *s)
{
	struct run *run;

	while ((run = TAILQ_FIRST(&s->runs.lists[RUN_QUEUED])) != NULL)
		flight_cancel(s, run);
	TAILQ_FOREACH(run, &s->runs.lists[RUN_RUNNING], link)
	flight_cancel(s, run);
}

/* --- time ------------------------------------------------------------------- */

static void sooner(int *wait_ms, uint64_t ms)
{
	int capped = ms > 60000 ? 60000 : (int)ms;
	if (*wait_ms < 0 || capped < *wait_ms)
		*wait_ms = capped;
}

/* A worker past its time: first its leash, later its socket; its run lands without a result. */
static void press(struct flight *f, uint64_t now_ms)
{
	if (!f->is_cut) {
		slog(SLOG_WARNING, request_id(f), "run %s: its worker is late, its leash is cut",
		     f->run->id);
		wire_cut_leash(f->wire);
		f->is_cut = true;
		f->deadline_ms = now_ms + FLIGHT_CUT_MS;
		return;
	}
	land_without(f, f->is_broken ? "its worker said what makes no sense"
				     : "its worker is late and doesn't end");
	leave(f);
}

static void press_late(struct service *s, uint64_t now_ms, int *wait_ms)
{
	struct flight *f, *next;

	for (f = TAILQ_FIRST(&s->flights->flying); f; f = next) {
		next = TAILQ_NEXT(f, link);
		if (f->deadline_ms > 0 && f->deadline_ms <= now_ms)
			press(f, now_ms);
		else if (f->deadline_ms > 0)
			sooner(wait_ms, f->deadline_ms - now_ms);
	}
	for (f = TAILQ_FIRST(&s->flights->leaving); f; f = next) {
		next = TAILQ_NEXT(f, link);
		if (f->deadline_ms <= now_ms)
			leave(f);
		else
			sooner(wait_ms, f->deadline_ms - now_ms);
	}
}

int flights_tick(struct service *s, uint64_t now_ms)
{
	struct run *run;
	uint64_t until_ms = 0;
	int wait_ms = -1;

	while ((run = runs_overdue(&s->runs, now_ms, &until_ms)) != NULL)
		turn_away(run->flight, API_QUEUE_TIMEOUT);
	if (until_ms != UINT64_MAX)
		sooner(&wait_ms, until_ms);
	while (s->flights->nleaving < s->concurrency &&
	       (run = runs_next(&s->runs, s->concurrency)) != NULL)
		start(run->flight, now_ms);
	press_late(s, now_ms, &wait_ms);
	return wait_ms;
}

size_t flights_count(const struct service *s)
{
	return s->runs.counts[RUN_QUEUED] + s->runs.counts[RUN_RUNNING] + s->flights->nleaving;
}

void flights_destroy(struct flights **flights)
{
	struct flight *f;

	if (!*flights)
		return;
	while ((f = TAILQ_FIRST(&(*flights)->flying)) != NULL) {
		land_without(f, "the service ends");
		leave(f);
	}
	while ((f = TAILQ_FIRST(&(*flights)->leaving)) != NULL)
		leave(f);
	free(*flights);
	*flights = NULL;
}
