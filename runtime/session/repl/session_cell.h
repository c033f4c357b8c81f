/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_cell - one cell in the interpreter of a session, for supervisor.c.
 *
 * A cell is an exec whose main process runs already and goes on after it.  The supervisor watches
 * it as any program, and the channel beside it: there the interpreter says that the cell has ended.
 * Whatever else ends a cell (its time limit, its caller, its output limit) first sends SIGINT to
 * the interpreter, which has INTERRUPT_MS to end the cell; else its processes are killed.
 * After half of that time SIGINT is sent once more.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/jail/jail_ops.h"
#include "runtime/session/repl/repl_channel.h"
#include "runtime/session/session.h"

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

/* For start_cell().  What no interpreter of ours sends ends the cell and its interpreter. */
extern const struct cell_ops session_cell_ops;

void session_cell_fini(struct session_cell *c);
#define auto_session_cell __attribute__((cleanup(session_cell_fini)))
