/* SPDX-License-Identifier: Apache-2.0 */
/* The parts are made, configured, and ended in their order. */
#include "runtime/service/api/api_parts.h"

#include <sys/sysinfo.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/sys.h"
#include "runtime/service/config/profile_cache.h"
#include "runtime/service/config/service_config.h"
#include "runtime/service/operations/metrics.h"
#include "runtime/service/log/slog.h"
#include "runtime/service/sessions/keeper_conn.h"
#include "runtime/service/worker/worker_conn.h"

#define RUNS_PER_CPU 4

/* --- what the pool and the zygotes ask for --------------------------------------------------- */

static int spawn(void *context, const struct worker_order *wanted, struct worker_conn **out,
		 struct cj_error *err)
{
	struct api *a = context;
	struct worker_order order = *wanted;
	struct worker worker = WORKER_NULL;

	order.zygote_fd = -1;
	if (order.tier == TIER_INTERPRETER) {
		enum zygote_answer has = zygotes_ask(&a->zygotes, order.profile, &order.zygote_fd);
		if (has == ZYGOTE_SOON || (order.has_job && has != ZYGOTE_READY))
			return cj_fail(err, POOL_NOT_YET, "wait for the zygote");
	}
	if (spawner_ask(a->spawner, &order, &worker, err) < 0)
		return -err->code;
	*out = worker_conn_create(a->loop, &worker, err);
	return *out ? 0 : -err->code;
}

static void note_ready(void *context, const char *profile, enum tier tier,
		       const struct readiness_line *how)
{
	if (tier == TIER_INTERPRETER && (how->is_of_zygote || how->why[0]))
		zygotes_child_ready(&((struct api *)context)->zygotes, profile, how->why);
}

static int take_zygote_socket(void *context, const struct worker_conn *conn, struct cj_error *err)
{
	(void)context;
	return job_receive(conn->worker.control_fd, err);
}

static bool is_zygote_wanted(void *context, const char *profile)
{
	const struct config *c;
	struct cj_error ignored = { 0 }; /* the pool's workers report it */

	return profile_cache_get(((struct api *)context)->profiles, profile, &c, &ignored) == 0 &&
	       plan_wants_zygote(c);
}

static void count_zygote(void *context, const char *profile, enum zygote_event event)
{
	metrics_count_zygote(((struct api *)context)->metrics, profile, event);
}

static void log_zygote(void *context, const char *profile, const char *why)
{
	(void)context;
	slog(SLOG_WARNING, "",
	     "without a zygote, each interpreter of profile '%s' starts in its own jail: %s",
	     profile, why);
}

static uint64_t stamp(void *context, const char *profile)
{
	return profile_cache_stamp(((struct api *)context)->profiles, profile);
}

static uint64_t now_ms(void *context)
{
	(void)context;
	return clock_ms();
}

static void log_unready(void *context, const char *profile, enum tier tier, const char *why)
{
	(void)context;
	slog(SLOG_WARNING, "", "no %s of profile '%s' can be prepared ahead: %s", tier_names[tier],
	     profile, why);
}

static void init_preparing(struct api *a)
{
	const struct zygotes_ops zygotes_ops = { .spawn = spawn,
						 .take_socket = take_zygote_socket,
						 .is_wanted = is_zygote_wanted,
						 .stamp = stamp,
						 .now_ms = now_ms,
						 .count = count_zygote,
						 .failed = log_zygote,
						 .context = a };
	const struct pool_ops pool_ops = { .spawn = spawn,
					   .ready = note_ready,
					   .stamp = stamp,
					   .now_ms = now_ms,
					   .failed = log_unready,
					   .context = a };

	zygotes_init(&a->zygotes, &zygotes_ops);
	pool_init(&a->pool, &pool_ops);
}

/* --- made ---------------------------------------------------------------------------- */

static int create(struct api *a)
{
	a->metrics = metrics_create();
	accounts_init(&a->accounts);
	runs_init(&a->runs);
	a->profiles = profile_cache_create();
	init_preparing(a);
	executions_init(&a->executions, &(struct executions){ .runs = &a->runs,
							      .pool = &a->pool,
							      .metrics = a->metrics,
							      .audit = &a->audit });
	sessions_init(&a->sessions, &a->executions, a->loop);
	return a->metrics && a->profiles ? 0 : -ENOMEM;
}

