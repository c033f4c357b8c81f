/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter of a session, in the keeper and in the workers of its cells. */
#include "runtime/session/repl/session_interpreter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/files/sha256.h"
#include "runtime/base/scope.h"
#include "runtime/jail/jail.h"
#include "runtime/jail/jail_state.h"
#include "runtime/session/session_state.h"
#include "runtime/session/session.h"
#include "runtime/jail/supervise/start.h"

#define NO_SLOT SESSION_EXECS_MAX

/* What it waits for in INTERPRETER_STARTS. */
enum start_step { START_REAPER, START_EXECVE, START_READY };

struct session_interpreter {
	struct session *session; /* borrowed */
	struct program program;  /* the launcher's, without its script */
	const char *script;      /* borrowed */
	unsigned slot;
	struct jail *view; /* NULL before its reaper has started */
	int channel_fd;    /* the near end, non-blocking */
	enum interpreter_state state;
	enum start_step step;
	uint32_t cells;     /* begun so far */
	bool is_new;        /* it has replaced another one */
	uint64_t at_ms;     /* on clock_ms(): it must be ready then */
	struct arena arena; /* of the reader */
	struct repl_reader reader;
};

/* --- the keeper ---------------------------------------------------------------------------- */

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
	auto_fd int far_fd = -1;
	char id[PLAN_ID_MAX];
	if (plan_mint_id(id, err) < 0 || open_channel(i, &far_fd, err) < 0 ||
	    session_exec_open(i->session, i->slot, id, &i->view, err) < 0)
		return -err->code;
	const struct jail_io io = { .stdin_fd = -1,
				    .stdout_fd = -1,
				    .stderr_fd = -1,
				    .tty_fd = -1,
				    .hangup_fd = -1,
				    .channel_fd = far_fd };
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
	i->slot = NO_SLOT;
	i->channel_fd = -1;
	i->at_ms = clock_ms() + INTERPRETER_START_MS;
	repl_reader_init(&i->reader, &i->arena, NULL);
	if (session_exec_reserve(s, &i->slot, err) < 0) {
		session_interpreter_end(&i);
		return cj_wrap(err, "the session's interpreter");
	}
	s->tidy_at_ms = 0; /* no spare reaper: cells need none */
	*out = i;
	return 0;
}

enum interpreter_state session_interpreter_state(const struct session_interpreter *i)
{
	return i->state;
}

