/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /v1/runs and /v1/profiles.  Acts: reads profiles, queues runs, replies.
 *
 * A new run is validated here before a process is made for it: its JSON and its sizes, the profile,
 * the rights and ceilings of its caller, the room in the queue.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "profiles/profile.h"
#include "runtime/base/clock.h"
#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/front/report/result.h"
#include "runtime/front/serve/api/api.h"
#include "runtime/front/serve/config/profile_cache.h"
#include "runtime/front/serve/config/service_config.h"
#include "runtime/front/serve/queue/execution.h"
#include "runtime/front/serve/operations/slog.h"

#define RETRY_SOON_MS  1000
#define DRAIN_RETRY_MS 5000

/* A request for a run, while it is validated. */
struct posted {
	struct api_call *call;
	struct arena arena;
	char *body;
	size_t size;
	struct request request;
	const struct config *profile; /* borrowed from profile_cache.h */
	struct config asked;          /* the profile with the request's settings */
	struct rights_clamp clamp;
};

static void refuse(struct posted *p, enum api_code code, const struct cj_error *err,
		   uint64_t retry_ms)
{
	exchange_refuse(p->call->exchange, code, err ? err->msg : NULL, err ? err->hint : NULL,
			retry_ms);
}

/* The caller is not at fault: the reason only goes to the log. */
static void fail(struct posted *p, const struct cj_error *err, const char *what)
{
	slog_failure(SLOG_ERROR, exchange_trace(p->call->exchange)->request_id, err, what);
	refuse(p, API_INTERNAL, NULL, 0);
}

static bool is_type(const char *content_type, const char *wanted)
{
	size_t size = strlen(wanted);

	return strncasecmp(content_type, wanted, size) == 0 &&
	       strchr("; \t", content_type[size]) != NULL;
}

/* The default type of `curl -d` is accepted, but not on TCP: web forms send it, too. */
static bool is_json(const struct exchange *x)
{
	const char *type = exchange_header(x, "Content-Type");

	return !type || is_type(type, "application/json") ||
	       (!exchange_caller(x).is_tcp && is_type(type, "application/x-www-form-urlencoded"));
}

/* --- validation, step by step; false: the request is refused ---------------------- */

static bool is_accepting(struct posted *p)
{
	bool is_draining = executions_is_draining(p->call->api->executions);

	if (is_draining)
		refuse(p, API_DRAINING, NULL, DRAIN_RETRY_MS);
	return !is_draining;
}

static bool is_valid(struct posted *p)
{
	struct api_call *c = p->call;
	struct cj_error err = { 0 };

	if (!is_json(c->exchange)) {
		refuse(p, API_UNSUPPORTED_MEDIA_TYPE, NULL, 0);
		return false;
	}
	const struct blob body = { p->body ? p->body : "", p->size };
	int rc = request_parse(body, &c->api->config->caps, &p->arena, &p->request, &err);
	if (rc == -EFBIG)
		refuse(p, API_TOO_LARGE, &err, 0);
	else if (rc == -ENOMEM)
		fail(p, &err, "read a request");
	else if (rc < 0)
		refuse(p, API_BAD_REQUEST, &err, 0);
	return rc == 0;
}

static bool may_use_profile(struct posted *p)
{
	struct api_call *c = p->call;
	const char *name = p->request.profile;
	struct cj_error err = { 0 };

	if (!is_name(name)) {
		(void)!cj_reject(&err, "profile: '%s' is not a profile's name", name);
		refuse(p, API_BAD_REQUEST, &err, 0);
		return false;
	}
	if (!rights_has_profile(c->account->rights, name)) {
		refuse(p, API_FORBIDDEN_PROFILE, NULL, 0);
		return false;
	}
	int rc = profile_cache_get(c->api->profiles, name, &p->profile, &err);
	if (rc == -ENOENT) {
		(void)!cj_reject(&err, "profile: there is no '%s'", name);
		cj_hint(&err, "GET /v1/profiles lists them");
		refuse(p, API_BAD_REQUEST, &err, 0);
	} else if (rc < 0) {
		fail(p, &err, "read a profile");
	}
	return rc == 0;
}

