/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_cell - one cell in the interpreter of a session, for supervisor.c.
 *
 * A cell is an exec whose main process runs already and goes on after it.  The supervisor watches
 * it as any program, and the channel beside it: there the interpreter says that the cell has ended.
 * Whatever else ends a cell (its time limit, its caller, its output limit) first sends SIGINT to
 * the interpreter, which has CELL_INTERRUPT_MS to end the cell; else its processes are killed.
 * After half of that time SIGINT is sent once more.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/session/repl/repl_channel.h"
#include "runtime/session/session_times.h"

struct jail;
struct outcome;

struct session_cell {
	int channel_fd;   /* borrowed, non-blocking; -1: its end was reached */
	uint8_t *request; /* what is left of it is [sent, size) */
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

/* In the supervisor; c NULL: the program is no cell. */

/* For poll(2): -1 when nothing more is to come; POLLIN, and POLLOUT while there is more to send. */
int session_cell_fd(const struct session_cell *c);
short session_cell_events(const struct session_cell *c);

/*
 * session_cell_serve - send and receive what is possible without blocking.
 *
 * Decides *out when the cell has ended, or when the channel has what no interpreter of ours sends:
 * the interpreter is killed then.
 */
void session_cell_serve(struct jail *j, struct outcome *out);

/*
 * session_cell_begin_end - what decided *out was not the end of the cell: interrupts it, if the
 * decision lets its interpreter live.  False: it does not, or this is no cell.
 */
bool session_cell_begin_end(const struct jail *j, const struct outcome *out);

/* Has the cell ended, so that its interpreter waits for the next one? */
bool session_cell_lives(const struct session_cell *c);

void session_cell_fini(struct session_cell *c);
#define auto_session_cell __attribute__((cleanup(session_cell_fini)))
