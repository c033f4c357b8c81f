/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's life.
 *
 * One thread and one epoll loop: listening sockets, signals, connections, workers' sockets, the end
 * of the spawner.  Each turn of the loop waits for an event or for the next deadline, and then
 * calls the tick function of every part that has deadlines.
 */
#include "runtime/service/server.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/jail/record.h"
#include "runtime/kernel/cgroup/cgroup.h"
#include "runtime/service/config/tokens.h"
#include "runtime/service/http/http.h"
#include "runtime/service/listen.h"
#include "runtime/service/operations/notify.h"
#include "runtime/service/log/slog.h"
#include "runtime/service/queue/execution.h"
#include "runtime/service/queue/runs.h"
#include "runtime/service/sessions/keeper_conn.h"

#define ACCEPT_BATCH    32
#define ACCEPT_PAUSE_MS 100   /* when no descriptors are left */
#define CANCEL_MS       20000 /* for cancelled runs to send their results */
#define REPLY_MS        2000  /* for callers to read the last replies */
static_assert(CANCEL_MS > EXECUTION_CANCEL_MS, "a result arrives before the service gives up");

struct server {
	const struct serve_options *options;
	struct service_config *config; /* the one in force */
	struct spawner spawner;

	struct loop loop;
	struct api api;

	struct listeners listeners;
	struct watch signals, spawner_end;
	int signal_fd;
	bool has_paused_listeners;
	bool is_ready, has_cancelled, is_over;
	uint64_t drain_until_ms, watchdog_ms, watchdog_at_ms, accept_at_ms;
	struct idle idle;
	struct cj_error failure; /* why it is over, unless a signal ended it */
};

/* Gives the new configuration to every part that depends on it. */
static int adopt(struct server *v, struct service_config *c, struct cj_error *err)
{
	if (api_adopt(&v->api, c, err) < 0)
		return -err->code;
	struct service_config *old = v->config;
	v->config = c;
	if (old != c)
		service_config_free(&old);
	return health_adopt(&v->api, c, err);
}

/* SIGHUP always opens the files again: log rotation relies on it. */
static void reopen_files(struct server *v)
{
	struct cj_error err = { 0 };

	if (audit_reopen(&v->api.audit, &err) < 0)
		slog_failure(SLOG_ERROR, "", &err,
			     "audit lines still go to the file that was open before");
	if (line_file_reopen(&v->api.trace_file, SPANS_FILE_MODE, &err) < 0)
		slog_failure(SLOG_ERROR, "", &err,
			     "spans still go to the file that was open before");
}

static void reload_config(struct server *v)
{
	struct service_config *c = NULL;
	struct cj_error err = { 0 };

	if (serve_options_load(v->options, &c, &err) == 0 && tokens_load(c, &err) == 0 &&
	    adopt(v, c, &err) == 0) {
		slog(SLOG_NOTICE, "", "configuration reloaded");
		return;
	}
	slog_failure(SLOG_ERROR, "", &err, "reload failed, the old configuration stays in force");
	if (c != v->config)
		service_config_free(&c);
	reopen_files(v);
}

/*
 * systemd takes READY=1 for the end of the start as well as of a reload: sd_notify(3).  So a reload
 * during the start sends none, and a service that drains does not say that it is ready again.
 */
static void reload(struct server *v)
{
	if (v->api.executions.is_draining) {
		reopen_files(v);
		slog(SLOG_NOTICE, "", "draining, so the configuration is not reloaded");
		return;
	}
	if (v->is_ready)
		notify_reloading();
	reload_config(v);
	if (v->is_ready)
		notify_send("READY=1");
}

static void pause_listeners(struct server *v, bool pause)
{
	if (v->has_paused_listeners == pause)
		return;
	v->has_paused_listeners = pause;
	v->accept_at_ms = clock_ms() + ACCEPT_PAUSE_MS;
	for (size_t i = 0; i < v->listeners.count; i++)
		loop_rewatch(&v->loop, &v->listeners.items[i].watch, pause ? 0 : EPOLLIN);
}

