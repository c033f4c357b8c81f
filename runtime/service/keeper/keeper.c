/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper of a session.
 *
 * Theory of operation
 *
 *	begin    the job's settings onto the profile's, the plan, jail_prepare() (a worker of the
 *	         pool has done that), session_begin(), the line "session".  A worker with TIER_REPL
 *	         has begun the session before its job comes.
 *	serve    one round of session_serve() after another.  A request of the server is a fork or a
 *	         signal.  The end of a worker is session_exec_done()
 *	end      by the server (it closes the control pipe or ends), by SIGTERM, or by the engine
 *	         (the jail can't live on).  In the first two cases the workers get SIGTERM, which
 *	         cancels their execs; the rounds go on until they have ended.  In the third case the
 *	         jail is killed first, which ends the execs with what they see.  Workers that are
 *	         left after KEEPER_END_MS are killed.  Then the jail is destroyed, and the line
 *	         "ended" says why.
 *
 * Nothing here blocks: requests and lines are sent and received without waiting, workers are forks,
 * and the time of the end is limited, at last by a timer of the kernel.
 */
#include "runtime/service/keeper/keeper.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>

#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/jail/jail.h"
#include "runtime/run/request/request.h"
#include "runtime/service/keeper/keeper_state.h"

#define REQUESTS_MAX 8 /* of one round: the engine's sources are served in between */

/* The jail of a worker that was prepared ahead, or a new one. */
static int prepare(struct keeper *k, struct cj_error *err)
{
	struct work *w = k->work;

	if (w->tier == TIER_INTERPRETER) {
		cj_refuse(err, "a jail with a waiting interpreter can't be a session's");
		return cj_stage(err, "worker");
	}
	if (work_configure(w, err) < 0)
		return -err->code;
	if (w->driver.jail)
		return 0;
	if (request_plan_jail(&w->config, &w->plan, err) < 0)
		return cj_stage(err, "plan");
	if (w->plan.reduced) {
		cj_refuse(err, "a session needs namespaces: a reduced profile is for one run");
		return cj_stage(err, "options");
	}
	plan_divide(&w->plan);
	return session_prepare(&w->plan, w->jail_name, &w->driver.jail, err);
}

static int begin_session(struct keeper *k, bool wants_repl, struct cj_error *err)
{
	struct work *w = k->work;

	if (session_begin(w->driver.jail, &k->session, err) < 0)
		return cj_stage(err, "session");
	if (wants_repl && plan_repl(&w->config, &w->plan, &k->launcher, err) < 0)
		return cj_stage(err, "options");
	k->has_repl = k->is_wanted = wants_repl;
	return 0;
}

static int begin(struct keeper *k, const struct cj_error *early, struct cj_error *err)
{
	if (early->code != 0) {
		*err = *early;
		return -err->code;
	}
	if (prepare(k, err) < 0)
		return -err->code;
	if (k->session && !k->work->request.wants_repl)
		return cj_reject(err, "an interpreter was prepared, the session wants none");
	if (!k->session && begin_session(k, k->work->request.wants_repl, err) < 0)
		return -err->code;
	session_taken(k->session);
	k->is_quiet = false;
	k->status_ms = clock_ms();
	const struct keeper_line line = {
		.type = KEEPER_LINE_LIVES,
		.is_isolated = session_isolation(k->session) == SESSION_ISOLATED,
	};
	return keeper_line_send(k->work->sock_fd, &line, err);
}

static void start_end(struct keeper *k, enum session_end reason)
{
	struct cj_error ignored = { 0 }; /* without the timer, only the server limits the end */

	if (k->is_ending)
		return;
	k->is_ending = true;
	k->reason = reason;
	k->end_ms = clock_ms() + KEEPER_END_MS;
	keeper_refuse_waiting(k, "the session ended before the cell began");
	(void)!work_limit_life(KEEPER_END_MS, &ignored);
}

/* The server closed the control pipe, or `cejail kill` sent SIGTERM: the execs are cancelled. */
static void cancel(struct keeper *k, enum session_end reason)
{
	if (k->is_ending)
		return;
	start_end(k, reason);
	for (size_t i = 0; i < KEEPER_WORKERS_MAX; i++)
		if (k->children[i].pidfd >= 0)
			(void)sys_pidfd_send_signal(k->children[i].pidfd, SIGTERM);
}

static void end_session(struct keeper *k)
{
	session_interpreter_end(&k->interpreter);
	session_finish(&k->session);
}

static void read_requests(struct keeper *k)
{
	for (int i = 0; i < REQUESTS_MAX && !k->is_ending; i++) {
		struct keeper_request r = KEEPER_REQUEST_NULL;
		struct cj_error err = { 0 };
		int rc = keeper_receive(k->work->sock_fd, &r, &err);
		if (rc == 0)
			return;
		if (rc < 0) {
			cancel(k, SESSION_CLOSED);
			return;
		}
		keeper_carry_out(k, &r);
	}
}

/* The next reason to wake up without an event; -1: none. */
static int timeout_ms(const struct keeper *k)
{
	uint64_t now_ms = clock_ms(), at_ms = k->is_quiet ? 0 : k->status_ms;

	if (k->is_ending)
		at_ms = k->end_ms;
	else if (k->is_wanted && !k->interpreter)
		at_ms = now_ms;
	else if (k->interpreter && k->interpreter->state == INTERPRETER_STARTS)
		at_ms = clock_earlier(at_ms, k->interpreter->at_ms);
	for (size_t i = 0; i < KEEPER_WORKERS_MAX; i++)
		if (k->children[i].pidfd >= 0 && k->children[i].signals != 0)
			at_ms = clock_earlier(at_ms, now_ms + KEEPER_SIGNALS_MS);
	return clock_ms_until(at_ms);
}

static void watch(struct keeper *k)
{
	bool is_open = !k->is_ending;

	k->fds[SOURCE_SERVER] =
	    (struct pollfd){ .fd = is_open ? k->work->sock_fd : -1, .events = POLLIN };
	k->fds[SOURCE_CONTROL] = (struct pollfd){ .fd = is_open ? k->work->control_fd : -1 };
	k->fds[SOURCE_SIGNALS] =
	    (struct pollfd){ .fd = is_open ? k->signal_fd : -1, .events = POLLIN };
	for (int i = 0; i < INTERPRETER_FDS; i++)
		k->fds[SOURCE_INTERPRETER + i] = (struct pollfd){ .fd = -1 };
	if (k->interpreter && is_open)
		session_interpreter_watch(k->interpreter, &k->fds[SOURCE_INTERPRETER]);
	for (size_t i = 0; i < KEEPER_WORKERS_MAX; i++)
		k->fds[SOURCE_CHILDREN + i] =
		    (struct pollfd){ .fd = k->children[i].pidfd, .events = POLLIN };
}

/*
 * One round; without a session only the ends of the workers are awaited.  When the engine can't
 * keep the jail, its programs die now, and the workers see it.
 */
static void wait_round(struct keeper *k)
{
	enum session_end end = SESSION_LIVES;
	struct cj_error err = { 0 };

	watch(k);
	if (!k->session) {
		if (poll(k->fds, SOURCE_COUNT, timeout_ms(k)) <= 0)
			memset(k->fds, 0, sizeof(k->fds));
		return;
	}
	if (session_serve(k->session, k->fds, SOURCE_COUNT, timeout_ms(k), &end, &err) >= 0)
		return;
	memset(k->fds, 0, sizeof(k->fds));
	if (k->why.code == 0)
		k->why = err;
	end_session(k);
	start_end(k, end);
}

static void send_status(struct keeper *k)
{
	struct session_status now = { 0 };
	struct cj_error ignored = { 0 }; /* the server does not read: the next line says it */
	if (k->is_quiet || k->is_ending || clock_ms() < k->status_ms)
		return;
	session_status(k->session, &now);
	struct keeper_line line = {
		.type = KEEPER_LINE_STATUS,
		.cpu_ms = now.usage.cpu_user_ms + now.usage.cpu_system_ms,
		.memory_bytes = now.usage.memory_peak_bytes,
		.pids = now.usage.pids_peak,
		.used_bytes = keeper_has_children(k, false) ? UINT64_MAX : now.memory_bytes,
		.denied_packets = now.denied_packets,
	};
	for (size_t i = 0; i < now.ndenied; i++)
		line.denied_syscalls += now.denied[i].count;
	bool is_sent = keeper_line_send(k->work->sock_fd, &line, &ignored) == 0;
	k->status_ms = clock_ms() + KEEPER_STATUS_MS;
	k->is_quiet = is_sent && now.execs == 0;
}

static void handle(struct keeper *k)
{
	keeper_end_children(k);
	if (k->fds[SOURCE_SERVER].revents)
		read_requests(k);
	if (k->fds[SOURCE_SIGNALS].revents) {
		struct signalfd_siginfo info;

		(void)sys_read(k->signal_fd, &info, sizeof(info)); /* it would be reported again */
		cj_refuse_as(&k->why, ECANCELED, "signal %s ended the session", "SIGTERM");
		cancel(k, SESSION_KILLED);
	}
	if (k->fds[SOURCE_CONTROL].revents)
		cancel(k, SESSION_CLOSED);
	keeper_serve_interpreter(k);
	keeper_deliver_signals(k);
	send_status(k);
}

/* TIER_REPL: the session begins before its job comes. */

/* A job that has come already gets a new jail, as one without a pool does. */
static int lose_jail(struct keeper *k, struct cj_error *err)
{
	struct work *w = k->work;

	end_session(k);
	jail_destroy(&w->driver.jail);
	if (!fd_await(w->sock_fd, POLLIN, 0))
		return -err->code;
	k->has_repl = k->is_wanted = false;
	k->no_start.code = 0;
	w->tier = TIER_COLD;
	return 1;
}

/* Returns 1 when there is a job, 0 when nobody wants the session. */
static int wait_for_job(struct keeper *k, struct cj_error *err)
{
	struct work *w = k->work;
	enum session_end end = SESSION_LIVES;
	bool is_told = false;

	if (begin_session(k, true, err) < 0)
		return -err->code;
	for (bool is_asked = false;;) {
		keeper_serve_interpreter(k);
		if (k->no_start.code != 0) {
			*err = k->no_start;
			return lose_jail(k, err);
		}
		if (is_asked) /* a job that is cancelled at once is still read */
			return fd_await(w->sock_fd, POLLIN, 0);
		if (!is_told && keeper_interpreter_state(k) == INTERPRETER_WAITS) {
			if (ready_tell(w->sock_fd, false, NULL, err) < 0)
				return -err->code;
			is_told = true;
		}
		watch(k);
		if (session_serve(k->session, k->fds, SOURCE_COUNT, timeout_ms(k), &end, err) < 0)
			return lose_jail(k, err);
		is_asked = k->fds[SOURCE_SERVER].revents || k->fds[SOURCE_CONTROL].revents ||
			   k->fds[SOURCE_SIGNALS].revents;
	}
}

/*
 * "ready" is sent when the interpreter waits; one that ends meanwhile is replaced.  If the jail or
 * the interpreter fails when the job has come already, the keeper makes a new jail.
 * False: the server does not want this session any more, SIGTERM came, or "unready" was sent.
 * Else the job was read; *early says why it fails, if it does.
 */
static bool take_job(struct keeper *k, struct cj_error *early)
{
	struct cj_error err = { 0 };
	int rc = wait_for_job(k, &err);

	if (rc < 0)
		unready_tell(k->work->sock_fd, &err);
	if (rc <= 0 || (work_read_job(k->work, early) < 0 && early->code == EPIPE))
		return false;
	if (early->code == 0 && k->work->job.kind != JOB_SESSION)
		cj_refuse(early, "a session was prepared, the job is another");
	return true;
}

void keeper_main(struct work *w, int signal_fd, const struct cj_error *early)
{
	struct keeper k = {
		.work = w, .signal_fd = signal_fd, .reason = SESSION_FAILED, .is_quiet = true
	};
	bool is_callers_own = false;
	struct cj_error late = *early;

	for (size_t i = 0; i < KEEPER_WORKERS_MAX; i++)
		k.children[i].pidfd = -1;
	if (w->tier == TIER_REPL && !take_job(&k, &late)) {
		end_session(&k);
		return;
	}
	(void)prctl(PR_SET_NAME, "cejail-session", 0, 0, 0); /* only what ps(1) shows */
	fd_set_nonblocking(w->sock_fd);
	if (begin(&k, &late, &k.why) == 0) {
		while (!k.is_ending || (keeper_has_children(&k, true) && clock_ms() < k.end_ms)) {
			wait_round(&k);
			handle(&k);
		}
		for (size_t i = 0; i < KEEPER_WORKERS_MAX; i++)
			cj_end_child(&k.children[i].pidfd);
	} else {
		is_callers_own = work_is_callers_own(w, &k.why);
	}
	end_session(&k);
	keeper_line_send_end(w->sock_fd, k.reason, &k.why, is_callers_own, KEEPER_END_MS);
}
