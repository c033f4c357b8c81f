/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper_repl - the cells of a session with the context "repl": which one is next, and in which
 * interpreter.
 *
 * The keeper has one interpreter, which starts in the background.  A cell waits until it is ready
 * and the worker of the cell before it has ended.  Only one can wait: the queue is the server's
 * (cell_gate, sessions.h).  When a cell has ended its interpreter, another one starts at once.
 * When none can be started, the next cell has the reason as its result, and the cell after it
 * makes another attempt.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/service/keeper/keeper_channel.h"
#include "runtime/service/worker/work.h"
#include "runtime/session/repl/session_interpreter.h"
#include "runtime/session/session.h"

struct keeper_repl;

/*
 * keeper_repl_create - find the profile's interpreter; starts nothing.
 * Fails: EINVAL with the stage "options" where the profile has none.
 */
int keeper_repl_create(struct work *keeper, struct session *s, struct keeper_repl **out,
		       struct cj_error *err);
/* Ends the interpreter, and refuses the cell that waits. */
void keeper_repl_destroy(struct keeper_repl **r);

/* The session ends: refuses the cell that waits.  r may be NULL. */
void keeper_repl_refuse(struct keeper_repl *r);

/* Takes the request's descriptors.  Fails: EBUSY when one waits that is not cancelled. */
int keeper_repl_add(struct keeper_repl *r, struct keeper_request *request, struct cj_error *err);

/* For the cell that waits.  False: this one does not wait. */
bool keeper_repl_add_signals(struct keeper_repl *r, const char *id, uint64_t signals);
/* As session_interpreter_runs_code(). */
bool keeper_repl_runs_code(const struct keeper_repl *r);

void keeper_repl_watch(const struct keeper_repl *r, struct pollfd out[INTERPRETER_FDS]);
/* On clock_ms(), when keeper_repl_turn() has something to do without an event. */
uint64_t keeper_repl_at_ms(const struct keeper_repl *r);

/* What the worker of the next cell gets. */
struct repl_cell {
	struct keeper_request request;           /* the receiver's */
	struct session_interpreter *interpreter; /* borrowed */
	const struct cj_error *early;            /* why there is none, or NULL */
	unsigned slot;                           /* for session_exec_signal() */
	uint64_t signals;                        /* came while it waited: bit N-1 is signal N */
};

/*
 * keeper_repl_prepare - before there are cells: starts the interpreter, also in the place of one
 * that has ended.
 * Returns 1: it waits; 0: not yet.  Fails: it can't be started; the next call tries again.
 */
int keeper_repl_prepare(struct keeper_repl *r, struct cj_error *err);

/*
 * keeper_repl_turn - after each poll(2): starts an interpreter where one is wanted.
 * True: a worker is to be forked for *out.  Call keeper_repl_end_cell() when it has ended, or if
 * it can't be forked.
 */
bool keeper_repl_turn(struct keeper_repl *r, struct repl_cell *out);
void keeper_repl_end_cell(struct keeper_repl *r, bool is_kept);

/* --- before the job comes -------------------------------------------------------------------- */

/*
 * keeper_repl_take_ahead - for TIER_REPL: begin a session in w->driver.jail, send "ready" when its
 * interpreter waits, read the job.
 *
 * An interpreter that ends meanwhile is replaced.  If the jail or the interpreter fails when the
 * job has come already, *session and *repl are NULL and w is as for TIER_COLD: the keeper makes a
 * new jail.
 * True: the job was read; *early says why it fails, if it does.  False: the server does not want
 * this session any more, SIGTERM came, or "unready" was sent.  The caller ends what is there.
 */
bool keeper_repl_take_ahead(struct work *w, int signal_fd, struct session **session,
			    struct keeper_repl **repl, struct cj_error *early);
