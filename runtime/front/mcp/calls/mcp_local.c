/* SPDX-License-Identifier: Apache-2.0 */
/* The service's executions without its callers.  Acts. */
#include "runtime/front/mcp/calls/mcp_local.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/front/serve/access/account.h"
#include "runtime/front/serve/access/audit.h"
#include "runtime/front/serve/config/profile_cache.h"
#include "runtime/front/serve/operations/metrics.h"
#include "runtime/front/serve/queue/execution.h"
#include "runtime/front/serve/queue/preparing.h"
#include "runtime/front/serve/queue/runs.h"
#include "runtime/front/serve/queue/zygotes.h"

#define RUNS_PER_CPU 2
#define QUEUE_MAX    64
#define QUEUE_MS     600000
#define POOL_AGE_MS  3600000
#define QUIET_MS     500 /* after the start of a run, the processors are for it */

struct local {
	struct loop *loop;
	struct spawner spawner;
	struct watch spawner_end;
	bool has_spawner;
	struct callers callers;
	struct accounts accounts;
	struct account *account;
	struct audit audit; /* none */
	struct metrics *metrics;
	struct profile_cache *profiles;
	struct runs runs;
	struct pool pool;
	struct zygotes zygotes;
	struct preparing preparing;
	struct executions *executions;
	enum request_fit fit;
	struct pool_config pools[POOLS_MAX];
	size_t npools;
	uint64_t started_ms; /* the last run */
};

/* --- the pool ----------------------------------------------------------------------- */

static bool has_launcher(struct local *l, const char *profile)
{
	const struct config *c = NULL;
	struct cj_error ignored = { 0 }; /* the run reports it */

	return profile_cache_get(l->profiles, profile, &c, &ignored) == 0 &&
	       c->launcher != LAUNCHER_NONE;
}

static const struct zygotes_limits zygotes_limits = { .children = 1000, .age_ms = 3600000 };

/* From the first call of a profile on, one jail of it waits. */
static void keep_warm(struct local *l, const char *profile)
{
	struct pool_config *row = &l->pools[l->npools];

	for (size_t i = 0; i < l->npools; i++)
		if (strcmp(l->pools[i].profile, profile) == 0)
			return;
	if (l->fit == FIT_COLD || l->npools == POOLS_MAX)
		return;
	bool is_interpreter = l->fit == FIT_INTERPRETER && has_launcher(l, profile);
	*row = (struct pool_config){ .profile = profile,
				     .jails = !is_interpreter,
				     .interpreters = is_interpreter };
	l->npools++;
	pool_configure(&l->pool, l->pools, l->npools, POOL_AGE_MS);
	zygotes_configure(&l->zygotes, l->pools, l->npools, &zygotes_limits);
}

/* --- runs ---------------------------------------------------------------------------- */

static void on_event(void *context, const char *line, size_t size)
{
	struct mcp_run *r = context;
	r->event(r, line, size);
}

static void on_complete(void *context, const char *result, size_t size, enum api_code why)
{
	struct mcp_run *r = context;
	r->done(r, result, size, why == API_CODE_COUNT ? NULL : api_rows[why].message);
}

/* The same parser as in the worker; its message is about the arguments of the call. */
static int find_fit(const char *request, size_t size, enum request_fit *out, struct cj_error *err)
{
	static const struct request_caps caps = { SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX };
	auto_arena struct arena a = { 0 };
	struct request parsed;

	if (request_parse((struct blob){ request, size }, &caps, &a, &parsed, err) < 0)
		return -err->code;
	*out = parsed.fit;
	return 0;
}

static int queue_run(struct local *l, struct mcp_run *r, char **request, size_t size,
		     struct cj_error *err)
{
	enum request_fit fit = FIT_COLD;
	struct trace trace;

	if (!l->has_spawner)
		return cj_reject(err,
				 "the process that starts jails has ended; restart 'cejail mcp'");
	if (executions_admit(l->executions, l->account) != API_CODE_COUNT)
		return cj_reject(err, "%d calls are waiting already; wait for their answers",
				 QUEUE_MAX);
	if (find_fit(*request, size, &fit, err) < 0 ||
	    trace_adopt(NULL, r->traceparent, &trace, err) < 0)
		return -err->code;
	const struct execution_order order = {
		.account = l->account,
		.id = r->id,
		.profile = r->profile,
		.profile_sha256 = "",
		.trace = &trace,
		.terms = { .fit = fit,
			   .why_cold = BYPASS_REQUEST,
			   .wants_events = r->wants_events,
			   /* only the command line names any */
			   .may_name_host_paths = true,
			   .wall_ms = r->wall_ms,
			   .output_bytes = r->output_bytes },
		.body = take_ptr(*request),
		.body_size = size,
		.on_event = on_event,
		.on_complete = on_complete,
		.context = r,
	};
	return execution_begin(l->executions, &order, NULL, err);
}