unsigned session_interpreter_slot(const struct session_interpreter *i)
{
	return i->slot;
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

uint64_t session_interpreter_at_ms(const struct session_interpreter *i)
{
	return i->state == INTERPRETER_STARTS ? i->at_ms : UINT64_MAX;
}

static void change_state(struct session_interpreter *i, enum interpreter_state state)
{
	i->state = state;
	i->session->slots[i->slot].state = state == INTERPRETER_WAITS ? SLOT_BETWEEN_CELLS
								      : SLOT_RUNNING;
}

static int fail_to_start(struct session_interpreter *i, struct cj_error *err)
{
	i->state = INTERPRETER_ENDED;
	if (i->view)
		start_take_last_line(i->view, err);
	const struct cj_error why = *err;
	if (why.hint[0]) /* the log of the service has no hints */
		cj_refuse_as(err, why.code, "%.300s; %s", why.msg, why.hint);
	return cj_wrap(err, "the session's interpreter");
}

/* Its reaper's message, or its end. */
static bool has_message(const struct session_interpreter *i)
{
	return fd_await(link_of(i), POLLIN, 0);
}

/* Reads 'R', which is the first that a REPL of ours sends. */
static int read_ready(struct session_interpreter *i, struct cj_error *err)
{
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

/* Takes what has come.  A message of the reaper is whole, so to read it does not block. */
static int go_on(struct session_interpreter *i, struct cj_error *err)
{
	if (i->step == START_READY)
		return read_ready(i, err);
	if (!has_message(i))
		return 0;
	int rc = i->step == START_REAPER ? send_program(i, err) : take_started(i, err);
	i->step++;
	return rc;
}

static int turn_start(struct session_interpreter *i, struct cj_error *err)
{
	if (go_on(i, err) < 0)
		return -err->code;
	if (i->state == INTERPRETER_STARTS && clock_ms() >= i->at_ms)
		return cj_fail(err, ETIMEDOUT, "wait until it is ready");
	return 0;
}

void session_interpreter_turn(struct session_interpreter *i, struct cj_error *err)
{
	if (i->state == INTERPRETER_STARTS && turn_start(i, err) < 0)
		(void)!fail_to_start(i, err);
	else if (i->state == INTERPRETER_WAITS && (has_message(i) || fd_await(i->channel_fd, 0, 0)))
		i->state = INTERPRETER_ENDED; /* its reaper may not have said so yet */
}

size_t session_interpreter_own(const struct session_interpreter *i, int out[INTERPRETER_OWN])
{
	const struct relay *relays = i->view->run.relays;
	size_t count = 0;
	out[count++] = i->channel_fd;
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
	jail_destroy(&old->view);
	if (old->slot != NO_SLOT)
		session_exec_done(old->session, old->slot);
	arena_fini(&old->arena);
	free(old);
	*i = NULL;
}

/* --- the worker of a cell ------------------------------------------------------------------ */

struct jail *session_interpreter_jail(struct session_interpreter *i)
{
	return i->view;
}

static bool has_same_env(const struct strings *a, const struct strings *b)
{
	if (a->count != b->count)
		return false;
	for (size_t k = 0; k < a->count; k++)
		if (strcmp(a->items[k], b->items[k]) != 0)
			return false;
	return true;
}

static int check_program(const struct session_interpreter *i, const struct program *p,
			 struct cj_error *err)
{
	if (p->code_source != CODE_STRING)
		return cj_reject(err, "a cell needs code");
	if (!has_same_env(&p->env, &i->program.env))
		return cj_reject(err, "the interpreter of a session keeps its environment: leave "
				      "out env, or set it in the code");
	if (strcmp(p->workdir, i->program.workdir) != 0)
		return cj_reject(err, "the interpreter of a session keeps its directory: leave out "
				      "workdir, or change it in the code");
	for (size_t k = 0; k < p->nfiles; k++)
		if (p->files[k].source)
			return cj_reject(err,
					 "a cell gets no files of the host: put '%s' into the "
					 "session first",
					 p->files[k].target);
	return 0;
}

/* The arguments behind the code's file. */
static struct strings arguments_of(const struct program *p)
{
	size_t at = 0;
	while (at < p->argv.count && strcmp(p->argv.items[at], p->code_path) != 0)
		at++;
	at += at < p->argv.count;
	return (struct strings){ p->argv.items + at, p->argv.count - at };
}

#define ARGS_JSON_PATH "/box/args.json"

static struct cell_file *files_of(const struct program *p, struct arena *a, size_t *out_count)
{
	struct cell_file *files = arena_array(a, p->nfiles + 1, sizeof(*files));
	if (!files)
		return NULL;
	for (size_t k = 0; k < p->nfiles; k++)
		files[k] = (struct cell_file){ p->files[k].target, p->files[k].bytes,
					       p->files[k].size, p->files[k].is_executable };
	*out_count = p->nfiles;
	if (p->args_json)
		files[(*out_count)++] =
		    (struct cell_file){ ARGS_JSON_PATH, p->args_json, strlen(p->args_json) };
	return files;
}

static int write_request(const struct session_interpreter *i, const struct program *p,
			 struct blob input, struct session_cell *cell, struct cj_error *err)
{
	const struct strings args = arguments_of(p);
	struct cell_request request = { .number = i->cells,
					.code = p->code_text,
					.code_size = p->code_size,
					.args = (const char *const *)args.items,
					.nargs = args.count,
					.input = input.bytes,
					.input_size = input.size };
	request.files = files_of(p, &cell->arena, &request.nfiles);
	cell->request = request.files ? repl_request_write(&request, &cell->size) : NULL;
	return cell->request ? 0 : cj_fail(err, ENOMEM, "gather the cell");
}

static void hash_code(struct jail *j, const struct program *p)
{
	struct sha256 hash;
	sha256_init(&hash);
	sha256_update(&hash, p->code_text, p->code_size);
	sha256_final(&hash, j->run.code_sha256);
}

int session_cell_start(struct session_interpreter *i, const struct program *program,
		       const struct jail_io *io, struct blob input, struct session_cell *cell,
		       struct cj_error *err)
{
	*cell = SESSION_CELL_NULL;
	if (check_program(i, program, err) < 0 || write_request(i, program, input, cell, err) < 0) {
		session_cell_fini(cell);
		return cj_stage(err, "options");
	}
	cell->channel_fd = i->channel_fd;
	cell->outcome.number = i->cells;
	cell->outcome.is_new = i->is_new && i->cells == 1;
	repl_reader_init(&cell->reader, &cell->arena, &cell->outcome);
	hash_code(i->view, program);
	session_exec_begin_cell(i->view);
	start_cell(i->view, cell, &session_cell_ops, program, io);
	return 0;
}
