/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/runs and /v1/profiles. */
#include <strings.h>

#include "profiles/profile.h"
#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/run/report/result.h"
#include "runtime/service/api/api.h"
#include "runtime/service/api/api_parts.h"
#include "runtime/service/config/profile_cache.h"
#include "runtime/service/log/slog.h"
#include "runtime/service/queue/execution.h"

void api_post_run(struct api_call *c)
{
	const struct run_ops ops = { .exchange = c->exchange };
	struct cj_error err = { 0 };
	struct posted p;
	char id[PLAN_ID_MAX];

	posted_init(&p, c);
	if (posted_is_accepted(&p) && posted_parse(&p, REQUEST_RUN, NULL) &&
	    posted_find_profile(&p) && posted_validate(&p, p.profile) && posted_is_answerable(&p) &&
	    posted_has_room(&p, id)) {
		const struct run_order order = posted_order(&p, JOB_RUN, id);
		if (!execution_begin(&c->api->executions, &order, &ops, &err))
			(void)api_refuse(c, API_INTERNAL, &err);
	}
	posted_fini(&p);
}

static void put_time(struct json_writer *w, const char *key, uint64_t ms)
{
	if (ms > 0)
		result_put_ms(w, key, ms);
	else
		json_member_text(w, key, NULL);
}

static void put_run(struct json_writer *w, const struct run *run)
{
	json_open_object(w);
	json_member_text(w, "id", run->order.job.id);
	json_member_text(w, "profile", run->order.profile);
	if (run->order.session[0])
		json_member_text(w, "session", run->order.session);
	json_member_text(w, "state", run_state_names[run->state]);
	json_member_text(w, "tier", run->has_tier ? tier_names[run->tier] : NULL);
	json_member_text(w, "request_id", run->order.job.trace.request_id);
	put_time(w, "created_at", run->created_ms);
	put_time(w, "started_at", run->started_ms);
	put_time(w, "ended_at", run->ended_ms);
	/* How it ended; null before, and for a run without a summary. */
	const struct summary *s = &run->summary;
	bool has = run->state == RUN_FINISHED && run->has_summary;
	json_member_text(w, "status", has ? status_names[s->totals.status] : NULL);
	json_member_known(w, "exit_code", has && s->totals.status == STATUS_EXITED,
			  (uint64_t)s->totals.exit_code);
	if (has)
		result_put_usage(w, &s->totals.usage);
	else
		json_member_text(w, "usage", NULL);
	json_close_object(w);
}

void api_list_runs(struct api_call *c)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const struct run *run;

	json_open_object(w);
	json_member_array(w, "runs");
	for (size_t i = 0; i < RUN_STATE_COUNT; i++)
		TAILQ_FOREACH(run, &c->api->runs.lists[i], link)
			if (strcmp(run->order.caller, c->account->name) == 0)
				put_run(w, run);
	json_close_array(w);
	json_close_object(w);
	exchange_reply_json(c->exchange, 200, w);
}

static struct run *find_run(struct api_call *c)
{
	return runs_find(&c->api->runs, c->account->name, c->names.ids[0]);
}

/* The run of another caller is not found, as one that never existed. */
void api_show_run(struct api_call *c)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const struct run *run = find_run(c);

	if (!run) {
		(void)api_refuse(c, API_NOT_FOUND, NULL);
		return;
	}
	put_run(w, run);
	exchange_reply_json(c->exchange, 200, w);
}

void api_cancel_run(struct api_call *c)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct run *run = find_run(c);

	if (!run || run->state == RUN_FINISHED) {
		api_show_run(c);
		return;
	}
	execution_cancel(run);
	run = find_run(c); /* a queued run is finished now, and may be removed already */
	json_open_object(w);
	json_member_text(w, "id", c->names.ids[0]);
	json_member_text(w, "state", run_state_names[run ? run->state : RUN_FINISHED]);
	json_close_object(w);
	exchange_reply_json(c->exchange, 202, w);
}

