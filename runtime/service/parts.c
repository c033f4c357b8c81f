/* SPDX-License-Identifier: Apache-2.0 */
/* The parts are made, configured, and ended in their order. */
#include "runtime/service/parts.h"

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

static int spawn(struct serve_parts *p, const struct worker_order *wanted, struct worker_conn **out,
		 struct cj_error *err)
{
	struct worker worker = WORKER_NULL;

	if (spawner_ask(p->spawner, wanted, &worker, err) < 0)
		return -err->code;
	*out = worker_conn_create(p->loop, &worker, err);
	return *out ? 0 : -err->code;
}

static int spawn_worker(void *context, const char *profile, enum tier tier,
			struct worker_conn **out, struct cj_error *err)
{
	struct serve_parts *p = context;
	struct worker_order wanted = { .profile = profile, .tier = tier, .zygote_fd = -1 };

	if (tier == TIER_INTERPRETER &&
	    zygotes_ask(&p->zygotes, profile, &wanted.zygote_fd) == ZYGOTE_SOON)
		return cj_fail(err, POOL_NOT_YET, "wait for the zygote");
	return spawn(p, &wanted, out, err);
}

static int spawn_for_job(void *context, const char *profile, struct worker_conn **out,
			 struct cj_error *err)
{
	struct serve_parts *p = context;
	struct worker_order wanted = {
		.profile = profile, .tier = TIER_INTERPRETER, .zygote_fd = -1, .has_job = true
	};

	if (zygotes_ask(&p->zygotes, profile, &wanted.zygote_fd) != ZYGOTE_READY)
		return cj_fail(err, POOL_NOT_YET, "fork a zygote");
	return spawn(p, &wanted, out, err);
}

static int spawn_zygote(void *context, const char *profile, struct worker_conn **out,
			struct cj_error *err)
{
	const struct worker_order wanted = { .profile = profile,
					     .is_zygote = true,
					     .zygote_fd = -1 };
	return spawn(context, &wanted, out, err);
}

static void note_ready(void *context, const char *profile, enum tier tier,
		       const struct readiness_line *how)
{
	if (tier == TIER_INTERPRETER && (how->is_of_zygote || how->why[0]))
		zygotes_child_ready(&((struct serve_parts *)context)->zygotes, profile, how->why);
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

	return profile_cache_get(((struct serve_parts *)context)->profiles, profile, &c,
				 &ignored) == 0 &&
	       plan_wants_zygote(c);
}

