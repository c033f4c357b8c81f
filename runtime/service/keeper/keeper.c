/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper of a session.
 *
 * Theory of operation
 *
 *	begin    the job's settings onto the profile's, the plan, jail_prepare() (a worker of the
 *	         pool has done that), session_begin(), the line "session".  A worker with TIER_REPL
 *	         begins before its job: keeper_repl.h
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

#include <assert.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/child.h"
#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/jail/jail.h"
#include "runtime/run/request/request.h"
#include "runtime/service/keeper/keeper_worker.h"
#include "runtime/service/keeper/keeper_repl.h"
#include "runtime/service/keeper/keeper_channel.h"
#include "runtime/service/keeper/keeper_signals.h"
#include "runtime/service/worker/work.h"
#include "runtime/session/session.h"

#define REQUESTS_MAX 8 /* of one round: the engine's sources are served in between */

#define NO_NUMBER UINT_MAX /* the code of a cell is no file */

/* A worker of this keeper. */
struct child {
	int pidfd; /* -1: the row is free */
	unsigned slot;
	unsigned number;      /* of an exec (work.h) */
	char id[PLAN_ID_MAX]; /* of an exec; else "" */
	struct keeper_signals signals;
	bool is_cell; /* the slot is that of the session's interpreter */
};

enum source {
	SOURCE_SERVER,
	SOURCE_CONTROL,
	SOURCE_SIGNALS,
	SOURCE_REPL,
	SOURCE_CHILDREN = SOURCE_REPL + INTERPRETER_FDS
};
#define SOURCE_COUNT (SOURCE_CHILDREN + KEEPER_WORKERS_MAX)

struct keeper {
	struct work *work;
	int signal_fd;
	struct session *session;  /* NULL: not begun, or finished */
	struct keeper_repl *repl; /* NULL: its context is "none" */
	struct child children[KEEPER_WORKERS_MAX];
	struct pollfd fds[SOURCE_COUNT];
	bool is_ending;
	uint64_t end_ms; /* workers are killed then */
	enum session_end reason;
	struct cj_error why; /* of a reason but SESSION_CLOSED */
	uint64_t status_ms;  /* when the next line may be sent */
	bool is_quiet;       /* nothing has happened since the last line */
};

/* --- begin ---------------------------------------------------------------------- */

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
	w->plan.is_divided = true;
	return session_prepare(&w->plan, w->jail_name, &w->driver.jail, err);
}

static int send_begin(const struct keeper *k, struct cj_error *err)
{
	const struct keeper_line line = {
		.type = KEEPER_LINE_LIVES,
		.is_isolated = session_isolation(k->session) == SESSION_ISOLATED,
	};

	return keeper_line_send(k->work->sock_fd, &line, err);
}

static int begin_session(struct keeper *k, struct cj_error *err)
{
	struct work *w = k->work;

	if (k->session && !w->request.wants_repl)
		return cj_reject(err, "an interpreter was prepared, the session wants none");
	if (k->session)
		return 0;
	if (session_begin(w->driver.jail, &k->session, err) < 0)
		return cj_stage(err, "session");
	return w->request.wants_repl ? keeper_repl_create(w, k->session, &k->repl, err) : 0;
}

static int begin(struct keeper *k, const struct cj_error *early, struct cj_error *err)
{
	if (early->code != 0) {
		*err = *early;
		return -err->code;
	}
	if (prepare(k, err) < 0 || begin_session(k, err) < 0)
		return -err->code;
	session_taken(k->session);
	return send_begin(k, err);
}

/* --- the end ---------------------------------------------------------------------- */

static void start_end(struct keeper *k, enum session_end reason)
{
	struct cj_error ignored = { 0 }; /* without the timer, only the server limits the end */

	if (k->is_ending)
		return;
	k->is_ending = true;
	k->reason = reason;
	k->end_ms = clock_ms() + KEEPER_END_MS;
	(void)!work_limit_life(KEEPER_END_MS, &ignored);
}

/* The server closed the control pipe, or `cejail kill` sent SIGTERM: the execs are cancelled. */
static void cancel(struct keeper *k, enum session_end reason)
{
	if (k->is_ending)
		return;
	keeper_repl_refuse(k->repl);
	start_end(k, reason);
	for (size_t i = 0; i < KEEPER_WORKERS_MAX; i++)
		if (k->children[i].pidfd >= 0)
			(void)sys_pidfd_send_signal(k->children[i].pidfd, SIGTERM);
}

static void end_session(struct keeper *k)
{
	keeper_repl_destroy(&k->repl);
	session_finish(&k->session);
}

