/* SPDX-License-Identifier: Apache-2.0 */
/* Runs, carried out.  Acts: workers, records, replies. */
#include "runtime/front/serve/queue/execution.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "runtime/base/clock.h"
#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/front/serve/queue/execution_parts.h"
#include "runtime/front/serve/operations/slog.h"

/* A control character takes six bytes in JSON: two streams, artefacts; then names and all the rest.
 */
#define LINE_MAX_OF(output_bytes) (12 * (output_bytes) + 6 * JOB_ARTIFACTS_MAX + (16u << 20))

struct executions *executions_create(void)
{
	struct executions *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	TAILQ_INIT(&f->flying);
	TAILQ_INIT(&f->leaving);
	return f;
}

/* --- the worker's lines ----------------------------------------------------- */

static void hear_summary(struct execution *f, const char *text, size_t size)
{
	auto_arena struct arena a = { 0 };
	const struct json_node *root = NULL;
	struct cj_error err = { 0 };

	if (json_parse("worker", text, size, &a, &root, &err) < 0 ||
	    summary_read(root, &f->run->summary, &err) < 0) {
		slog_failure(SLOG_ERROR, execution_request_id(f), &err, "read a worker's summary");
		return;
	}
	f->run->has_summary = true;
}

static bool is_result(const struct execution *f, const char *text, size_t size)
{
	return f->run->has_summary && size > sizeof(RESULT_BEFORE) + 2 &&
	       strncmp(text, RESULT_BEFORE, sizeof(RESULT_BEFORE) - 1) == 0 &&
	       strcmp(text + size - 2, "}}") == 0;
}

static void on_taken(void *holder)
{
	struct execution *f = holder;
	worker_conn_hold(f->wire, false);
}

static void begin_stream(struct execution *f)
{
	if (!exchange_is_streaming(f->exchange))
		exchange_begin_stream(f->exchange, on_taken);
}

/* A caller that is behind is waited for, until its run's time is over or it is cancelled. */
static void pass_event(struct execution *f, const char *text, size_t size)
{
	struct exchange *x = f->exchange;

	if (!x || !f->terms.wants_events)
		return;
	begin_stream(f);
	execution_tell_dropped(f);
	if (f->dropped == 0) {
		/* a line is whole or absent */
		auto_free char *line = malloc(size + 1);
		if (line) {
			memcpy(line, text, size);
			line[size] = '\n';
		}
		if (line && exchange_put(x, line, size + 1, false)) {
			worker_conn_hold(f->wire, exchange_is_behind(x) && !f->is_cut);
			return;
		}
	}
	f->dropped++;
}