static void count_zygote(void *context, const char *profile, enum zygote_event event)
{
	metrics_count_zygote(((struct serve_parts *)context)->metrics, profile, event);
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
	return profile_cache_stamp(((struct serve_parts *)context)->profiles, profile);
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

static void init_preparing(struct serve_parts *p)
{
	const struct zygotes_ops zygotes_ops = { .spawn = spawn_zygote,
						 .take_socket = take_zygote_socket,
						 .is_wanted = is_zygote_wanted,
						 .stamp = stamp,
						 .now_ms = now_ms,
						 .count = count_zygote,
						 .failed = log_zygote,
						 .context = p };
	const struct pool_ops pool_ops = { .spawn = spawn_worker,
					   .spawn_for_job = spawn_for_job,
					   .ready = note_ready,
					   .stamp = stamp,
					   .now_ms = now_ms,
					   .failed = log_unready,
					   .context = p };

	zygotes_init(&p->zygotes, &zygotes_ops);
	pool_init(&p->pool, &pool_ops);
}

/* --- made ---------------------------------------------------------------------------- */

static int create(struct serve_parts *p)
{
	p->metrics = metrics_create();
	accounts_init(&p->accounts);
	runs_init(&p->runs);
	p->profiles = profile_cache_create();
	init_preparing(p);
	executions_init(&p->executions, &(struct executions){ .runs = &p->runs,
							      .pool = &p->pool,
							      .metrics = p->metrics,
							      .audit = &p->audit });
	sessions_init(&p->sessions);
	const struct keeper_conns_context keepers = { .sessions = &p->sessions,
						      .executions = &p->executions,
						      .pool = &p->pool,
						      .metrics = p->metrics,
						      .audit = &p->audit,
						      .loop = p->loop };
	p->keepers = keeper_conns_create(&keepers);
	return p->metrics && p->profiles && p->keepers ? 0 : -ENOMEM;
}

/* Tells the API about the parts. */
static void connect_api(struct serve_parts *p)
{
	p->api = (struct api){ .http = p->http,
			       .accounts = &p->accounts,
			       .runs = &p->runs,
			       .executions = &p->executions,
			       .sessions = &p->sessions,
			       .keepers = p->keepers,
			       .profiles = p->profiles,
			       .metrics = p->metrics,
			       .pool = &p->pool,
			       .zygotes = &p->zygotes,
			       .own_uid = geteuid(),
			       .started_ms = clock_epoch_ms() };
}

int serve_parts_open(struct serve_parts *p, struct loop *loop, struct spawner *spawner,
		     struct cj_error *err)
{
	const struct http_ops ops = api_ops(&p->api);

	p->audit = (struct audit)AUDIT_NULL;
	p->loop = loop;
	p->spawner = spawner;
	if (create(p) < 0)
		return cj_fail(err, ENOMEM, "start the server");
	if (http_open(loop, &ops, &p->http, err) < 0)
		return -err->code;
	connect_api(p);
	return 0;
}

/* --- configured ------------------------------------------------------------------------ */

/* What sessions may reserve, unless the configuration says. */
static uint64_t half_of_memory(void)
{
	struct sysinfo host;

	return sysinfo(&host) == 0 ? (uint64_t)host.totalram * host.mem_unit / 2 : 0;
}

static int adopt_audit(struct serve_parts *p, const struct service_config *c, struct cj_error *err)
{
	struct audit audit = AUDIT_NULL;

	if (audit_open(&c->audit, &audit, err) < 0)
		return -err->code;
	audit.failures = p->audit.failures;
	audit_close(&p->audit);
	p->audit = audit;
	return 0;
}

int serve_parts_adopt(struct serve_parts *p, struct service_config *c, struct cj_error *err)
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

	if (adopt_audit(p, c, err) < 0)
		return -err->code;
	callers_settle(&c->callers, limits.concurrency);
	accounts_adopt(&p->accounts, &c->callers, p->api.own_uid);
	sessions_set_limits(&p->sessions, &sessions);
	pool_configure(&p->pool, c->pools, c->npools, c->pool_age_ms);
	zygotes_configure(&p->zygotes, c->pools, c->npools, &zygotes);
	p->executions.limits = limits;
	http_set_limits(p->http, c->caps.body_bytes, c->receive_ms);
	p->api.config = c;
	return 0;
}

/* --- time -------------------------------------------------------------------------------- */

int serve_parts_tick(struct serve_parts *p, uint64_t now_ms)
{
	int wait_ms = http_tick(p->http, now_ms);

	wait_ms = loop_sooner(wait_ms, executions_tick(&p->executions, now_ms));
	wait_ms = loop_sooner(wait_ms, api_tick(&p->api, now_ms));
	wait_ms =
	    loop_sooner(wait_ms, sessions_tick(p->keepers, p->executions.is_draining, now_ms));
	return loop_sooner(wait_ms, http_tick(p->http, now_ms)); /* sends new refusals */
}

int serve_parts_prepare(struct serve_parts *p)
{
	zygotes_tick(&p->zygotes);
	return pool_tick(&p->pool);
}

/* --- ended ------------------------------------------------------------------------------- */

void serve_parts_end_prepared(struct serve_parts *p)
{
	const struct zygotes_limits none = { 0 };

	pool_configure(&p->pool, NULL, 0, 0);
	zygotes_configure(&p->zygotes, NULL, 0, &none);
}

void serve_parts_close(struct serve_parts *p)
{
	if (!p->loop)
		return;
	executions_fini(&p->executions);
	keeper_conns_destroy(&p->keepers);
	if (p->http)
		(void)http_tick(p->http, clock_ms());
	http_close(&p->http);
	mcp_tasks_fini(&p->api.mcp_tasks);
	serve_parts_end_prepared(p);
	runs_fini(&p->runs);
	sessions_fini(&p->sessions);
	audit_close(&p->audit);
	metrics_destroy(&p->metrics);
	profile_cache_destroy(&p->profiles);
}