/* The engine can't keep the jail: its programs die now, and the workers see it. */
static void give_up(struct keeper *k, enum session_end end)
{
	end_session(k);
	start_end(k, end);
}

/* --- workers ---------------------------------------------------------------------- */

static struct child *find_child(struct keeper *k, const char *id)
{
	for (size_t i = 0; id[0] && i < KEEPER_WORKERS_MAX; i++)
		if (k->children[i].pidfd >= 0 && strcmp(k->children[i].id, id) == 0)
			return &k->children[i];
	return NULL;
}

static struct child *find_free(struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_WORKERS_MAX; i++)
		if (k->children[i].pidfd < 0)
			return &k->children[i];
	return NULL;
}

static bool has_children(const struct keeper *k, bool with_files)
{
	for (size_t i = 0; i < KEEPER_WORKERS_MAX; i++)
		if (k->children[i].pidfd >= 0 &&
		    (with_files || k->children[i].slot != SESSION_NO_SLOT))
			return true;
	return false;
}

static bool is_file(enum keeper_worker worker)
{
	return worker == KEEPER_WORKER_FILE || worker == KEEPER_WORKER_WRITE;
}

/*
 * From here: a worker.  It has no descriptor of the keeper's: a copy of the keeper's socket would
 * hide the end of the session.  And it dies with the keeper, as init does.
 */
static _Noreturn void become_worker(struct keeper *k, const struct keeper_worker_order *order,
				    pid_t keeper_pid)
{
	const struct keeper_request *r = order->request;
	struct cj_error err = { 0 };
	int own[4 + INTERPRETER_OWN] = { r->sock_fd, r->control_fd, r->stdin_fd, k->signal_fd };
	size_t count = 4;

	if (child_die_with_parent(-1, &err) < 0 || getppid() != keeper_pid)
		_exit(EXIT_FAILURE);
	if (order->interpreter)
		count += session_interpreter_own(order->interpreter, own + count);
	if (session_fork_keep(k->session, order->slot, own, count, &err) < 0)
		_exit(EXIT_FAILURE);
	const char *name = is_file(r->worker) ? "cejail-file" : "cejail-exec";
	(void)prctl(PR_SET_NAME, name, 0, 0, 0); /* only what ps(1) shows */
	if (is_file(r->worker))
		keeper_worker_file(order);
	else if (r->worker == KEEPER_WORKER_CELL)
		_exit(keeper_worker_cell(order) ? EXIT_SUCCESS : EXIT_FAILURE);
	else
		keeper_worker_exec(order);
	_exit(EXIT_SUCCESS);
}

/* A worker that began without a pidfd might answer, and the failure would be a second answer. */
static int fork_worker(struct keeper *k, struct child *c, const struct keeper_worker_order *order,
		       struct cj_error *err)
{
	const pid_t self = getpid();
	int pidfd = -1;
	bool is_charged = order->request->worker == KEEPER_WORKER_WRITE;
	pid_t pid = is_charged ? session_fork_charged(k->session, &pidfd) : child_fork(&pidfd);

	if (pid == 0)
		become_worker(k, order, self);
	if (pid < 0)
		return cj_fail(err, errno, "fork a worker of the session");
	c->pidfd = pidfd;
	return 0;
}

/* A worker that has sent its result may not have exited yet. */
static bool has_number(const struct keeper *k, unsigned number)
{
	for (size_t i = 0; i < KEEPER_WORKERS_MAX; i++) {
		const struct child *c = &k->children[i];
		if (c->pidfd >= 0 && c->number == number && c->slot != SESSION_NO_SLOT &&
		    session_exec_runs(k->session, c->slot))
			return true;
	}
	return false;
}

static unsigned free_number(const struct keeper *k)
{
	unsigned number = 0;

	while (has_number(k, number))
		number++;
	return number;
}

static int add_cell(struct keeper *k, struct keeper_request *r, struct cj_error *err)
{
	if (k->repl)
		return keeper_repl_add(k->repl, r, err);
	return cj_reject_as(err, EOPNOTSUPP, "the session has no interpreter");
}

static int add_worker(struct keeper *k, struct keeper_request *r, struct cj_error *err)
{
	struct child *c = find_free(k);
	bool needs_slot = !is_file(r->worker);

	if (!c)
		return cj_reject_as(err, EBUSY, "the session has %d workers already",
				    KEEPER_WORKERS_MAX);
	*c = (struct child){ .pidfd = -1, .slot = SESSION_NO_SLOT, .number = free_number(k) };
	if (needs_slot && session_exec_reserve(k->session, &c->slot, err) < 0)
		return -err->code;
	memcpy(c->id, r->id, sizeof(c->id));
	if (needs_slot)
		session_exec_name(k->session, c->slot, c->id);
	const struct keeper_worker_order order = { .keeper = k->work,
						   .session = k->session,
						   .slot = c->slot,
						   .number = c->number,
						   .signal_fd = k->signal_fd,
						   .request = r };
	int rc = fork_worker(k, c, &order, err);
	if (rc < 0 && needs_slot)
		session_exec_done(k->session, c->slot);
	return rc;
}

