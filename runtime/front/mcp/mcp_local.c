/* SPDX-License-Identifier: Apache-2.0 */
/* The service without its callers: this server is the only one. */

#include "runtime/front/mcp/mcp_server.h"

#include <sys/socket.h>

#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/run/mcp/mcp_message.h"
#include "runtime/service/config/profile_cache.h"
#include "runtime/service/config/service_config.h"
#include "runtime/service/api/api.h"
#include "runtime/service/queue/execution.h"

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
	struct service_config config;
	struct api api;
	LIST_HEAD(, asked_run) requests;
	enum request_fit fit;
	uint64_t started_ms;   /* the last run */
	struct broker *broker; /* NULL: programs have no tools */
	LIST_HEAD(, run_calls) calls;
};

/* The calls of a run, until its worker has ended. */
struct run_calls {
	LIST_ENTRY(run_calls) link;
	struct broker_stream stream;
};

/* A request to the API, until its reply. */
struct asked_run {
	LIST_ENTRY(asked_run) link;
	struct api_asked inner;
};

/* NULL: there is no room for one more. */
static struct pool_config *row_of(struct service_config *c, const char *profile)
{
	size_t i = 0;

	while (i < c->npools && strcmp(c->pools[i].profile, profile) != 0)
		i++;
	if (i < c->npools)
		return &c->pools[i];
	const char *name = i < POOLS_MAX ? arena_strdup(&c->arena, profile) : NULL;
	if (!name)
		return NULL;
	c->pools[c->npools++] = (struct pool_config){ .profile = name };
	return &c->pools[i];
}

/* What waits already stays: it is not prepared again. */
static void add_to_pool(struct local *l, const struct pool_config *row)
{
	pool_add(&l->api.pool, row);
	zygotes_add(&l->api.zygotes, row);
}

/* From the first call of a profile on, one jail of it waits. */
static void keep_warm(struct local *l, const char *profile)
{
	struct pool_config *row = l->fit == FIT_COLD ? NULL : row_of(&l->config, profile);

	if (!row || row->jails + row->interpreters > 0)
		return;
	const struct config *c = NULL;
	struct cj_error ignored = { 0 }; /* the run reports it */
	bool is_interpreter = l->fit == FIT_INTERPRETER &&
			      profile_cache_get(l->api.profiles, profile, &c, &ignored) == 0 &&
			      c->launcher != LAUNCHER_NONE;
	row->jails = !is_interpreter;
	row->interpreters = is_interpreter;
	add_to_pool(l, row);
}

static void destroy_request(struct asked_run *q)
{
	LIST_REMOVE(q, link);
	api_asked_fini(&q->inner);
	free(q);
}

static void on_ended(struct api_asked *i)
{
	destroy_request(watch_owner(i, struct asked_run, inner));
}

static int start(void *context, struct mcp_run *r, char *body, size_t size, struct cj_error *err)
{
	struct local *l = context;
	const char *profile = r->profile;
	struct asked_run *q = l->has_spawner ? calloc(1, sizeof(*q)) : NULL;

	if (!q) {
		free(body);
		return l->has_spawner ? cj_fail(err, ENOMEM, "start the run")
				      : cj_reject(err, "the process that starts jails has ended; "
						       "restart 'cejail mcp'");
	}
	q->inner.ended = on_ended;
	LIST_INSERT_HEAD(&l->requests, q, link);
	r->state = q;
	if (api_asked_ask(&q->inner, &l->api, NULL, r, body, size, err) < 0) {
		destroy_request(q);
		return -err->code;
	}
	l->started_ms = clock_ms();
	(void)executions_tick(&l->api.executions, l->started_ms); /* the run may end here */
	if (profile)
		keep_warm(l, profile);
	return 0;
}

/* A run without the socket goes on: its calls fail. */
static int open_calls(void *context)
{
	struct local *l = context;
	struct run_calls *c = calloc(1, sizeof(*c));
	struct cj_error err = { 0 };
	int ends[2];

	if (!c || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
		log_warning("a program cannot call tools: %s", strerror(errno));
		free(c);
		return -1;
	}
	LIST_INSERT_HEAD(&l->calls, c, link);
	if (broker_stream_open(&c->stream, l->broker, ends[0], &err) < 0) {
		log_warning("a program cannot call tools: %s", err.msg);
		c->stream.stdio.is_over = true; /* the next tick closes it, and the calls fail */
	}
	return ends[1];
}

static void end_calls(struct local *l, bool ends_all)
{
	struct run_calls *c = LIST_FIRST(&l->calls), *next;

	for (; c; c = next) {
		next = LIST_NEXT(c, link);
		if (!ends_all && !c->stream.stdio.is_over)
			continue;
		LIST_REMOVE(c, link);
		if (c->stream.stdio.failure.code != 0)
			log_warning("a program can call no more tools: %s",
				    c->stream.stdio.failure.msg);
		broker_stream_close(&c->stream);
		free(c);
	}
}