static int start(void *context, struct mcp_run *r, char *request, size_t size, struct cj_error *err)
{
	struct local *l = context;
	const char *profile = r->profile;
	int rc = queue_run(l, r, &request, size, err);

	free(request);
	if (rc < 0)
		return rc;
	l->started_ms = clock_ms();
	(void)executions_tick(l->executions, l->started_ms); /* the run may end here */
	keep_warm(l, profile);
	return 0;
}

static void cancel(void *context, struct mcp_run *r)
{
	struct local *l = context;
	struct run *run = runs_find(&l->runs, l->account->name, r->id);

	if (run)
		execution_cancel(run);
}

/* A jail is prepared after the answer to a call, not while the call runs. */
static int tick(void *context)
{
	struct local *l = context;
	uint64_t now = clock_ms(), quiet_ms = l->started_ms + QUIET_MS;
	int wait_ms = executions_tick(l->executions, now);

	if (l->runs.counts[RUN_RUNNING] > 0 && now < quiet_ms)
		return loop_sooner(wait_ms, (int)(quiet_ms - now));
	zygotes_tick(&l->zygotes);
	return loop_sooner(wait_ms, pool_tick(&l->pool));
}

/* --- open, close ---------------------------------------------------------------------- */

/* Without it no run can start; those that run go on. */
static void on_spawner_end(struct watch *w, uint32_t events)
{
	struct local *l = watch_owner(w, struct local, spawner_end);

	(void)events;
	l->has_spawner = false;
	loop_unwatch(l->loop, &l->spawner_end);
}

static int create_parts(struct local *l)
{
	const struct executions_context context = {
		.runs = &l->runs,
		.pool = &l->pool,
		.metrics = metrics_create(),
		.audit = &l->audit,
	};
	const struct executions_limits limits = { .concurrency = RUNS_PER_CPU * sys_cpus(),
						  .queue = QUEUE_MAX,
						  .queue_ms = QUEUE_MS };

	l->metrics = context.metrics;
	callers_init(&l->callers);
	callers_settle(&l->callers, limits.concurrency);
	accounts_init(&l->accounts);
	runs_init(&l->runs);
	l->profiles = profile_cache_create();
	l->preparing = (struct preparing){ .loop = l->loop,
					   .spawner = &l->spawner,
					   .zygotes = &l->zygotes,
					   .profiles = l->profiles,
					   .metrics = l->metrics };
	preparing_init(&l->preparing, &l->pool);
	l->pool.check_ms = POOL_AGE_MS; /* an idle server sleeps */
	l->executions = executions_create(&context);
	if (!l->metrics || !l->profiles || !l->executions)
		return -ENOMEM;
	executions_set_limits(l->executions, limits);
	l->account = account_of_uid(&l->accounts, &l->callers, geteuid(), geteuid(), clock_ms());
	return l->account ? 0 : -ENOMEM;
}

/* Cancelled workers kill their jails; the spawner waits for them. */
static void close_local(void *context)
{
	struct local *l = context;

	if (l->executions) {
		executions_drain(l->executions);
		executions_cancel_all(l->executions);
	}
	executions_destroy(&l->executions);
	pool_configure(&l->pool, NULL, 0, 0);
	zygotes_configure(&l->zygotes, NULL, 0, &zygotes_limits);
	runs_fini(&l->runs);
	metrics_destroy(&l->metrics);
	profile_cache_destroy(&l->profiles);
	loop_unwatch(l->loop, &l->spawner_end);
	spawner_end(&l->spawner);
	free(l);
}

int mcp_local_open(const struct mcp_local_options *o, struct mcp_place *out, struct cj_error *err)
{
	struct local *l = calloc(1, sizeof(*l));

	if (!l) {
		spawner_end(o->spawner);
		return cj_fail(err, ENOMEM, "start the server");
	}
	l->loop = o->loop;
	l->fit = o->fit;
	l->spawner = *o->spawner;
	l->spawner_end = (struct watch)WATCH_NULL;
	l->audit = (struct audit)AUDIT_NULL;
	*o->spawner = (struct spawner)SPAWNER_NULL;
	int rc = create_parts(l);
	if (rc < 0)
		rc = cj_fail(err, -rc, "start the server");
	else
		rc = loop_watch(l->loop, &l->spawner_end, l->spawner.pidfd, on_spawner_end, err);
	l->has_spawner = rc == 0;
	if (rc < 0) {
		close_local(l);
		return rc;
	}
	*out = (struct mcp_place){
		.context = l, .start = start, .cancel = cancel, .tick = tick, .close = close_local
	};
	return 0;
}