/* The interpreter waits for this one. */
static int start_cell_worker(struct keeper *k, struct repl_cell *cell, struct cj_error *err)
{
	struct child *c = find_free(k);

	if (!c)
		return cj_reject_as(err, EBUSY, "the session has %d workers already",
				    KEEPER_WORKERS_MAX);
	*c =
	    (struct child){ .pidfd = -1, .slot = cell->slot, .number = NO_NUMBER, .is_cell = true };
	memcpy(c->id, cell->request.id, sizeof(c->id));
	keeper_signals_add(&c->signals, cell->signals);
	const struct keeper_worker_order order = { .keeper = k->work,
						   .session = k->session,
						   .slot = cell->slot,
						   .interpreter = cell->interpreter,
						   .early = cell->early,
						   .signal_fd = k->signal_fd,
						   .request = &cell->request };
	return fork_worker(k, c, &order, err);
}

static void serve_repl(struct keeper *k)
{
	struct repl_cell cell;
	struct cj_error err = { 0 };

	if (!k->repl || k->is_ending || !keeper_repl_turn(k->repl, &cell))
		return;
	k->is_quiet = false;
	if (start_cell_worker(k, &cell, &err) < 0) {
		cj_stage(&err, "session");
		fd_set_nonblocking(cell.request.sock_fd);
		unready_tell(cell.request.sock_fd, &err);
		keeper_repl_end_cell(k->repl, true);
	}
	keeper_request_fini(&cell.request);
}

/* Its last line is in its socket; only the kernel still knows it. */
static void end_child(struct keeper *k, struct child *c)
{
	siginfo_t how = { 0 }; /* a worker that died sends no result, and the server sees that */

	(void)waitid(P_PIDFD, (id_t)c->pidfd, &how, WEXITED | WNOHANG);
	cj_close(&c->pidfd);
	bool is_kept = how.si_code == CLD_EXITED && how.si_status == EXIT_SUCCESS;
	if (c->is_cell && k->repl)
		keeper_repl_end_cell(k->repl, is_kept);
	else if (!c->is_cell && c->slot != SESSION_NO_SLOT && k->session)
		session_exec_done(k->session, c->slot);
	k->is_quiet = false;
	if (!has_children(k, false))
		k->status_ms = clock_earlier(k->status_ms, clock_ms() + KEEPER_SETTLE_MS);
}

/* --- signals to a program ----------------------------------------------------------- */

static void deliver_signals(struct keeper *k, struct child *c)
{
	keeper_signals_deliver(&c->signals, k->session, c->slot, c->is_cell ? k->repl : NULL);
}

static void add_signal(struct keeper *k, const struct keeper_request *r)
{
	struct child *c = find_child(k, r->id);

	if (!c && keeper_repl_add_signals(k->repl, r->id, keeper_signal_bit(r->signo)))
		return;
	if (!c && r->signo == SIGKILL && k->session)
		(void)session_exec_kill_left(k->session, r->id); /* its background processes */
	if (!c || c->slot == SESSION_NO_SLOT)
		return; /* it has ended meanwhile */
	keeper_signals_add(&c->signals, keeper_signal_bit(r->signo));
	deliver_signals(k, c);
}

/* --- the loop ----------------------------------------------------------------------- */

static void carry_out(struct keeper *k, struct keeper_request *r)
{
	struct cj_error err = { 0 };

	k->is_quiet = false;
	if (r->kind == KEEPER_REQUEST_SIGNAL) {
		add_signal(k, r);
		return;
	}
	int rc = r->worker == KEEPER_WORKER_CELL ? add_cell(k, r, &err) : add_worker(k, r, &err);
	if (rc < 0) {
		cj_stage(&err, "session");
		fd_set_nonblocking(r->sock_fd);
		unready_tell(r->sock_fd, &err);
	}
}

static void read_requests(struct keeper *k)
{
	for (int i = 0; i < REQUESTS_MAX && !k->is_ending; i++) {
		__attribute__((cleanup(keeper_request_fini))) struct keeper_request r =
		    KEEPER_REQUEST_NULL;
		struct cj_error err = { 0 };
		int rc = keeper_receive(k->work->sock_fd, &r, &err);
		if (rc == 0)
			return;
		if (rc < 0) {
			cancel(k, SESSION_CLOSED);
			return;
		}
		carry_out(k, &r);
	}
}

