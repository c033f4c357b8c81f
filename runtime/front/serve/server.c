/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's life.  Acts.
 *
 * One thread, one epoll: listening sockets, signals, connections, workers' sockets, the spawner's
 * end.  A turn of the loop waits for them, or until the next thing that is due; then everybody with
 * something due has his tick.
 */
#include "runtime/front/serve/server.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/front/serve/api/api.h"
#include "runtime/front/serve/queue/execution.h"
#include "runtime/front/serve/listen.h"
#include "runtime/front/serve/operations/notify.h"
#include "runtime/front/serve/config/setup.h"
#include "runtime/front/serve/operations/slog.h"
#include "runtime/front/serve/access/tokens.h"
#include "runtime/jail/cgroup/cgroup.h"
#include "runtime/jail/record.h"

#define RUNS_PER_CPU    4
#define ACCEPT_BATCH    32
#define ACCEPT_PAUSE_MS 100   /* when there are no descriptors left */
#define CANCEL_MS       20000 /* cancelled runs may take to tell how they ended */
#define BYE_MS          2000  /* replies may take to be read */

struct server {
	struct service service;
	const struct serve_options *options;
	struct listeners listeners;
	struct watch signals, spawner_end;
	int signal_fd;
	bool has_paused_listeners;
	bool is_ready, has_cancelled, is_over;
	uint64_t drain_until_ms, watchdog_ms, watchdog_at_ms, accept_at_ms;
	struct cj_error failure; /* why it is over, if not by a signal */
};

uint64_t service_wall_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* --- who is hired for the pool ---------------------------------------------- */

int service_spawn_worker(void *service, const char *profile, enum tier tier,
			 struct worker_conn **out, struct cj_error *err)
{
	struct service *s = service;
	struct worker worker = WORKER_NULL;

	if (spawner_ask(&s->spawner, profile, tier, &worker, err) < 0)
		return -err->code;
	*out = worker_conn_create(&s->loop, &worker, err);
	return *out ? 0 : -err->code;
}

static uint64_t stamp(void *context, const char *profile)
{
	return profile_cache_stamp(((struct service *)context)->known, profile);
}

static uint64_t now_ms(void *context)
{
	(void)context;
	return clock_ms();
}

static void say_unready(void *context, const char *profile, enum tier tier, const char *why)
{
	(void)context;
	slog(SLOG_WARNING, "", "no %s of profile '%s' can be prepared ahead: %s", tier_names[tier],
	     profile, why);
}

/* --- the configuration --------------------------------------------------------- */

static unsigned choose_concurrency(const struct service_config *c)
{
	cpu_set_t cpus;

	if (c->concurrency > 0)
		return c->concurrency;
	CPU_ZERO(&cpus);
	if (sched_getaffinity(0, sizeof(cpus), &cpus) < 0)
		return RUNS_PER_CPU; /* more than a thousand of them: say how many runs */
	return RUNS_PER_CPU * (unsigned)CPU_COUNT(&cpus);
}

/* Everything that was made of the last configuration is made of this one. */
static int adopt(struct service *s, struct service_config *c, struct cj_error *err)
{
	struct audit audit = AUDIT_NULL;

	if (audit_open(&c->audit, &audit, err) < 0)
		return -err->code;
	audit.failures = s->audit.failures;
	audit_close(&s->audit);
	s->audit = audit;
	s->concurrency = choose_concurrency(c);
	callers_settle(&c->callers, s->concurrency);
	accounts_adopt(&s->accounts, &c->callers, s->own_uid);
	pool_configure(&s->pool, c->pools, c->npools, c->pool_age_ms);
	http_set_limits(s->http, c->caps.body_bytes, c->receive_ms);
	struct service_config *old = s->config;
	s->config = c;
	if (old != c)
		setup_free(&old);
	return health_adopt(s, err);
}

/* Whoever rotates the file asks for a new one, whatever else there is to read. */
static void reopen_record(struct service *s)
{
	struct cj_error err = { 0 };

	if (audit_reopen(&s->audit, &err) < 0)
		slog_failure(SLOG_ERROR, "", &err, "the record goes on in the file that was open");
}

static void read_again(struct server *v)
{
	struct service_config *c = NULL;
	struct cj_error err = { 0 };

	if (setup_read(v->options, &c, &err) == 0 && tokens_load(c, &err) == 0 &&
	    adopt(&v->service, c, &err) == 0) {
		slog(SLOG_NOTICE, "", "the configuration was read again");
		return;
	}
	slog_failure(SLOG_ERROR, "", &err,
		     "the configuration stays as it was, because the new one is bad");
	if (c != v->service.config)
		setup_free(&c);
	reopen_record(&v->service);
}

/*
 * One READY=1 ends a start as well as a reload, so before the first one there is none of a reload;
 * and whoever drains prepares nothing, and is not ready again: sd_notify(3).
 */
static void reload(struct server *v)
{
	if (v->service.is_draining) {
		reopen_record(&v->service);
		slog(SLOG_NOTICE, "", "draining: no configuration is read any more");
		return;
	}
	if (v->is_ready)
		notify_reloading();
	read_again(v);
	if (v->is_ready)
		notify_send("READY=1");
}