void api_take_answer(struct api_call *c, struct run *run, uint64_t last_call, const char *call)
{
	auto_arena struct arena a = { 0 };
	struct api_body body = { 0 };
	struct cj_error err = { 0 };
	uint64_t number = 0;
	size_t size = 0;
	auto_free char *text = exchange_take_body(c->exchange, &size);
	int rc = api_body_read(API_BODY_ANSWER, (struct blob){ text, size }, &a, &body, &err);

	if (rc < 0) {
		(void)api_refuse(c, rc == -EFBIG ? API_TOO_LARGE : API_BAD_REQUEST, &err);
		return;
	}
	enum api_code why = API_NOT_FOUND;
	if (parse_u64(call, 1, run ? UINT64_MAX : last_call, &number, &err) == 0)
		why = run ? execution_answer_call(run, number, body.result ? "result" : "error",
						  body.value)
			  : API_CALL_ENDED;
	if (why == API_OK)
		exchange_reply(c->exchange, &(struct http_reply){ .status = 204 });
	else
		exchange_refuse(c->exchange, why,
				why == API_NOT_FOUND ? "the run has made no such call" : NULL,
				NULL);
}

void api_answer_call(struct api_call *c)
{
	struct run *run = find_run(c);

	if (run)
		api_take_answer(c, run, 0, c->names.ids[1]);
	else
		(void)api_refuse(c, API_NOT_FOUND, NULL);
}

/* Only a caller with host_paths may read what is wrong with a profile: it names paths. */
static void put_profile(struct json_writer *w, struct api_call *c, const struct profile_entry *e)
{
	const char *const contexts[] = { "none", "repl" };
	const struct config *config = NULL;
	struct cj_error err = { 0 };
	bool is_good = !e->problem &&
		       profile_cache_get(c->api->profiles, e->name, &config, &err) == 0;

	json_open_object(w);
	json_member_text(w, "name", e->name);
	json_member_text(w, "description", e->description);
	json_member_text(w, "sha256", is_good ? config->profile_sha256 : NULL);
	json_member_bool(w, "warm",
			 pool_wanted_tier(&c->api->pool, e->name, FIT_INTERPRETER) > TIER_COLD);
	if (is_good) {
		json_member_object(w, "limits");
		json_member_u64(w, "memory_bytes", config->limits.memory_bytes);
		json_member_milli(w, "cpus", config->limits.millicpus);
		json_member_u64(w, "pids", config->limits.pids);
		json_member_u64(w, "timeout_ms", config->run_limits.wall_ms);
		json_member_u64(w, "disk_bytes", config->limits.disk_bytes);
		json_member_u64(w, "max_output_bytes", config->run_limits.output_bytes);
		json_close_object(w);
		json_member_text(w, "network", network_mode_names[config->network]);
		/* what a session of the profile may have */
		json_member_texts(w, "contexts", contexts, plan_has_repl(config) ? 2 : 1);
	} else if (c->account->rights->host_paths)
		json_member_text(w, "problem", e->problem ? e->problem : err.msg);
	else
		json_member_text(w, "problem",
				 "the profile is invalid; the service's log says why");
	json_close_object(w);
	if (!is_good)
		slog(SLOG_WARNING, exchange_trace(c->exchange)->request_id, "profile '%s': %s",
		     e->name, e->problem ? e->problem : err.msg);
}

void api_list_profiles(struct api_call *c)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	auto_arena struct arena a = { 0 };
	struct profile_entry *entries = NULL;
	struct cj_error err = { 0 };
	size_t count = 0;

	if (profile_list(&a, &entries, &count, &err) < 0) {
		(void)api_refuse(c, API_INTERNAL, &err);
		return;
	}
	json_open_object(w);
	json_member_array(w, "profiles");
	for (size_t i = 0; i < count; i++)
		if (rights_has_profile(c->account->rights, entries[i].name))
			put_profile(w, c, &entries[i]);
	json_close_array(w);
	json_close_object(w);
	exchange_reply_json(c->exchange, 200, w);
}