static void on_sigterm(struct keeper *k)
{
	struct signalfd_siginfo info;

	(void)sys_read(k->signal_fd, &info, sizeof(info)); /* it would be reported again */
	cj_refuse_as(&k->why, ECANCELED, "signal %s ended the session", "SIGTERM");
	cancel(k, SESSION_KILLED);
}

/* The next reason to wake up without an event; -1: none. */
static int timeout_ms(const struct keeper *k)
{
	uint64_t now_ms = clock_ms(), at_ms = UINT64_MAX;

	if (k->is_ending)
		at_ms = k->end_ms;
	else if (!k->is_quiet)
		at_ms = k->status_ms;
	if (k->repl && !k->is_ending && keeper_repl_at_ms(k->repl) < at_ms)
		at_ms = keeper_repl_at_ms(k->repl);
	for (size_t i = 0; i < KEEPER_WORKERS_MAX; i++)
		if (k->children[i].pidfd >= 0 && k->children[i].signals.bits != 0 &&
		    now_ms + KEEPER_SIGNALS_MS < at_ms)
			at_ms = now_ms + KEEPER_SIGNALS_MS;
	if (at_ms == UINT64_MAX)
		return -1;
	return at_ms > now_ms ? (int)(at_ms - now_ms) : 0;
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
		k->fds[SOURCE_REPL + i] = (struct pollfd){ .fd = -1 };
	if (k->repl && is_open)
		keeper_repl_watch(k->repl, &k->fds[SOURCE_REPL]);
	for (size_t i = 0; i < KEEPER_WORKERS_MAX; i++)
		k->fds[SOURCE_CHILDREN + i] =
		    (struct pollfd){ .fd = k->children[i].pidfd, .events = POLLIN };
}

/* One round; without a session only the ends of the workers are awaited. */
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
	int rc = session_serve(k->session, k->fds, SOURCE_COUNT, timeout_ms(k), &end, &err);
	if (rc >= 0)
		return;
	memset(k->fds, 0, sizeof(k->fds));
	if (k->why.code == 0)
		k->why = err;
	give_up(k, rc == -ECANCELED ? end : SESSION_FAILED);
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
		.used_bytes = has_children(k, false) ? UINT64_MAX : now.memory_bytes,
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
	for (size_t i = 0; i < KEEPER_WORKERS_MAX; i++)
		if (k->children[i].pidfd >= 0 && k->fds[SOURCE_CHILDREN + i].revents)
			end_child(k, &k->children[i]);
	if (k->fds[SOURCE_SERVER].revents)
		read_requests(k);
	if (k->fds[SOURCE_SIGNALS].revents)
		on_sigterm(k);
	if (k->fds[SOURCE_CONTROL].revents)
		cancel(k, SESSION_CLOSED);
	serve_repl(k);
	for (size_t i = 0; k->session && i < KEEPER_WORKERS_MAX; i++)
		if (k->children[i].pidfd >= 0)
			deliver_signals(k, &k->children[i]);
	send_status(k);
}

static void serve(struct keeper *k)
{
	while (!k->is_ending || (has_children(k, true) && clock_ms() < k->end_ms)) {
		wait_round(k);
		handle(k);
	}
	for (size_t i = 0; i < KEEPER_WORKERS_MAX; i++)
		cj_end_child(&k->children[i].pidfd);
	end_session(k);
}

void keeper_main(struct work *w, int signal_fd, const struct cj_error *early)
{
	struct keeper k = { .work = w, .signal_fd = signal_fd, .reason = SESSION_FAILED };
	bool is_callers_own = false;
	struct cj_error late = *early;

	if (w->tier == TIER_REPL &&
	    !keeper_repl_take_ahead(w, signal_fd, &k.session, &k.repl, &late)) {
		end_session(&k);
		return;
	}
	(void)prctl(PR_SET_NAME, "cejail-session", 0, 0, 0); /* only what ps(1) shows */
	fd_set_nonblocking(w->sock_fd);
	for (size_t i = 0; i < KEEPER_WORKERS_MAX; i++)
		k.children[i].pidfd = -1;
	if (begin(&k, &late, &k.why) == 0) {
		serve(&k);
	} else {
		is_callers_own = work_is_callers_own(w, &k.why);
		end_session(&k);
	}
	keeper_line_send_end(w->sock_fd, k.reason, &k.why, is_callers_own, KEEPER_END_MS);
}