/* --- connections ------------------------------------------------------------------ */

static void pause_listeners(struct server *v, bool pause)
{
	if (v->has_paused_listeners == pause)
		return;
	v->has_paused_listeners = pause;
	v->accept_at_ms = clock_ms() + ACCEPT_PAUSE_MS;
	for (size_t i = 0; i < v->listeners.count; i++)
		loop_rewatch(&v->service.loop, &v->listeners.items[i].watch, pause ? 0 : EPOLLIN);
}

static bool is_lack(int code)
{
	return code == EMFILE || code == ENFILE || code == ENOBUFS || code == ENOMEM;
}

static void on_connection(struct watch *w, uint32_t events)
{
	struct listener *l = watch_owner(w, struct listener, watch);
	struct server *v = l->owner;
	(void)events;

	for (int i = 0; i < ACCEPT_BATCH; i++) {
		int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			http_add(v->service.http, fd, l->is_tcp);
		} else if (is_lack(errno)) {
			slog(SLOG_WARNING, "", "no connection can be taken for now: %s",
			     strerror(errno));
			pause_listeners(v, true);
			return;
		} else if (errno != ECONNABORTED && errno != EINTR) {
			return;
		}
	}
}

/* --- signals, ends ------------------------------------------------------------------ */

static void drain(struct server *v)
{
	struct service *s = &v->service;

	if (s->is_draining) {
		slog(SLOG_NOTICE, "", "a second signal: ending now");
		v->is_over = true;
		return;
	}
	s->is_draining = true;
	v->drain_until_ms = clock_ms() + s->config->drain_ms;
	pool_configure(&s->pool, NULL, 0, 0);
	/* systemd's TimeoutStopSec= knows nothing of our configuration: sd_notify(3) */
	notify_send("STOPPING=1\nSTATUS=draining\nEXTEND_TIMEOUT_USEC=%" PRIu64,
		    (s->config->drain_ms + CANCEL_MS + SPAWNER_END_MS + BYE_MS) * 1000);
	slog(SLOG_NOTICE, "", "draining: %zu runs are under way", runs_unfinished(&s->runs));
}

static void on_signal(struct watch *w, uint32_t events)
{
	struct server *v = watch_owner(w, struct server, signals);
	struct signalfd_siginfo info;
	(void)events;

	if (sys_read(v->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGHUP)
		reload(v);
	else
		drain(v);
}

/* Without it no run can be: the one who started us starts us anew. */
static void on_spawner_end(struct watch *w, uint32_t events)
{
	struct server *v = watch_owner(w, struct server, spawner_end);
	(void)events;

	(void)!cj_reject(&v->failure, "the spawner has ended, and no run can be started any more");
	v->is_over = true;
}

/* --- time ------------------------------------------------------------------------------ */

static int sooner(int wait_ms, int other_ms)
{
	if (other_ms < 0)
		return wait_ms;
	return wait_ms < 0 || other_ms < wait_ms ? other_ms : wait_ms;
}

static int tick_drain(struct server *v, uint64_t now)
{
	struct service *s = &v->service;
	bool has_runs = executions_count(s) > 0;

	if (!s->is_draining)
		return -1;
	if (!has_runs && http_unfinished(s->http) == 0)
		v->is_over = true;
	if (now < v->drain_until_ms)
		return has_runs ? (int)(v->drain_until_ms - now) : 10;
	if (v->has_cancelled) {
		v->is_over = true;
		return 0;
	}
	if (has_runs)
		slog(SLOG_NOTICE, "", "the time to drain is over: %zu runs are cancelled",
		     runs_unfinished(&s->runs));
	executions_cancel_all(s);
	v->has_cancelled = true;
	v->drain_until_ms = now + (has_runs ? CANCEL_MS : BYE_MS);
	return 0;
}

static int tick_watchdog(struct server *v, uint64_t now)
{
	if (v->watchdog_ms == 0)
		return -1;
	if (now >= v->watchdog_at_ms) {
		notify_send("WATCHDOG=1");
		v->watchdog_at_ms = now + v->watchdog_ms;
	}
	return (int)(v->watchdog_at_ms - now);
}

static void tick_ready(struct server *v)
{
	if (v->is_ready || !v->service.health.succeeded || v->service.is_draining)
		return;
	v->is_ready = true;
	notify_send("READY=1\nSTATUS=ready");
	for (size_t i = 0; i < v->listeners.count; i++)
		slog(SLOG_NOTICE, "", "ready on %s", v->listeners.items[i].name);
}

static int tick(struct server *v)
{
	struct service *s = &v->service;
	uint64_t now = clock_ms();

	if (v->has_paused_listeners && now >= v->accept_at_ms)
		pause_listeners(v, false);
	int wait_ms = http_tick(s->http, now);
	wait_ms = sooner(wait_ms, executions_tick(s, now));
	wait_ms = sooner(wait_ms, http_tick(s->http, now)); /* what was refused just now */
	wait_ms = sooner(wait_ms, health_tick(s, now));
	wait_ms = sooner(wait_ms, pool_tick(&s->pool));
	wait_ms = sooner(wait_ms, tick_watchdog(v, now));
	wait_ms = sooner(wait_ms, tick_drain(v, now));
	tick_ready(v);
	return v->has_paused_listeners ? sooner(wait_ms, ACCEPT_PAUSE_MS) : wait_ms;
}

/* --- start, end ---------------------------------------------------------------------------- */

/* A run takes three descriptors, a connection one: as many as we may have. */
static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit); /* then it stays as it is */
	}
}

