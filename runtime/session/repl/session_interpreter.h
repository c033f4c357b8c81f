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
 *	session_serve() ...                      _exit(cell.has_ended ? 0 : 1)
 *	session_interpreter_end_cell()
 *
 * When a cell has ended the interpreter, or its worker was killed, session_interpreter_end()
 * releases it; then another one may be started.  A worker that ends without jail_wait() leaves its
 * cell to session_interpreter_end(), too: nobody can say what the interpreter does.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "profiles/plan/plan.h"
#include "runtime/base/error.h"
#include "runtime/base/json/json_record.h"
#include "runtime/jail/jail.h"
#include "runtime/session/repl/session_cell.h"

struct jail;
struct session;
struct session_interpreter;

enum interpreter_state {
	INTERPRETER_STARTS, /* its reaper does, or it loads its modules */
	INTERPRETER_WAITS,  /* for a cell */
	INTERPRETER_RUNS,   /* a worker has it */
	INTERPRETER_ENDED,
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

enum interpreter_state session_interpreter_state(const struct session_interpreter *i);

/* The session's number of the exec, for session_exec_signal(). */
unsigned session_interpreter_slot(const struct session_interpreter *i);

/* For the keeper's poll(2); both -1 while a worker has it. */
#define INTERPRETER_FDS 2
void session_interpreter_watch(const struct session_interpreter *i,
			       struct pollfd out[INTERPRETER_FDS]);
/* On clock_ms(), when session_interpreter_turn() has something to do; UINT64_MAX: never. */
uint64_t session_interpreter_at_ms(const struct session_interpreter *i);
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
#define INTERPRETER_OWN 4
size_t session_interpreter_own(const struct session_interpreter *i, int out[INTERPRETER_OWN]);

/* --- the worker of a cell ------------------------------------------------------------------ */

/* The jail for jail_wait(), as of an exec; do not destroy it. */
struct jail *session_interpreter_jail(struct session_interpreter *i);

/*
 * session_cell_start - hand the interpreter its cell: the program's code, arguments and files.
 *
 * `input`: the cell's whole standard input; bytes NULL: none.  *cell must live until jail_wait()
 * has returned; its outcome is then that of the cell.
 * Fails: EINVAL for what a running interpreter can't be given: a command, another environment or
 * directory, files of the host.
 */
int session_cell_start(struct session_interpreter *i, const struct program *program,
		       const struct jail_io *io, struct blob input, struct session_cell *cell,
		       struct cj_error *err);
