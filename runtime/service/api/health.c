/* SPDX-License-Identifier: Apache-2.0 */
/* The probe, and the page /readyz. */
#include "runtime/service/api/health.h"

#include <stdarg.h>

#include "profiles/profile.h"
#include "runtime/base/clock.h"
#include "runtime/base/json/json.h"
#include "runtime/service/api/api.h"
#include "runtime/service/config/service_config.h"
#include "runtime/service/log/slog.h"

#define PROBE_PROFILE  "base" /* where no profile is strict */
#define PROBE_CALLER   "service"
#define PROBE_RETRY_MS 2000 /* after one that failed */
#define PROBES_MISSED  3    /* after so many missed probes the last result is too old */

static int find_strictest(struct api *a, char out[static HEALTH_PROFILE_MAX], struct cj_error *err)
{
	auto_arena struct arena arena = { 0 };
	struct profile_entry *entries = NULL;
	size_t count = 0;

	if (profile_list(&arena, &entries, &count, err) < 0)
		return -err->code;
	(void)snprintf(out, HEALTH_PROFILE_MAX, "%s", PROBE_PROFILE);
	for (size_t i = 0; i < count; i++) {
		const char *name = entries[i].name;
		const struct config *config = NULL;
		struct cj_error ignored = { 0 }; /* a bad profile is not used for the probe */
		if (entries[i].problem || strlen(name) >= HEALTH_PROFILE_MAX ||
		    profile_cache_get(a->profiles, name, &config, &ignored) < 0 || !config->strict)
			continue;
		(void)snprintf(out, HEALTH_PROFILE_MAX, "%s", name);
		break;
	}
	return 0;
}

int health_adopt(struct api *a, const struct service_config *c, struct cj_error *err)
{
	struct health *h = &a->health;

	if (!h->has_probed)
		(void)snprintf(h->problem, sizeof(h->problem), "no probe has run yet");
	h->interval_ms = c->probe_ms;
	h->rights = c->callers.own;
	h->rights.concurrent = h->rights.queued = h->rights.rate_per_minute = 0;
	h->account.rights = &h->rights;
	(void)snprintf(h->account.name, sizeof(h->account.name), "%s", PROBE_CALLER);
	h->next_ms = 0;
	if (!c->probe_profile)
		return find_strictest(a, h->profile, err);
	(void)snprintf(h->profile, sizeof(h->profile), "%s", c->probe_profile);
	return 0;
}

/* Callers may read how the probe ended.  The reason may name things of the host: only logged. */
static void keep_problem(struct health *h, const char *status, const char *why)
{
	char problem[sizeof(h->problem)];

	h->succeeded = false;
	(void)snprintf(h->status, sizeof(h->status), "%s", status);
	(void)snprintf(problem, sizeof(problem),
		       "a run of profile '%s' does not work: it ends as '%s'", h->profile, status);
	if (strcmp(problem, h->problem) != 0)
		slog(SLOG_ERROR, "", "not ready: %s: %s", problem, why);
	memcpy(h->problem, problem, sizeof(problem));
}

static void read_result(struct health *h, const char *text, size_t size)
{
	struct cj_error err = { 0 };
	uint64_t exit_code = 1;

	arena_fini(&h->arena);
	h->result = NULL;
	if (json_parse("result", text, size, &h->arena, &h->result, &err) < 0 ||
	    h->result->type != JSON_OBJECT) {
		h->result = NULL;
		keep_problem(h, api_rows[API_INTERNAL].code, "its result can't be read");
		return;
	}
	const char *status = json_get_text(h->result, "status");
	if (!status)
		status = "";
	(void)json_get_u64(h->result, "exit_code", &exit_code);
	if (strcmp(status, "exited") == 0 && exit_code == 0) {
		h->succeeded = true;
		h->problem[0] = '\0';
		(void)snprintf(h->status, sizeof(h->status), "%s", status);
	} else {
		const char *message = json_get_text(json_get(h->result, "error"), "message");
		keep_problem(h, status, message && message[0] ? message : status);
	}
}

static void on_complete(void *context, const char *result, size_t size, enum api_code why)
{
	struct health *h = context;

	h->is_probing = false;
	h->is_busy = !result && why == API_QUEUE_TIMEOUT;
	if (h->is_busy) { /* no news: the state stays as the probe before has set it */
		h->next_ms = clock_ms() + PROBE_RETRY_MS;
		return;
	}
	h->has_probed = true;
	h->probed_ms = clock_ms();
	if (result)
		read_result(h, result, size);
	else
		keep_problem(h, api_rows[why].code, api_rows[why].message);
	h->next_ms = h->probed_ms + (h->succeeded ? h->interval_ms : PROBE_RETRY_MS);
}

static int begin_probe(struct api *a, struct cj_error *err)
{
	struct health *h = &a->health;
	const struct run_ops ops = { .on_complete = on_complete, .context = h };
	const struct config *profile = NULL;
	struct run_order order = {
		.job = { .kind = JOB_RUN, .may_name_host_paths = true },
		.account = &h->account,
		.fit = FIT_COLD, /* a cold worker: the probe tests all steps */
		.why_cold = BYPASS_COUNT,
	};
	struct job *job = &order.job;

	if (profile_cache_get(a->profiles, h->profile, &profile, err) < 0 ||
	    plan_mint_id(job->id, err) < 0 || trace_adopt(NULL, NULL, &job->trace, err) < 0)
		return -err->code;
	int size = asprintf(&job->body, "{\"profile\":\"%s\",\"command\":[\"true\"]}", h->profile);
	if (size < 0)
		return cj_fail(err, ENOMEM, "write the probe");
	job->body_size = (size_t)size;
	memcpy(job->profile_sha256, profile->profile_sha256, sizeof(job->profile_sha256));
	(void)snprintf(order.caller, sizeof(order.caller), "%s", h->account.name);
	(void)snprintf(order.profile, sizeof(order.profile), "%s", h->profile);
	order.audit_required = profile->audit_required;
	order.wall_ms = profile->run_limits.wall_ms;
	order.output_bytes = profile->run_limits.output_bytes;
	return execution_begin(&a->executions, &order, &ops, err) ? 0 : -err->code;
}