/* What an earlier service, or anybody's killed run, left behind. */
static void sweep(void)
{
	struct cj_error err = { 0 };
	auto_fd int dir_fd = record_open_dir(&err);
	int count = dir_fd < 0 ? dir_fd : record_sweep(dir_fd, &err);

	if (count < 0)
		slog_failure(SLOG_WARNING, "", &err, "sweep what killed runs left");
	else if ((count += (int)cgroup_sweep()) > 0)
		slog(SLOG_NOTICE, "", "swept what %d killed runs left", count);
}

static int watch_signals(struct server *v, struct cj_error *err)
{
	static const int heard[] = { SIGTERM, SIGINT, SIGHUP };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(heard) / sizeof(heard[0]); i++)
		sigaddset(&set, heard[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return cj_fail(err, errno, "block signals");
	v->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (v->signal_fd < 0)
		return cj_fail(err, errno, "hear signals");
	return loop_watch(&v->service.loop, &v->signals, v->signal_fd, EPOLLIN, on_signal, err);
}

static int watch_listeners(struct server *v, struct cj_error *err)
{
	int rc = listeners_open(v->service.config, &v->listeners, err);

	for (size_t i = 0; rc == 0 && i < v->listeners.count; i++) {
		struct listener *l = &v->listeners.items[i];
		l->owner = v;
		slog(SLOG_NOTICE, "", "listening on %s", l->name);
		rc = loop_watch(&v->service.loop, &l->watch, l->fd, EPOLLIN, on_connection, err);
	}
	return rc;
}

static int open_service(struct server *v, struct cj_error *err)
{
	struct service *s = &v->service;
	const struct pool_ops pool_ops = { service_spawn_worker, stamp, now_ms, say_unready, s };
	const struct http_ops http_ops = api_ops(s);

	s->own_uid = geteuid();
	s->started_ms = service_wall_ms();
	accounts_init(&s->accounts);
	runs_init(&s->runs);
	pool_init(&s->pool, &pool_ops);
	health_init(s);
	s->metrics = metrics_create();
	s->known = profile_cache_create();
	s->flights = executions_create();
	if (!s->metrics || !s->known || !s->flights)
		return cj_fail(err, ENOMEM, "start the service");
	if (loop_open(&s->loop, err) < 0 || watch_signals(v, err) < 0 ||
	    http_open(&s->loop, &http_ops, &s->http, err) < 0 || adopt(s, s->config, err) < 0 ||
	    watch_listeners(v, err) < 0)
		return -err->code;
	return loop_watch(&s->loop, &v->spawner_end, s->spawner.pidfd, EPOLLIN, on_spawner_end,
			  err);
}

/* Half-built, too.  Whoever still waits is answered. */
static void close_service(struct server *v)
{
	struct service *s = &v->service;

	listeners_close(&v->listeners);
	if (s->flights && s->http) {
		executions_cancel_all(s);
		executions_destroy(&s->flights);
		(void)http_tick(s->http, clock_ms());
	}
	free(s->flights);
	http_close(&s->http);
	pool_configure(&s->pool, NULL, 0, 0);
	runs_fini(&s->runs);
	audit_close(&s->audit);
	metrics_destroy(&s->metrics);
	profile_cache_destroy(&s->known);
	health_fini(&s->health);
	setup_free(&s->config);
	cj_close(&v->signal_fd);
	loop_close(&s->loop);
	spawner_end(&s->spawner);
}

static int turn_until_over(struct server *v, struct cj_error *err)
{
	while (!v->is_over)
		if (loop_turn(&v->service.loop, tick(v), err) < 0)
			return -err->code;
	*err = v->failure;
	return -v->failure.code;
}

int server_run(const struct serve_options *o, struct service_config *config,
	       struct spawner *spawner, struct cj_error *err)
{
	struct server *v = calloc(1, sizeof(*v));

	if (!v) {
		setup_free(&config);
		spawner_end(spawner);
		return cj_fail(err, ENOMEM, "start the service");
	}
	*v = (struct server){ .service = { .loop = LOOP_NULL,
					   .spawner = *spawner,
					   .config = config,
					   .audit = AUDIT_NULL },
			      .options = o,
			      .signals = WATCH_NULL,
			      .spawner_end = WATCH_NULL,
			      .signal_fd = -1 };
	*spawner = (struct spawner)SPAWNER_NULL;
	v->watchdog_ms = notify_watchdog_ms();
	raise_limit();
	sweep();
	int rc = open_service(v, err);
	if (rc == 0)
		rc = turn_until_over(v, err);
	close_service(v);
	free(v);
	return rc;
}