int api_open(struct api *a, struct loop *loop, struct spawner *spawner, struct cj_error *err)
{
	const struct http_ops ops = api_ops(a);

	a->audit = (struct audit)AUDIT_NULL;
	a->loop = loop;
	a->spawner = spawner;
	a->own_uid = geteuid();
	a->started_ms = clock_epoch_ms();
	if (create(a) < 0)
		return cj_fail(err, ENOMEM, "start the server");
	return http_open(loop, &ops, &a->http, err);
}

/* --- configured ------------------------------------------------------------------------ */

/* What sessions may reserve, unless the configuration says. */
static uint64_t half_of_memory(void)
{
	struct sysinfo host;

	return sysinfo(&host) == 0 ? (uint64_t)host.totalram * host.mem_unit / 2 : 0;
}

static int adopt_audit(struct api *a, const struct service_config *c, struct cj_error *err)
{
	struct audit audit = AUDIT_NULL;

	if (audit_open(&c->audit, &audit, err) < 0)
		return -err->code;
	audit.failures = a->audit.failures;
	audit_close(&a->audit);
	a->audit = audit;
	return 0;
}

int api_adopt(struct api *a, struct service_config *c, struct cj_error *err)
{
	const struct executions_limits limits = {
		/* with over a thousand CPUs the configuration must say */
		.concurrency = c->concurrency > 0 ? c->concurrency : RUNS_PER_CPU * sys_cpus(),
		.queue = c->queue,
		.queue_ms = c->queue_ms,
	};
	const struct sessions_limits sessions = {
		.count = c->sessions,
		.memory_bytes = c->session_memory ? c->session_memory : half_of_memory(),
		.reserves_limits = c->session_reserves_limits,
		.lease_ms = c->session_lease_ms,
		.idle_ms = c->session_idle_ms,
	};
	const struct zygotes_limits zygotes = { c->zygote_children, c->zygote_age_ms };

	if (adopt_audit(a, c, err) < 0)
		return -err->code;
	callers_settle(&c->callers, limits.concurrency);
	accounts_adopt(&a->accounts, &c->callers, a->own_uid);
	sessions_set_limits(&a->sessions, &sessions);
	pool_configure(&a->pool, c->pools, c->npools, c->pool_age_ms);
	zygotes_configure(&a->zygotes, c->pools, c->npools, &zygotes);
	a->executions.limits = limits;
	http_set_limits(a->http, c->caps.body_bytes, c->receive_ms);
	a->config = c;
	return 0;
}

/* --- time -------------------------------------------------------------------------------- */

int api_tick(struct api *a, uint64_t now_ms)
{
	int wait_ms = http_tick(a->http, now_ms);

	wait_ms = loop_sooner(wait_ms, executions_tick(&a->executions, now_ms));
	wait_ms = loop_sooner(wait_ms, api_mcp_tick(a, now_ms));
	wait_ms = loop_sooner(wait_ms, sessions_tick(&a->sessions, now_ms));
	return loop_sooner(wait_ms, http_tick(a->http, now_ms)); /* sends new refusals */
}

int api_prepare(struct api *a)
{
	zygotes_tick(&a->zygotes);
	return pool_tick(&a->pool);
}

/* --- ended ------------------------------------------------------------------------------- */

void api_end_prepared(struct api *a)
{
	const struct zygotes_limits none = { 0 };

	pool_configure(&a->pool, NULL, 0, 0);
	zygotes_configure(&a->zygotes, NULL, 0, &none);
}

void api_close(struct api *a)
{
	if (!a->loop)
		return;
	executions_fini(&a->executions);
	sessions_end_all(&a->sessions);
	if (a->http)
		(void)http_tick(a->http, clock_ms());
	http_close(&a->http);
	mcp_tasks_fini(&a->mcp_tasks);
	api_end_prepared(a);
	runs_fini(&a->runs);
	sessions_fini(&a->sessions);
	audit_close(&a->audit);
	arena_fini(&a->health.arena);
	metrics_destroy(&a->metrics);
	profile_cache_destroy(&a->profiles);
}
