/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workers of a keeper, and the interpreter of its session.
 *
 * With the context "repl" the keeper has one interpreter, which starts in the background.  A cell
 * waits until it is ready and the worker of the cell before it has ended.  Only one can wait: the
 * queue is the server's (cell_gate, sessions.h).  When a cell has ended its interpreter, another
 * one starts at once.  When none can be started, the next cell has the reason as its result, and
 * the cell after it makes another attempt.
 *
 * A program that has not been executed can't get signals.  What an interpreter gets before it
 * begins the code of a cell, or after it, has no effect on the cell, or ends the interpreter.  So
 * signals are held meanwhile.  Only SIGKILL is not held for a cell.
 */
#include "runtime/service/keeper/keeper_state.h"

#include <limits.h>
#include <signal.h>
#include <sys/wait.h>

#include "runtime/base/child.h"
#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/service/keeper/keeper.h"

/* When an interpreter begins is data from inside: a cell gets its signals after this time. */
#define SIGNALS_HOLD_MS 30000

#define NO_NUMBER UINT_MAX /* the code of a cell is no file */

static void refuse(struct keeper_request *r, struct cj_error *why)
{
	cj_stage(why, "session");
	fd_set_nonblocking(r->sock_fd);
	unready_tell(r->sock_fd, why);
	keeper_request_fini(r);
}

void keeper_refuse_waiting(struct keeper *k, const char *why)
{
	struct cj_error err = { 0 };

	if (!k->waiting)
		return;
	cj_refuse_as(&err, ECANCELED, "%s", why);
	refuse(&k->waiting->request, &err);
	k->waiting = NULL;
}

static bool is_cell(const struct keeper_child *c)
{
	return c->request.kind == KEEPER_WORKER_CELL;
}

static struct keeper_child *find_child(struct keeper *k, const char *id)
{
	for (size_t i = 0; id[0] && i < KEEPER_WORKERS_MAX; i++) {
		struct keeper_child *c = &k->children[i];
		if ((c->pidfd >= 0 || c == k->waiting) && strcmp(c->request.id, id) == 0)
			return c;
	}
	return NULL;
}

bool keeper_has_children(const struct keeper *k, bool with_files)
{
	for (size_t i = 0; i < KEEPER_WORKERS_MAX; i++)
		if (k->children[i].pidfd >= 0 &&
		    (with_files || k->children[i].slot != SESSION_NO_SLOT))
			return true;
	return false;
}

/* A worker that began without a pidfd might answer, and the failure would be a second answer. */
static int fork_worker(struct keeper *k, struct keeper_child *c, struct cj_error *err)
{
	const pid_t self = getpid();
	int pidfd = -1;
	bool is_charged = c->request.kind == KEEPER_WORKER_WRITE;
	pid_t pid = is_charged ? session_fork_charged(k->session, &pidfd) : child_fork(&pidfd);

	if (pid == 0)
		keeper_worker_main(k, c, self);
	if (pid < 0)
		return cj_fail(err, errno, "fork a worker of the session");
	c->pidfd = pidfd;
	keeper_request_fini(&c->request);
	return 0;
}

/* A worker that has sent its result may not have exited yet. */
static bool has_number(const struct keeper *k, unsigned number)
{
	for (size_t i = 0; i < KEEPER_WORKERS_MAX; i++) {
		const struct keeper_child *c = &k->children[i];
		if (c->pidfd >= 0 && c->number == number && session_exec_runs(k->session, c->slot))
			return true;
	}
	return false;
}

/* The code of a cell that nobody waits for any more does not run. */
static void drop_cancelled(struct keeper *k)
{
	if (k->waiting && fd_await(k->waiting->request.control_fd, 0, 0))
		keeper_refuse_waiting(k, "the cell was cancelled before it began");
}

/*
 * The server sends a cell when the one before it has its result (cell_gate).  Its worker may not
 * have exited, so one waits here.  A cancelled one may wait, too: the server forgets it earlier.
 */
static int check_cell(struct keeper *k, struct cj_error *err)
{
	if (!k->has_repl)
		return cj_reject_as(err, EOPNOTSUPP, "the session has no interpreter");
	drop_cancelled(k);
	if (k->waiting)
		return cj_reject_as(err, EBUSY, "a cell of the session waits already");
	return 0;
}

