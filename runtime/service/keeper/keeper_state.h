/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper_state - what a keeper holds, and its workers: one for each exec, one for each operation on
 * a file.  The internal header of this folder.
 */
#pragma once

#include <poll.h>

#include "runtime/service/keeper/keeper_channel.h"
#include "runtime/service/worker/work.h"
#include "runtime/session/repl/session_interpreter.h"

#define KEEPER_SIGNALS_MS 20 /* between attempts to deliver signals */

/* A worker of this keeper, or a cell that waits for its own. */
struct keeper_child {
	struct keeper_request request; /* its descriptors are open while it waits */
	int pidfd;                     /* -1: there is no process */
	unsigned slot;                 /* of an exec; of a cell that of the interpreter */
	unsigned number;               /* of an exec (work.h) */
	uint64_t signals;              /* not delivered yet; bit N-1: signal N */
	uint64_t hold_until_ms;        /* on clock_ms(): signals are no longer held for a cell */
};

enum keeper_source {
	SOURCE_SERVER,
	SOURCE_CONTROL,
	SOURCE_SIGNALS,
	SOURCE_INTERPRETER,
	SOURCE_CHILDREN = SOURCE_INTERPRETER + INTERPRETER_FDS
};
#define SOURCE_COUNT (SOURCE_CHILDREN + KEEPER_WORKERS_MAX)

struct keeper {
	struct work *work;
	int signal_fd;
	struct session *session; /* NULL: not begun, or finished */
	struct keeper_child children[KEEPER_WORKERS_MAX];
	struct keeper_child *waiting; /* a cell, which has no process yet; NULL: none */
	struct pollfd fds[SOURCE_COUNT];

	bool has_repl; /* its context is "repl" */
	struct program launcher;
	struct session_interpreter *interpreter; /* NULL: none now */
	bool is_wanted;           /* start an interpreter though no cell waits for it */
	bool had_cell;            /* the next interpreter replaces one that had cells */
	struct cj_error no_start; /* why the last start failed; code 0: it did not */

	bool is_ending;
	uint64_t end_ms; /* workers are killed then */
	enum session_end reason;
	struct cj_error why; /* of a reason but SESSION_CLOSED */
	uint64_t status_ms;  /* when the next line may be sent */
	bool is_quiet;       /* nothing has happened since the last line */
};

/* --- keeper_children.c ------------------------------------------------------------------- */

/* Some worker lives; without `with_files`, one of an exec or a cell. */
bool keeper_has_children(const struct keeper *k, bool with_files);
/* Refuses the cell that waits. */
void keeper_refuse_waiting(struct keeper *k, const char *why);
/* Forks the worker of a request, holds it, refuses it, or delivers its signal.  Takes *r. */
void keeper_carry_out(struct keeper *k, struct keeper_request *r);
enum interpreter_state keeper_interpreter_state(const struct keeper *k);
/* After each poll(2): an interpreter that is wanted starts, the next cell begins. */
void keeper_serve_interpreter(struct keeper *k);
/* After each poll(2): takes the ends of workers. */
void keeper_end_children(struct keeper *k);
void keeper_deliver_signals(struct keeper *k);

/* --- keeper_worker.c --------------------------------------------------------------------- */

/*
 * keeper_worker_main - the life of a worker.
 *
 * An exec worker is the worker of a run (work.h), on a view of the session's jail; a cell without
 * an interpreter has the result k->no_start.  Exits with a failure when the interpreter is lost.
 * A worker for files sends the lines of a struct file_answer.
 * Runs in: a fork of the keeper, from its first instruction.
 */
_Noreturn void keeper_worker_main(const struct keeper *k, const struct keeper_child *c,
				  pid_t keeper_pid);