/* The request against the rights and ceilings of its caller. */
static bool is_within_rights(struct posted *p)
{
	const struct rights *rights = p->call->account->rights;
	struct cj_error err = { 0 };

	if (config_copy(&p->asked, p->profile, &err) < 0) {
		fail(p, &err, "validate a request");
		return false;
	}
	int rc = request_apply(&p->request, rights->host_paths, &p->asked, &err);
	if (rc == 0)
		rc = request_check(&p->request, &p->asked, &p->arena, &err);
	if (rc < 0) {
		refuse(p,
		       rc == -EACCES  ? API_FORBIDDEN_HOST_PATH
		       : rc == -EPERM ? API_ABOVE_CEILING
				      : API_BAD_REQUEST,
		       &err, 0);
		return false;
	}
	rc = rights_validate(rights, &p->asked, p->profile, &p->clamp, &err);
	if (rc == 0 && p->clamp.no_network && json_get(p->request.root, "network"))
		rc = rights_refuse_network(&err);
	if (rc < 0)
		refuse(p, API_ABOVE_CEILING, &err, 0);
	else
		rights_clamp_apply(&p->clamp, &p->asked);
	return rc == 0;
}

static bool has_room(struct posted *p, char id[static PLAN_ID_MAX])
{
	struct api *api = p->call->api;
	struct cj_error err = { 0 };

	if (p->request.id) {
		(void)snprintf(id, PLAN_ID_MAX, "%s", p->request.id);
	} else if (plan_mint_id(id, &err) < 0) {
		fail(p, &err, "mint an id");
		return false;
	}
	if (runs_has_live(api->runs, p->call->account->name, id)) {
		refuse(p, API_ID_IN_USE, NULL, 0);
		return false;
	}
	enum api_code why = executions_admit(api->executions, p->call->account);
	if (why != API_CODE_COUNT)
		refuse(p, why, NULL, RETRY_SOON_MS);
	return why == API_CODE_COUNT;
}

static bool wants_events(const struct exchange *x)
{
	const char *accept = exchange_header(x, "Accept");
	return accept && strcasestr(accept, "application/x-ndjson") != NULL;
}

static void take(struct posted *p, const char *id)
{
	struct api_call *c = p->call;
	struct cj_error err = { 0 };
	bool is_cold = p->request.fit == FIT_COLD;
	const struct execution_order order = {
		.exchange = c->exchange,
		.account = c->account,
		.id = id,
		.profile = p->request.profile,
		.profile_sha256 = p->profile->profile_sha256,
		.trace = exchange_trace(c->exchange),
		.terms = { .fit = rights_clamp_changes_shape(&p->clamp) ? FIT_COLD : p->request.fit,
			   .why_cold = is_cold ? BYPASS_REQUEST : BYPASS_CEILING,
			   .wants_events = wants_events(c->exchange),
			   .may_name_host_paths = c->account->rights->host_paths,
			   .audit_required = p->profile->audit_required || p->asked.audit_required,
			   .clamp = p->clamp,
			   .wall_ms = p->asked.wall_ms,
			   .output_bytes = p->asked.output_bytes },
		.code = p->request.code,
		.body = p->body,
		.body_size = p->size,
	};

	p->body = NULL; /* taken */
	if (execution_begin(c->api->executions, &order, NULL, &err) < 0)
		fail(p, &err, "queue a run");
}

static bool passes_filter(struct posted *p)
{
	const struct api_filter *f = &p->call->api->filter;

	return !f->refuses || !f->refuses(f->context, p->call->exchange, &p->request);
}

void api_post_run(struct api_call *c)
{
	struct posted p = { .call = c };
	char id[PLAN_ID_MAX];

	config_init(&p.asked);
	p.body = exchange_take_body(c->exchange, &p.size);
	if (is_accepting(&p) && is_valid(&p) && may_use_profile(&p) && is_within_rights(&p) &&
	    passes_filter(&p) && has_room(&p, id))
		take(&p, id);
	free(p.body);
	config_fini(&p.asked);
	arena_fini(&p.arena);
}

/* --- GET and DELETE of runs --------------------------------------------------- */

static void put_time(struct json_writer *w, const char *key, uint64_t ms)
{
	const struct timespec t = { .tv_sec = (time_t)(ms / 1000),
				    .tv_nsec = (long)(ms % 1000) * 1000000 };

	if (ms > 0)
		result_put_time(w, key, &t);
	else
		json_member_text(w, key, NULL);
}

/* How it ended; null before, and for a run without a summary. */
static void put_ending(struct json_writer *w, const struct run *run)
{
	const struct summary *s = &run->summary;
	bool has = run->state == RUN_FINISHED && run->has_summary;

	json_member_text(w, "status", has ? status_names[s->status] : NULL);
	json_member_known(w, "exit_code", has && s->status == STATUS_EXITED,
			  (uint64_t)s->exit_code);
	if (has)
		result_put_usage(w, &s->usage);
	else
		json_member_text(w, "usage", NULL);
}

