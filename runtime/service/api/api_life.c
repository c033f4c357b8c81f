/* SPDX-License-Identifier: Apache-2.0 */
/* The parts are made, configured, and ended in their order. */
#include "runtime/service/api/api_parts.h"

#include <sys/sysinfo.h>

#include "runtime/base/clock.h"
#include "runtime/base/sys.h"
#include "runtime/service/config/profile_cache.h"
#include "runtime/service/config/service_config.h"
#include "runtime/service/operations/metrics.h"
#include "runtime/service/sessions/keeper_conn.h"

#define RUNS_PER_CPU 4

static int create(struct api *a)
{
	a->metrics = metrics_create();
	runs_init(&a->runs);
	a->profiles = profile_cache_create();
	a->zygotes = (struct zygotes){ .loop = a->loop,
				       .spawner = a->spawner,
				       .profiles = a->profiles,
				       .metrics = a->metrics };
	pool_init(&a->pool, &a->zygotes);
	a->executions = (struct executions){ .runs = &a->runs,
					     .pool = &a->pool,
					     .metrics = a->metrics,
					     .audit = &a->audit,
					     .trace_file = &a->trace_file };
	TAILQ_INIT(&a->executions.exiting);
	a->sessions = (struct sessions){ .executions = &a->executions, .loop = a->loop };
	TAILQ_INIT(&a->sessions.entries);
	return a->metrics && a->profiles ? 0 : -ENOMEM;
}

int api_open(struct api *a, struct loop *loop, struct spawner *spawner, struct cj_error *err)
{
	const struct http_ops ops = api_ops(a);

	a->audit = (struct audit)AUDIT_NULL;
	a->trace_file = LINE_FILE_NULL;
	a->loop = loop;
	a->spawner = spawner;
	a->own_uid = geteuid();
	a->started_ms = clock_epoch_ms();
	if (create(a) < 0)
		return cj_fail(err, ENOMEM, "start the server");
	return http_open(loop, &ops, &a->http, err);
}

/* What sessions may reserve, unless the configuration says. */
static uint64_t half_of_memory(void)
{
	struct sysinfo host;

	return sysinfo(&host) == 0 ? (uint64_t)host.totalram * host.mem_unit / 2 : 0;
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

	/* All of them, or none. */
	struct audit audit = AUDIT_NULL;
	struct line_file spans = LINE_FILE_NULL;
	if (c->trace_file && line_file_open(c->trace_file, SPANS_FILE_MODE, &spans, err) < 0)
		return cj_wrap(err, "trace file");
	if (audit_open(&c->audit, &audit, err) < 0) {
		line_file_close(&spans);
		return -err->code;
	}
	audit.failures = a->audit.failures;
	audit_close(&a->audit);
	line_file_close(&a->trace_file);
	a->audit = audit;
	a->trace_file = spans;
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
	line_file_close(&a->trace_file);
	arena_fini(&a->health.arena);
	metrics_destroy(&a->metrics);
	profile_cache_destroy(&a->profiles);
}