static void on_line(struct worker_conn *w, const char *text, size_t size)
{
	static const char *const events[] = { "start", "stdout", "stderr", "denied", "dropped" };
	struct execution *f = w->owner;
	char type[16], why[CJ_ERROR_MSG_MAX + CJ_ERROR_HINT_MAX];

	if (!f->run)
		return; /* behind the result there is nothing that counts */
	worker_conn_line_type(text, type);
	if (strcmp(type, "summary") == 0) {
		hear_summary(f, text, size);
	} else if (is_result(f, text, size)) {
		if (f->terms.wants_events && f->exchange)
			begin_stream(f);
		execution_land(f, text, size);
	} else if (strcmp(type, "unready") == 0) {
		unready_read(text, size, why, sizeof(why));
		execution_land_without(f, why);
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

static void leave(struct execution *f)
{
	TAILQ_REMOVE(&f->service->flights->leaving, f, link);
	f->service->flights->nleaving--;
	execution_destroy(f);
}

static void on_ended(struct worker_conn *w, const char *why)
{
	struct execution *f = w->owner;
	char text[128];

	if (f->run) {
		(void)snprintf(text, sizeof(text), "its worker ended without a result%s%s",
			       why[0] ? ": " : "", why);
		execution_land_without(f, text);
	}
	leave(f);
}

/* The end of its run, and of all waiting for who reads. */
static void cut(struct execution *f)
{
	worker_conn_close_control(f->wire);
	f->is_cut = true;
	worker_conn_hold(f->wire, false);
}

/* --- starting --------------------------------------------------------------- */

static int send_job(struct execution *f, struct cj_error *err)
{
	const struct lower *lower = &f->terms.lower;
	struct job job = {
		.trace = f->run->trace,
		.wants_events = f->terms.wants_events,
		.may_name_host_paths = f->terms.may_name_host_paths,
		.memory_bytes = lower->memory_bytes,
		.millicpus = lower->millicpus,
		.pids = lower->pids,
		.wall_ms = lower->wall_ms,
		.disk_bytes = lower->disk_bytes,
		.output_bytes = lower->output_bytes,
		.no_network = lower->no_network,
		.body = f->body,
		.body_size = f->body_size,
	};

	(void)snprintf(job.id, sizeof(job.id), "%s", f->run->id);
	memcpy(job.profile_sha256, f->profile_sha256, sizeof(job.profile_sha256));
	return worker_send_job(&f->wire->worker, &job, err);
}

/* The best there is for it. */
static int find_worker(struct execution *f, struct cj_error *err)
{
	struct service *s = f->service;

	f->run->tier = TIER_COLD;
	f->run->has_tier = true;
	f->wire = pool_take(&s->pool, f->run->profile, f->terms.fit, &f->run->tier);
	return f->wire ? 0 : service_spawn_worker(s, f->run->profile, TIER_COLD, &f->wire, err);
}

/*
 * A prepared worker that died meanwhile is no loss: the next one, at last a cold one, whose last
 * line says why there is none.
 */
static int hand_over(struct execution *f, struct cj_error *err)
{
	struct service *s = f->service;

	while (send_job(f, err) < 0) {
		bool was_cold = f->run->tier == TIER_COLD;
		if (was_cold && err->code == EPIPE)
			break;
		worker_conn_destroy(&f->wire);
		if (was_cold || find_worker(f, err) < 0)
			return -err->code;
	}
	f->wire->owner = f;
	f->wire->line = on_line;
	f->wire->ended = on_ended;
	f->wire->line_max = LINE_MAX_OF(f->terms.output_bytes);
	metrics_count_pool(s->metrics, f->run->profile,
			   pool_wanted_tier(&s->pool, f->run->profile, f->terms.fit), f->run->tier);
	metrics_count_bypass(s->metrics, f->run->profile,
			     pool_bypass_of(&s->pool, f->run->profile, f->terms.fit,
					    f->terms.why_cold, f->run->tier));
	return 0;
}

/* Nothing of it runs before it is on record. */
static int try_start(struct execution *f, bool *out_refused, struct cj_error *err)
{
	if (find_worker(f, err) < 0)
		return -err->code;
	*out_refused = !execution_record(f, NULL);
	if (*out_refused)
		return 0;
	f->is_on_record = true;
	return hand_over(f, err);
}

static void start(struct execution *f, uint64_t now_ms)
{
	struct service *s = f->service;
	struct cj_error err = { 0 };
	bool is_refused = false;

	int rc = try_start(f, &is_refused, &err);
	if (is_refused) {
		execution_turn_away(f, API_AUDIT_UNAVAILABLE);
		return;
	}
	runs_start(&s->runs, f->run, service_wall_ms());
	if (rc < 0) {
		char why[CJ_ERROR_MSG_MAX + 64];
		(void)snprintf(why, sizeof(why), "no worker takes it: %s", err.msg);
		execution_land_without(f, why);
		execution_destroy(f);
		return;
	}
	free(take_ptr(f->body));
	if (f->exchange)
		exchange_drop_body(f->exchange);
	if (f->terms.wall_ms > 0)
		f->deadline_ms = now_ms + f->terms.wall_ms + EXECUTION_GRACE_MS;
	TAILQ_INSERT_TAIL(&s->flights->flying, f, link);
}

static void on_caller_gone(void *holder)
{
	struct execution *f = holder;

	f->exchange = NULL;
	slog(SLOG_INFO, execution_request_id(f), "run %s: its caller went away", f->run->id);
	execution_cancel(f->run);
}

int execution_begin(struct service *s, const struct execution_order *order, struct cj_error *err)
{
	const struct run_times now = { .now_ms = clock_ms(), .wall_ms = service_wall_ms() };
	struct execution *f = calloc(1, sizeof(*f));
	struct run *run = f ? runs_add(&s->runs, order->id, order->account, order->profile,
				       order->trace, now, s->config->queue_ms)
			    : NULL;

	if (!run) {
		free(f);
		free(order->body);
		return cj_fail(err, ENOMEM, "take a run");
	}
	*f = (struct execution){ .service = s,
				 .run = run,
				 .exchange = order->exchange,
				 .terms = order->terms,
				 .code_bytes = order->code.size,
				 .body = order->body,
				 .body_size = order->body_size,
				 .landed = order->landed,
				 .context = order->context };
	f->begun_us = order->exchange ? exchange_whole_us(order->exchange) : clock_us();
	(void)snprintf(f->profile_sha256, sizeof(f->profile_sha256), "%s", order->profile_sha256);
	if (order->code.bytes)
		sha256_hex(order->code.bytes, order->code.size, f->code_sha256);
	if (audit_is_on(&s->audit))
		sha256_hex(order->body, order->body_size, f->request_sha256);
	run->flight = f;
	if (order->exchange)
		exchange_hold(order->exchange, on_caller_gone, f);
	return 0;
}

void execution_cancel(struct run *run)
{
	struct execution *f = run->flight;

	if (run->state == RUN_QUEUED) {
		execution_land_cancelled(f);
		execution_destroy(f);
	} else if (run->state == RUN_RUNNING && !f->is_cut) {
		cut(f);
		f->deadline_ms = clock_ms() + EXECUTION_GRACE_MS;
	}
}

void executions_cancel_all(struct service *s)
{
	struct run *run;

	while ((run = TAILQ_FIRST(&s->runs.lists[RUN_QUEUED])) != NULL)
		execution_cancel(run);
	TAILQ_FOREACH(run, &s->runs.lists[RUN_RUNNING], link)
		execution_cancel(run);
}

/* --- time ------------------------------------------------------------------- */

static void sooner(int *wait_ms, uint64_t ms)
{
	int capped = ms > 60000 ? 60000 : (int)ms;
	if (*wait_ms < 0 || capped < *wait_ms)
		*wait_ms = capped;
}

/* A worker past its time: first its leash, later its socket; its run lands without a result. */
static void press(struct execution *f, uint64_t now_ms)
{
	if (!f->is_cut) {
		slog(SLOG_WARNING, execution_request_id(f), "run %s: %s is late, its leash is cut",
		     f->run->id, f->wire->is_held ? "who reads its output" : "its worker");
		cut(f);
		f->deadline_ms = now_ms + EXECUTION_CUT_MS;
		return;
	}
	execution_land_without(f, f->is_broken ? "its worker said what makes no sense"
					       : "its worker is late and doesn't end");
	leave(f);
}

static void press_late(struct service *s, uint64_t now_ms, int *wait_ms)
{
	struct execution *f, *next;

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

int executions_tick(struct service *s, uint64_t now_ms)
{
	struct run *run;
	uint64_t until_ms = 0;
	int wait_ms = -1;

	while ((run = runs_overdue(&s->runs, now_ms, &until_ms)) != NULL)
		execution_turn_away(run->flight, API_QUEUE_TIMEOUT);
	if (until_ms != UINT64_MAX)
		sooner(&wait_ms, until_ms);
	while (s->flights->nleaving < s->concurrency &&
	       (run = runs_next(&s->runs, s->concurrency)) != NULL)
		start(run->flight, now_ms);
	press_late(s, now_ms, &wait_ms);
	return wait_ms;
}

size_t executions_count(const struct service *s)
{
	return runs_unfinished(&s->runs) + s->flights->nleaving;
}

void executions_destroy(struct executions **flights)
{
	struct execution *f;

	if (!*flights)
		return;
	while ((f = TAILQ_FIRST(&(*flights)->flying)) != NULL) {
		if (f->service->is_draining) /* somebody wants it to end now */
			execution_land_cancelled(f);
		else
			execution_land_without(f, "the service ends");
		leave(f);
	}
	while ((f = TAILQ_FIRST(&(*flights)->leaving)) != NULL)
		leave(f);
	free(*flights);
	*flights = NULL;
}