static void put_run(struct json_writer *w, const struct run *run)
{
	json_open_object(w);
	json_member_text(w, "id", run->id);
	json_member_text(w, "profile", run->profile);
	if (run->session[0])
		json_member_text(w, "session", run->session);
	json_member_text(w, "state", run_state_names[run->state]);
	json_member_text(w, "tier", run->has_tier ? tier_names[run->tier] : NULL);
	json_member_text(w, "request_id", run->trace.request_id);
	put_time(w, "created_at", run->created_ms);
	put_time(w, "started_at", run->started_ms);
	put_time(w, "ended_at", run->ended_ms);
	put_ending(w, run);
	json_close_object(w);
}

void api_list_runs(struct api_call *c)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const struct runs *runs = c->api->runs;
	const struct run *run;

	if (w) {
		json_open_object(w);
		json_put_key(w, "runs");
		json_open_array(w);
		for (size_t i = 0; i < RUN_STATE_COUNT; i++)
			TAILQ_FOREACH(run, &runs->lists[i], link)
				if (strcmp(run->caller, c->account->name) == 0)
					put_run(w, run);
		json_close_array(w);
		json_close_object(w);
	}
	api_reply_json(c->exchange, 200, w);
}

static void reply_run(struct api_call *c, const struct run *run)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);

	if (w)
		put_run(w, run);
	api_reply_json(c->exchange, 200, w);
}

/* The run of another caller is not found, as one that never existed. */
void api_show_run(struct api_call *c)
{
	const struct run *run = runs_find(c->api->runs, c->account->name, c->names.ids[0]);

	if (run)
		reply_run(c, run);
	else
		exchange_refuse(c->exchange, API_NOT_FOUND, NULL, NULL, 0);
}

void api_cancel_run(struct api_call *c)
{
	struct run *run = runs_find(c->api->runs, c->account->name, c->names.ids[0]);

	if (!run) {
		exchange_refuse(c->exchange, API_NOT_FOUND, NULL, NULL, 0);
		return;
	}
	if (run->state == RUN_FINISHED) {
		reply_run(c, run);
		return;
	}
	auto_json_writer struct json_writer *w = json_writer_create(false);
	execution_cancel(run);
	/* a queued run is finished now, and may be removed from the list already */
	run = runs_find(c->api->runs, c->account->name, c->names.ids[0]);
	if (w) {
		json_open_object(w);
		json_member_text(w, "id", c->names.ids[0]);
		json_member_text(w, "state", run_state_names[run ? run->state : RUN_FINISHED]);
		json_close_object(w);
	}
	api_reply_json(c->exchange, 202, w);
}

/* --- profiles ---------------------------------------------------------------- */

static bool is_warm(const struct pool *pool, const char *profile)
{
	return pool_wanted_tier(pool, profile, FIT_INTERPRETER) > TIER_COLD;
}

static void put_settings(struct json_writer *w, const struct config *c)
{
	json_put_key(w, "limits");
	json_open_object(w);
	json_member_u64(w, "memory_bytes", c->memory_bytes);
	json_put_key(w, "cpus");
	json_put_milli(w, c->millicpus);
	json_member_u64(w, "pids", c->pids);
	json_member_u64(w, "timeout_ms", c->wall_ms);
	json_member_u64(w, "disk_bytes", c->disk_bytes);
	json_member_u64(w, "max_output_bytes", c->output_bytes);
	json_close_object(w);
	json_member_text(w, "network", network_mode_names[c->network]);
}

/* Only a caller with host_paths may read what is wrong with a profile: it names paths. */
static void put_profile(struct json_writer *w, struct api_call *c, const struct profile_entry *e)
{
	const struct config *config = NULL;
	struct cj_error err = { 0 };
	bool is_good = !e->problem &&
		       profile_cache_get(c->api->profiles, e->name, &config, &err) == 0;

	json_open_object(w);
	json_member_text(w, "name", e->name);
	json_member_text(w, "description", e->description);
	json_member_text(w, "sha256", is_good ? config->profile_sha256 : NULL);
	json_member_bool(w, "warm", is_warm(c->api->pool, e->name));
	if (is_good)
		put_settings(w, config);
	else if (c->account->rights->host_paths)
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

	if (!w || profile_list(&a, &entries, &count, &err) < 0) {
		slog_failure(SLOG_ERROR, exchange_trace(c->exchange)->request_id, &err,
			     "list the profiles");
		exchange_refuse(c->exchange, API_INTERNAL, NULL, NULL, 0);
		return;
	}
	json_open_object(w);
	json_put_key(w, "profiles");
	json_open_array(w);
	for (size_t i = 0; i < count; i++)
		if (rights_has_profile(c->account->rights, entries[i].name))
			put_profile(w, c, &entries[i]);
	json_close_array(w);
	json_close_object(w);
	api_reply_json(c->exchange, 200, w);
}