int health_tick(struct api *a, uint64_t now_ms)
{
	struct health *h = &a->health;
	struct cj_error err = { 0 };

	if (h->is_probing || a->executions.is_draining)
		return -1;
	if (now_ms < h->next_ms)
		return (int)(h->next_ms - now_ms);
	h->is_probing = true;
	if (begin_probe(a, &err) == 0)
		return 0;
	h->is_probing = false;
	h->has_probed = true;
	h->probed_ms = now_ms;
	h->next_ms = now_ms + PROBE_RETRY_MS;
	keep_problem(h, api_rows[API_INTERNAL].code, err.msg);
	return PROBE_RETRY_MS;
}

struct reasons {
	struct arena arena;
	struct strings list;
	enum readiness worst;
};

__attribute__((format(printf, 3, 4))) static void
add_reason(struct reasons *r, enum readiness how_bad, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)!strings_vprintf(&r->list, &r->arena, fmt, ap); /* without memory: only the state */
	va_end(ap);
	if (how_bad > r->worst)
		r->worst = how_bad;
}

static void find_reasons(const struct api *a, struct reasons *r)
{
	const struct health *h = &a->health;
	const struct sessions *s = &a->sessions;
	const struct json_node *warnings = json_get_typed(h->result, "warnings", JSON_ARRAY);

	if (a->executions.is_draining)
		add_reason(r, READINESS_UNREADY, "the service is shutting down");
	if (!h->succeeded)
		add_reason(r, READINESS_UNREADY, "%s", h->problem);
	if (h->is_busy)
		add_reason(r, READINESS_DEGRADED,
			   "busy: the last probe waited too long in the queue");
	if (h->succeeded && clock_ms() - h->probed_ms > PROBES_MISSED * h->interval_ms)
		add_reason(r, READINESS_DEGRADED, "the last successful probe is too old");
	for (const struct json_node *n = h->succeeded && warnings ? warnings->child : NULL; n;
	     n = n->next)
		if (n->type == JSON_STRING)
			add_reason(r, READINESS_DEGRADED, "%s", n->text);
	if (a->audit.last_failure[0])
		add_reason(r, READINESS_DEGRADED, "the last audit line could not be written");
	if (a->runs.counts[RUN_QUEUED] >= a->executions.limits.queue)
		add_reason(r, READINESS_DEGRADED, "the queue is full");
	if (s->limits.count > 0 && s->live >= s->limits.count)
		add_reason(r, READINESS_DEGRADED, "there are as many sessions as there may be");
	for (size_t i = 0; i < a->pool.count; i++)
		if (a->pool.buckets[i].backoff.problem[0])
			add_reason(r, READINESS_DEGRADED,
				   "no %s of profile '%s' can be prepared ahead",
				   tier_names[a->pool.buckets[i].tier], a->pool.buckets[i].profile);
}

static void put_two(struct json_writer *w, const char *key, const char *first, uint64_t value,
		    uint64_t max)
{
	json_member_object(w, key);
	json_member_u64(w, first, value);
	json_member_u64(w, "max", max);
	json_close_object(w);
}

enum readiness health_write(const struct api *a, struct json_writer *w)
{
	static const char *const names[] = { "ready", "degraded", "unready" };
	const struct health *h = &a->health;
	const struct json_node *limits = json_get_typed(h->result, "limits", JSON_OBJECT);
	struct reasons r = { .worst = READINESS_READY };

	find_reasons(a, &r);
	json_open_object(w);
	json_member_text(w, "status", names[r.worst]);
	json_member_texts(w, "reasons", r.list.items, r.list.count);
	json_member_object(w, "probe");
	json_member_text(w, "profile", h->profile);
	json_member_text(w, "status", h->has_probed ? h->status : NULL);
	json_member_known(w, "age_ms", h->has_probed, clock_ms() - h->probed_ms);
	json_close_object(w);
	put_two(w, "queue", "depth", a->runs.counts[RUN_QUEUED], a->executions.limits.queue);
	put_two(w, "runs", "in_flight", a->runs.counts[RUN_RUNNING],
		a->executions.limits.concurrency);
	json_member_array(w, "pool");
	for (size_t i = 0; i < a->pool.count; i++) {
		json_open_object(w);
		json_member_text(w, "profile", a->pool.buckets[i].profile);
		json_member_text(w, "tier", tier_names[a->pool.buckets[i].tier]);
		json_member_u64(w, "ready", a->pool.buckets[i].ready);
		json_member_u64(w, "wanted", a->pool.buckets[i].wanted);
		json_close_object(w);
	}
	json_close_array(w);
	json_member_array(w, "pool_bypassed");
	metrics_write_bypassed(a->metrics, w);
	json_close_array(w);
	json_member_object(w, "limits_by");
	for (const struct json_node *n = limits ? limits->child : NULL; n; n = n->next) {
		const char *by = json_get_text(n, "by");
		json_member_text(w, n->key, by ? by : "");
	}
	json_close_object(w);
	json_member_object(w, "audit");
	json_member_bool(w, "on", audit_is_on(&a->audit));
	json_member_u64(w, "failures", a->audit.failures);
	json_close_object(w);
	json_close_object(w);
	arena_fini(&r.arena);
	return r.worst;
}