static bool is_shortage(int code)
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
			http_add(v->api.http, fd, l->is_tcp);
		} else if (is_shortage(errno)) {
			slog(SLOG_WARNING, "", "accepting no connections for now: %s",
			     strerror(errno));
			pause_listeners(v, true);
			return;
		} else if (errno != ECONNABORTED && errno != EINTR) {
			return;
		}
	}
}

static void drain(struct server *v)
{
	uint64_t drain_ms = v->config->drain_ms;

	if (v->api.executions.is_draining) {
		slog(SLOG_NOTICE, "", "second signal, ending now");
		v->is_over = true;
		return;
	}
	v->api.executions.is_draining = true;
	v->drain_until_ms = clock_ms() + drain_ms;
	api_end_prepared(&v->api);
	/* systemd's TimeoutStopSec= does not know our configuration: sd_notify(3) */
	notify_send("STOPPING=1\nSTATUS=draining\nEXTEND_TIMEOUT_USEC=%" PRIu64,
		    (drain_ms + CANCEL_MS + SPAWNER_END_MS + REPLY_MS) * 1000);
	slog(SLOG_NOTICE, "", "draining: %zu unfinished runs, %zu sessions",
	     runs_unfinished(&v->api.runs), v->api.sessions.live);
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

/* Without the spawner no run can start: the service manager must restart the service. */
static void on_spawner_end(struct watch *w, uint32_t events)
{
	struct server *v = watch_owner(w, struct server, spawner_end);
	(void)events;

	cj_refuse(&v->failure, "the spawner has ended, so no run can start");
	v->is_over = true;
}

bool idle_is_used(const struct idle_uses *u)
{
	return u->runs > u->own_runs || u->requests > 0 || u->sessions > 0;
}

int idle_tick(struct idle *i, bool is_used, uint64_t now_ms)
{
	if (is_used || i->since_ms == 0)
		i->since_ms = now_ms > 0 ? now_ms : 1;
	uint64_t passed_ms = now_ms > i->since_ms ? now_ms - i->since_ms : 0;

	return passed_ms < IDLE_PATIENCE_MS ? (int)(IDLE_PATIENCE_MS - passed_ms) : 0;
}

static int tick_drain(struct server *v, uint64_t now)
{
	bool has_runs = executions_count(&v->api.executions) > 0 || v->api.sessions.live > 0;

	if (!v->api.executions.is_draining)
		return -1;
	if (!has_runs && http_unfinished(v->api.http) == 0 &&
	    !mcp_tasks_are_awaited(&v->api.mcp_tasks, now))
		v->is_over = true;
	if (now < v->drain_until_ms)
		return has_runs ? (int)(v->drain_until_ms - now) : 10;
	if (v->has_cancelled) {
		v->is_over = true;
		return 0;
	}
	if (has_runs)
		slog(SLOG_NOTICE, "", "drain timeout: cancelling %zu runs, ending %zu sessions",
		     runs_unfinished(&v->api.runs), v->api.sessions.live);
	executions_cancel_all(&v->api.executions);
	sessions_close_all(&v->api.sessions, SESSION_DRAIN);
	v->has_cancelled = true;
	v->drain_until_ms = now + (has_runs ? CANCEL_MS : REPLY_MS);
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

static int tick_idle(struct server *v, uint64_t now)
{
	if (!v->options->until_idle || v->api.executions.is_draining)
		return -1;
	const struct idle_uses uses = {
		.runs = executions_count(&v->api.executions),
		.own_runs = v->api.health.is_probing ? 1 : 0,
		.requests = http_unfinished(v->api.http),
		.sessions = v->api.sessions.live,
	};
	int wait_ms = idle_tick(&v->idle, idle_is_used(&uses), now);
	if (wait_ms == 0) {
		slog(SLOG_NOTICE, "", "no session and no run, ending");
		drain(v);
	}
	return wait_ms;
}

static void tick_ready(struct server *v)
{
	if (v->is_ready || !v->api.health.succeeded || v->api.executions.is_draining)
		return;
	v->is_ready = true;
	notify_send("READY=1\nSTATUS=ready");
	for (size_t i = 0; i < v->listeners.count; i++)
		slog(SLOG_NOTICE, "", "ready on %s", v->listeners.items[i].name);
}

static int tick(struct server *v)
{
	uint64_t now = clock_ms();

	if (v->has_paused_listeners && now >= v->accept_at_ms)
		pause_listeners(v, false);
	int wait_ms = api_tick(&v->api, now);
	wait_ms = loop_sooner(wait_ms, health_tick(&v->api, now));
	wait_ms = loop_sooner(wait_ms, api_prepare(&v->api));
	wait_ms = loop_sooner(wait_ms, tick_watchdog(v, now));
	wait_ms = loop_sooner(wait_ms, tick_idle(v, now));
	wait_ms = loop_sooner(wait_ms, tick_drain(v, now));
	tick_ready(v);
	profile_cache_turn(v->api.profiles); /* the callbacks come after a wait */
	return v->has_paused_listeners ? loop_sooner(wait_ms, ACCEPT_PAUSE_MS) : wait_ms;
}

/* A run needs three descriptors, a connection one: take as many as the hard limit allows. */
static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit); /* on failure the limit stays */
	}
}