/* Takes the request's descriptors, unless it fails. */
static int add_worker(struct keeper *k, struct keeper_request *r, struct cj_error *err)
{
	const bool has_cell = r->kind == KEEPER_WORKER_CELL;
	size_t i = 0;

	if (has_cell && check_cell(k, err) < 0)
		return -err->code;
	while (i < KEEPER_WORKERS_MAX &&
	       (k->children[i].pidfd >= 0 || &k->children[i] == k->waiting))
		i++;
	if (i == KEEPER_WORKERS_MAX)
		return cj_reject_as(err, EBUSY, "the session has %d workers already",
				    KEEPER_WORKERS_MAX);
	struct keeper_child *c = &k->children[i];
	*c = (struct keeper_child){
		.request = *r, .pidfd = -1, .slot = SESSION_NO_SLOT, .number = NO_NUMBER
	};
	if (has_cell)
		k->waiting = c;
	if (r->kind == KEEPER_WORKER_EXEC) {
		for (c->number = 0; has_number(k, c->number);)
			c->number++;
		if (session_exec_reserve(k->session, c->request.id, &c->slot, err) < 0)
			return -err->code;
		if (fork_worker(k, c, err) < 0) {
			session_exec_done(k->session, c->slot);
			return -err->code;
		}
	}
	if ((r->kind == KEEPER_WORKER_FILE || r->kind == KEEPER_WORKER_WRITE) &&
	    fork_worker(k, c, err) < 0)
		return -err->code;
	*r = (struct keeper_request)KEEPER_REQUEST_NULL;
	return 0;
}

enum interpreter_state keeper_interpreter_state(const struct keeper *k)
{
	return k->interpreter ? k->interpreter->state : INTERPRETER_ENDED;
}

static void fail_start(struct keeper *k, const struct cj_error *why)
{
	k->no_start = *why;
	cj_stage(&k->no_start, "session");
	k->is_wanted = false;
	session_interpreter_end(&k->interpreter);
}

/*
 * One that ended while it loaded its modules is a failure of the next cell.  One that ended between
 * two cells, by a thread of its program, is replaced.
 */
static void look_at_interpreter(struct keeper *k)
{
	struct cj_error why = { 0 };
	bool was_starting = keeper_interpreter_state(k) == INTERPRETER_STARTS;

	if (!k->interpreter)
		return;
	session_interpreter_turn(k->interpreter, &why);
	if (keeper_interpreter_state(k) != INTERPRETER_ENDED)
		return;
	if (was_starting) {
		fail_start(k, &why);
		return;
	}
	session_interpreter_end(&k->interpreter);
	k->is_wanted = true;
}

static bool runs_cell(const struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_WORKERS_MAX; i++)
		if (k->children[i].pidfd >= 0 && is_cell(&k->children[i]))
			return true;
	return false;
}

static void end_cell(struct keeper *k, bool is_kept)
{
	k->no_start.code = 0;
	if (!k->interpreter)
		return;
	session_interpreter_end_cell(k->interpreter, is_kept);
	if (is_kept)
		return;
	session_interpreter_end(&k->interpreter);
	k->is_wanted = true;
}

static void start_cell(struct keeper *k)
{
	struct keeper_child *c = k->waiting;
	struct cj_error err = { 0 };

	k->waiting = NULL;
	k->is_quiet = false;
	if (k->interpreter) {
		c->slot = k->interpreter->slot;
		c->hold_until_ms = clock_ms() + SIGNALS_HOLD_MS;
		k->had_cell = true;
		session_interpreter_begin_cell(k->interpreter);
	} else {
		c->signals = 0; /* it has its result */
	}
	if (fork_worker(k, c, &err) < 0) {
		refuse(&c->request, &err);
		end_cell(k, true);
	}
}

