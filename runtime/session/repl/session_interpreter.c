/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter of a session, in the keeper and in the workers of its cells. */
#include "runtime/session/repl/session_interpreter.h"

#include <sys/socket.h>

#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/session/session_state.h"
#include "runtime/jail/supervise/start.h"

/* The whole script is in the socket before the interpreter starts, which reads it at once. */
static int open_channel(struct session_interpreter *i, int *out_far_fd, struct cj_error *err)
{
	int ends[2];
	const size_t size = strlen(i->script);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return cj_fail(err, errno, "create a socket pair for the interpreter");
	i->channel_fd = ends[0];
	*out_far_fd = ends[1];
	fd_set_nonblocking(i->channel_fd);
	if (send(i->channel_fd, i->script, size, MSG_NOSIGNAL) != (ssize_t)size)
		return cj_fail(err, EMSGSIZE, "hand the interpreter its script");
	return 0;
}

/* The reaper is there: it gets its program. */
static int send_program(struct session_interpreter *i, struct cj_error *err)
{
	auto_fd int far_fd = -1, calls_far_fd = -1;
	char id[PLAN_ID_MAX];
	if (plan_mint_id(id, err) < 0 || open_channel(i, &far_fd, err) < 0 ||
	    start_open_calls(&i->calls_fd, &calls_far_fd, err) < 0 ||
	    session_exec_open(i->session, i->slot, id, &i->view, err) < 0)
		return -err->code;
	const struct jail_io io = { .stdin_fd = -1,
				    .stdout_fd = -1,
				    .stderr_fd = -1,
				    .tty_fd = -1,
				    .hangup_fd = -1,
				    .channel_fd = far_fd,
				    .calls_far_fd = calls_far_fd };
	return start_send(i->view, &i->program, &io, err);
}

static int take_started(struct session_interpreter *i, struct cj_error *err)
{
	if (start_await(i->view, err) < 0)
		return -err->code;
	if (i->view->run.exec_errno != 0)
		return cj_fail(err, i->view->run.exec_errno, "execute '%s'",
			       i->program.argv.items[0]);
	return 0;
}

int session_interpreter_start(struct session *s, const struct program *launcher, bool is_new,
			      struct session_interpreter **out, struct cj_error *err)
{
	struct session_interpreter *i = calloc(1, sizeof(*i));
	if (!i)
		return cj_fail(err, ENOMEM, "start an interpreter");
	i->session = s;
	i->is_new = is_new;
	i->program = *launcher;
	i->script = launcher->script;
	i->program.script = NULL; /* init need not hand it over */
	i->slot = SESSION_NO_SLOT;
	i->channel_fd = i->calls_fd = -1;
	i->at_ms = clock_ms() + INTERPRETER_START_MS;
	repl_reader_init(&i->reader, &i->arena, NULL);
	if (session_exec_reserve(s, "", &i->slot, err) < 0) {
		session_interpreter_end(&i);
		return cj_wrap(err, "the session's interpreter");
	}
	s->tidy_at_ms = 0; /* no spare reaper: cells need none */
	*out = i;
	return 0;
}

/* The reaper's: its steps, and its end. */
static int link_of(const struct session_interpreter *i)
{
	return i->session->slots[i->slot].link_fd;
}

void session_interpreter_watch(const struct session_interpreter *i,
			       struct pollfd out[INTERPRETER_FDS])
{
	bool is_ours = i->state == INTERPRETER_STARTS || i->state == INTERPRETER_WAITS;
	const short events = i->state == INTERPRETER_STARTS ? POLLIN : 0; /* its end in any case */
	out[0] = (struct pollfd){ .fd = is_ours ? link_of(i) : -1, .events = POLLIN };
	out[1] = (struct pollfd){ .fd = is_ours && i->step == START_READY ? i->channel_fd : -1,
				  .events = events };
}

static void change_state(struct session_interpreter *i, enum interpreter_state state)
{
	i->state = state;
	i->session->slots[i->slot].state = state == INTERPRETER_WAITS ? SLOT_BETWEEN_CELLS
								      : SLOT_RUNNING;
}

/* Its reaper's message, or its end. */
static bool has_message(const struct session_interpreter *i)
{
	return fd_await(link_of(i), POLLIN, 0);
}

/* Takes what has come.  A message of the reaper is whole, so to read it does not block. */
static int go_on(struct session_interpreter *i, struct cj_error *err)
{
	if (i->step == START_READY) {
		/* Reads 'R', which is the first that a REPL of ours sends. */
		uint8_t bytes[16];
		ssize_t got = recv(i->channel_fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return has_message(i) ? cj_reject_as(err, ECHILD, "it ended") : 0;
		if (got <= 0)
			return cj_reject_as(err, ECHILD, "it ended before it was ready");
		int rc = repl_reader_take(&i->reader, bytes, (size_t)got, err);
		if (rc == REPL_READY)
			change_state(i, INTERPRETER_WAITS);
		return rc < 0 ? rc : 0;
	}
	if (!has_message(i))
		return 0;
	int rc = i->step == START_REAPER ? send_program(i, err) : take_started(i, err);
	i->step++;
	return rc;
}

void session_interpreter_turn(struct session_interpreter *i, struct cj_error *err)
{
	int rc = i->state == INTERPRETER_STARTS ? go_on(i, err) : 0;
	if (rc == 0 && i->state == INTERPRETER_STARTS && clock_ms() >= i->at_ms)
		rc = cj_fail(err, ETIMEDOUT, "wait until it is ready");
	if (rc < 0) {
		i->state = INTERPRETER_ENDED;
		if (i->view)
			start_take_last_line(i->view, err);
		const struct cj_error why = *err;
		if (why.hint[0]) /* the log of the service has no hints */
			cj_refuse_as(err, why.code, "%.300s; %s", why.msg, why.hint);
		(void)!cj_wrap(err, "the session's interpreter");
	} else if (i->state == INTERPRETER_WAITS &&
		   (has_message(i) || fd_await(i->channel_fd, 0, 0))) {
		i->state = INTERPRETER_ENDED; /* its reaper may not have said so yet */
	}
}

size_t session_interpreter_own(const struct session_interpreter *i, int out[INTERPRETER_OWN])
{
	const struct relay *relays = i->view->run.relays;
	size_t count = 0;
	out[count++] = i->channel_fd;
	out[count++] = i->calls_fd;
	out[count++] = i->view->init_pidfd;
	out[count++] = relays[RELAY_STDOUT].in_fd;
	out[count++] = relays[RELAY_STDERR].in_fd;
	return count;
}

bool session_interpreter_runs_code(const struct session_interpreter *i)
{
	const struct session_row *row = &i->session->shared->rows[i->slot];
	return i->state == INTERPRETER_RUNS && atomic_load(&row->cell) == i->cells;
}

void session_interpreter_begin_cell(struct session_interpreter *i)
{
	change_state(i, INTERPRETER_RUNS);
	i->cells++;
	session_packets_sync(i->session); /* what was denied between the cells */
	session_denied_restart(i->session, i->slot);
}

void session_interpreter_end_cell(struct session_interpreter *i, bool lives)
{
	change_state(i, lives ? INTERPRETER_WAITS : INTERPRETER_ENDED);
}

void session_interpreter_end(struct session_interpreter **i)
{
	struct session_interpreter *old = *i;
	if (!old)
		return;
	cj_close(&old->channel_fd);
	cj_close(&old->calls_fd);
	jail_destroy(&old->view);
	if (old->slot != SESSION_NO_SLOT)
		session_exec_done(old->session, old->slot);
	arena_fini(&old->arena);
	free(old);
	*i = NULL;
}
