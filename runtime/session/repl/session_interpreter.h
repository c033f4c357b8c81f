/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_interpreter - the interpreter of a session with the context "repl".
 *
 * The keeper starts it as the program of an exec that it holds itself, with a socket as descriptor
 * 3 (repl_channel.h).  For each cell it forks an exec worker, which is the supervisor of the
 * interpreter until the cell has ended:
 *
 *	keeper                                   exec worker
 *	session_interpreter_start()
 *	session_interpreter_turn() ... ready
 *	session_interpreter_begin_cell()
 *	fork() --------------------------------> session_cell_start(), jail_wait(),
 *	session_serve() ...                      _exit(0), or 1 if its cell has not ended
 *	session_interpreter_end_cell()
 *
 * When a cell has ended the interpreter, or its worker was killed, session_interpreter_end()
 * releases it; then another one may be started.  A worker that ends without jail_wait() leaves its
 * cell to session_interpreter_end(), too: nobody can say what the interpreter does.
 */
#pragma once

#include <poll.h>

#include "profiles/plan/plan.h"
#include "runtime/base/error.h"
#include "runtime/base/json/json_record.h"
#include "runtime/jail/jail.h"
#include "runtime/session/repl/repl_channel.h"
#include "runtime/session/session.h"

enum interpreter_state {
	INTERPRETER_STARTS, /* its reaper does, or it loads its modules */
	INTERPRETER_WAITS,  /* for a cell */
	INTERPRETER_RUNS,   /* a worker has it */
	INTERPRETER_ENDED,
};

/* Others than session_interpreter.c read it only. */
struct session_interpreter {
	struct session *session; /* borrowed */
	struct program program;  /* the launcher's, without its script */
	const char *script;      /* borrowed */
	unsigned slot;           /* of the exec, for session_exec_signal() */
	struct jail *view; /* for jail_wait(), as of an exec; NULL before its reaper started */
	int channel_fd;    /* the near end, non-blocking */
	int calls_fd;      /* the near end of the socket for its cells' calls */
	enum interpreter_state state;
	/* What it waits for in INTERPRETER_STARTS. */
	enum { START_REAPER, START_EXECVE, START_READY } step;
	uint32_t cells;     /* begun so far */
	bool is_new;        /* it has replaced another one */
	uint64_t at_ms;     /* on clock_ms(): it must be ready then */
	struct arena arena; /* of the reader */
	struct repl_reader reader;
};

/* How long it may take until it waits, with the profile's modules. */
#define INTERPRETER_START_MS 60000

/*
 * session_interpreter_start - start `launcher` (plan_repl(); borrowed).
 * Waits for nothing: session_interpreter_turn() goes on.  is_new: it replaces another one, and its
 * first cell says so.
 * Fails: as session_exec_reserve().
 */
int session_interpreter_start(struct session *s, const struct program *launcher, bool is_new,
			      struct session_interpreter **out, struct cj_error *err);

/* For the keeper's poll(2); both -1 while a worker has it. */
#define INTERPRETER_FDS 2
void session_interpreter_watch(const struct session_interpreter *i,
			       struct pollfd out[INTERPRETER_FDS]);
/*
 * After poll(2): it may be ready now, or have ended; *err says why it could not start, as
 * session_exec_open() and jail_start() do; ENOENT, EACCES when it can't be executed.  Never blocks.
 */
void session_interpreter_turn(struct session_interpreter *i, struct cj_error *err);

/*
 * The interpreter said that the code of this cell runs, so that a signal reaches the cell.  What it
 * says is untrusted: it may say so at any time or never.
 */
bool session_interpreter_runs_code(const struct session_interpreter *i);

/* Before the worker is forked, and after it has ended. */
void session_interpreter_begin_cell(struct session_interpreter *i);
void session_interpreter_end_cell(struct session_interpreter *i, bool lives);

/* Kills what is left of it. */
void session_interpreter_end(struct session_interpreter **i);

/* The descriptors that a worker of a cell needs, for session_fork_keep(); returns how many. */
#define INTERPRETER_OWN 5
size_t session_interpreter_own(const struct session_interpreter *i, int out[INTERPRETER_OWN]);

/* --- session_cell.c ------------------------------------------------------------------------- */

/*
 * One cell, for supervisor.c.
 *
 * A cell is an exec whose main process runs already and goes on after it.  The supervisor watches
 * it as any program, and the channel beside it: there the interpreter says that the cell has ended.
 * Whatever else ends a cell (its time limit, its caller, its output limit) first sends SIGINT to
 * the interpreter, which has INTERRUPT_MS to end the cell; else its processes are killed.
 * After half of that time SIGINT is sent once more.
 */
struct session_cell {
	int channel_fd;   /* borrowed, non-blocking; -1: its end was reached */
	uint8_t *request; /* malloc'ed, for its worker's life; what is left is [sent, size) */
	size_t sent, size;
	struct arena arena; /* of the data that came */
	struct repl_reader reader;
	struct cell_outcome outcome;
	bool has_ended; /* the interpreter said so: it waits for the next cell */
};

#define SESSION_CELL_NULL                                                                          \
	(struct session_cell)                                                                      \
	{                                                                                          \
		.channel_fd = -1                                                                   \
	}

/*
 * session_cell_start - hand the interpreter its cell: the program's code, arguments and files.
 * Runs in: the worker of a cell.  It calls nothing of the session, so that a program that only
 * runs jails has no session's code.
 *
 * `input`: the cell's whole standard input; bytes NULL: none.  *cell must live until jail_wait()
 * has returned; its outcome is then that of the cell.
 * Fails: EINVAL for what a running interpreter can't be given: a command, another environment or
 * directory, files of the host.
 */
int session_cell_start(struct session_interpreter *i, const struct program *program,
		       const struct jail_io *io, struct blob input, struct session_cell *cell,
		       struct cj_error *err);