void keeper_serve_interpreter(struct keeper *k)
{
	struct cj_error err = { 0 };

	if (!k->has_repl || k->is_ending)
		return;
	look_at_interpreter(k);
	if (runs_cell(k))
		return;
	drop_cancelled(k);
	if (!k->interpreter && k->no_start.code == 0 && (k->is_wanted || k->waiting) &&
	    session_interpreter_start(k->session, &k->launcher, k->had_cell, &k->interpreter,
				      &err) < 0)
		fail_start(k, &err);
	if (k->waiting &&
	    (k->no_start.code != 0 || keeper_interpreter_state(k) == INTERPRETER_WAITS))
		start_cell(k);
}

void keeper_end_children(struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_WORKERS_MAX; i++) {
		if (k->children[i].pidfd < 0 || k->fds[SOURCE_CHILDREN + i].revents == 0)
			continue;
		/* Its last line is in its socket; only the kernel still knows it. */
		struct keeper_child *c = &k->children[i];
		siginfo_t how = { 0 }; /* the server sees a worker that died: it sends no result */
		(void)waitid(P_PIDFD, (id_t)c->pidfd, &how, WEXITED | WNOHANG);
		cj_close(&c->pidfd);
		if (is_cell(c))
			end_cell(k, how.si_code == CLD_EXITED && how.si_status == EXIT_SUCCESS);
		else if (c->slot != SESSION_NO_SLOT && k->session)
			session_exec_done(k->session, c->slot);
		k->is_quiet = false;
		if (!keeper_has_children(k, false))
			k->status_ms = clock_earlier(k->status_ms, clock_ms() + KEEPER_SETTLE_MS);
	}
}

/* ESRCH: its program does not run yet, or has ended, and then its worker ends soon, too. */
static void deliver(struct keeper *k, struct keeper_child *c)
{
	const bool runs_code = k->interpreter && session_interpreter_runs_code(k->interpreter);
	const bool is_held = is_cell(c) && !runs_code && clock_ms() < c->hold_until_ms;

	for (int signo = 1; c->signals != 0 && signo < NSIG; signo++) {
		struct cj_error err = { 0 };
		const uint64_t bit = keeper_signal_bit(signo);
		if ((c->signals & bit) == 0 || (is_held && signo != SIGKILL))
			continue;
		if (session_exec_signal(k->session, c->slot, signo, &err) == 0 || err.code != ESRCH)
			c->signals &= ~bit;
	}
}

static void add_signal(struct keeper *k, const struct keeper_request *r)
{
	struct keeper_child *c = find_child(k, r->id);

	if (!c && r->signo == SIGKILL)
		(void)session_exec_kill_left(k->session, r->id); /* its background processes */
	if (!c || (c->slot == SESSION_NO_SLOT && c != k->waiting))
		return; /* it has ended meanwhile */
	if (c->signals == 0)
		c->hold_until_ms = clock_ms() + SIGNALS_HOLD_MS;
	c->signals = keeper_signals_join(c->signals, keeper_signal_bit(r->signo));
	if (c != k->waiting)
		deliver(k, c);
}

void keeper_deliver_signals(struct keeper *k)
{
	for (size_t i = 0; k->session && i < KEEPER_WORKERS_MAX; i++)
		if (k->children[i].pidfd >= 0)
			deliver(k, &k->children[i]);
}

/* A server that does not read its lines is about to end the session: send_status(). */
static void change_network(struct keeper *k, struct keeper_request *r)
{
	auto_arena struct arena a = { 0 };
	struct network_lists lists;
	struct cj_error err = { 0 }, ignored;

	if (!k->session)
		cj_refuse_as(&err, ECANCELED, "the session has ended");
	else if (keeper_read_network(r, &a, &lists, &err) == 0)
		(void)!session_change_network(k->session, &lists, &err);
	keeper_request_fini(r);
	(void)!keeper_line_send_network(k->work->sock_fd, &err, &ignored);
}

void keeper_carry_out(struct keeper *k, struct keeper_request *r)
{
	struct cj_error err = { 0 };

	k->is_quiet = false;
	if (r->kind == KEEPER_SIGNAL)
		add_signal(k, r);
	else if (r->kind == KEEPER_NETWORK)
		change_network(k, r);
	else if (add_worker(k, r, &err) < 0)
		refuse(r, &err);
}