/* Removes what killed runs, of an earlier service or of anybody, left behind. */
static void sweep(void)
{
	struct cj_error err = { 0 };
	auto_fd int dir_fd = record_open_dir(&err);
	int count = dir_fd < 0 ? dir_fd : record_sweep(dir_fd, &err);

	if (count < 0)
		slog_failure(SLOG_WARNING, "", &err, "remove what killed runs left behind");
	else if ((count += (int)cgroup_sweep()) > 0)
		slog(SLOG_NOTICE, "", "removed what %d killed runs left behind", count);
}

static int watch_listeners(struct server *v, struct cj_error *err)
{
	int rc = listeners_open(v->config, &v->listeners, err);

	for (size_t i = 0; rc == 0 && i < v->listeners.count; i++) {
		struct listener *l = &v->listeners.items[i];
		l->owner = v;
		slog(SLOG_NOTICE, "", "listening on %s", l->name);
		rc = loop_watch(&v->loop, &l->watch, l->fd, on_connection, err);
	}
	return rc;
}

static int open_server(struct server *v, struct cj_error *err)
{
	if (loop_open(&v->loop, err) < 0)
		return -err->code;
	v->signal_fd = loop_watch_signals(&v->loop, &v->signals, on_signal, err);
	if (v->signal_fd < 0 || api_open(&v->api, &v->loop, &v->spawner, err) < 0 ||
	    adopt(v, v->config, err) < 0 || watch_listeners(v, err) < 0)
		return -err->code;
	return loop_watch(&v->loop, &v->spawner_end, v->spawner.pidfd, on_spawner_end, err);
}

int server_run(const struct serve_options *o, struct service_config *config,
	       struct spawner *spawner, struct cj_error *err)
{
	struct server *v = calloc(1, sizeof(*v));

	if (!v) {
		service_config_free(&config);
		spawner_end(spawner);
		return cj_fail(err, ENOMEM, "start the service");
	}
	*v = (struct server){ .options = o,
			      .config = config,
			      .spawner = *spawner,
			      .loop = LOOP_NULL,
			      .signals = WATCH_NULL,
			      .spawner_end = WATCH_NULL,
			      .signal_fd = -1 };
	*spawner = (struct spawner)SPAWNER_NULL;
	v->watchdog_ms = notify_watchdog_ms();
	raise_limit();
	sweep();
	int rc = open_server(v, err);
	while (rc == 0 && !v->is_over)
		rc = loop_turn(&v->loop, tick(v), err);
	if (rc == 0) {
		*err = v->failure;
		rc = -v->failure.code;
	}

	/* Also of a server that is half-built.  Callers that still wait are answered. */
	listeners_close(&v->listeners);
	api_close(&v->api);
	service_config_free(&v->config);
	cj_close(&v->signal_fd);
	loop_close(&v->loop);
	spawner_end(&v->spawner);
	free(v);
	return rc;
}