/* All sessions are those of the one caller. */
static const char *profile_of(void *context, const char *session)
{
	struct local *l = context;
	const struct session_entry *e;

	TAILQ_FOREACH(e, &l->api.sessions.entries, link)
		if (strcmp(e->id, session) == 0)
			return e->profile;
	return NULL;
}

static void cancel(void *context, struct mcp_run *r)
{
	struct asked_run *q = r->state;

	(void)context;
	api_asked_cancel(&q->inner);
	destroy_request(q);
}

static void hold(void *context, bool holds)
{
	struct local *l = context;
	l->api.executions.holds = holds;
}

/* A jail is prepared after the answer to a call, not while the call runs. */
static int tick(void *context)
{
	struct local *l = context;
	uint64_t now = clock_ms(), quiet_ms = l->started_ms + QUIET_MS;
	int wait_ms = api_tick(&l->api, now);

	end_calls(l, false);
	if (l->broker)
		wait_ms = loop_sooner(wait_ms, broker_tick(l->broker));
	const struct session_entry *e;

	TAILQ_FOREACH(e, &l->api.sessions.entries, link) {
		/* From the first result of a session with an interpreter on, one such session of
		 * its profile waits. */
		bool is_used = e->is_repl && e->finished > 0 && l->fit == FIT_INTERPRETER;
		struct pool_config *row = is_used ? row_of(&l->config, e->profile) : NULL;
		if (row && row->repls == 0) {
			row->repls = 1;
			add_to_pool(l, row);
		}
	}
	if (l->api.runs.counts[RUN_RUNNING] > 0 && now < quiet_ms)
		return loop_sooner(wait_ms, (int)(quiet_ms - now));
	return loop_sooner(wait_ms, api_prepare(&l->api));
}

/* Without it no run can start; those that run go on. */
static void on_spawner_end(struct watch *w, uint32_t events)
{
	struct local *l = watch_owner(w, struct local, spawner_end);

	(void)events;
	l->has_spawner = false;
	loop_unwatch(l->loop, &l->spawner_end);
}

/* Cancelled workers kill their jails; the spawner waits for them. */
static void close_local(void *context)
{
	struct local *l = context;
	struct asked_run *q;

	l->api.executions.is_draining = true;
	api_close(&l->api);
	end_calls(l, true);
	while ((q = LIST_FIRST(&l->requests)) != NULL)
		destroy_request(q);
	service_config_fini(&l->config);
	loop_unwatch(l->loop, &l->spawner_end);
	spawner_end(&l->spawner);
	free(l);
}

static int open_parts(struct local *l, const char *trace_file, struct cj_error *err)
{
	/* What the client sends is limited by the length of its messages. */
	service_config_init(&l->config);
	l->config.npools = 0; /* keep_warm() adds some */
	l->config.pool_age_ms = l->config.zygote_age_ms = POOL_AGE_MS;
	l->config.concurrency = RUNS_PER_CPU * sys_cpus();
	l->config.queue = QUEUE_MAX;
	l->config.queue_ms = QUEUE_MS;
	l->config.session_idle_ms =
	    l->config.session_lease_ms; /* a user may think for longer than a program */
	l->config.caps = (struct request_caps){ .body_bytes = 2 * MCP_LINE_MAX,
						.code_bytes = MCP_LINE_MAX,
						.file_bytes = MCP_LINE_MAX,
						.stdin_bytes = MCP_LINE_MAX };
	l->config.callers.own.concurrent = l->config.concurrency;
	l->config.callers.own.queued = QUEUE_MAX;
	l->config.trace_file = trace_file;
	if (api_open(&l->api, l->loop, &l->spawner, err) < 0 ||
	    api_adopt(&l->api, &l->config, err) < 0)
		return -err->code;
	l->api.executions.open_calls = l->broker ? open_calls : NULL;
	l->api.executions.calls_context = l;
	l->api.pool.check_ms = POOL_AGE_MS; /* an idle server sleeps */
	return loop_watch(l->loop, &l->spawner_end, l->spawner.pidfd, on_spawner_end, err);
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
	l->broker = o->broker;
	l->spawner = *o->spawner;
	l->spawner_end = WATCH_NULL;
	*o->spawner = (struct spawner)SPAWNER_NULL;
	l->has_spawner = open_parts(l, o->trace_file, err) == 0;
	if (!l->has_spawner) {
		close_local(l);
		return -err->code;
	}
	*out = (struct mcp_place){ .context = l,
				   .start = start,
				   .cancel = cancel,
				   .profile_of = profile_of,
				   .hold = hold,
				   .tick = tick,
				   .close = close_local };
	return 0;
}
