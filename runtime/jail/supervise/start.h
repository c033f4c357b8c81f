/* SPDX-License-Identifier: Apache-2.0 */
/* start - the parts of jail_warm() and jail_start(): jail.h has their contracts. */
#pragma once

#include "runtime/base/error.h"
#include "runtime/jail/jail.h"
#include "runtime/jail/protocol.h"

struct cell_ops;
struct jail;
struct program;
struct session_cell;

/*
 * jail_start() in two parts, for a caller that must not wait: start_await() does not block when
 * the link to init is readable.
 */
int start_send(struct jail *j, const struct program *program, const struct jail_io *io,
	       struct cj_error *err);
int start_await(struct jail *j, struct cj_error *err);
/* The sockets for the calls of a program. */
int start_open_calls(int *out_near_fd, int *out_far_fd, struct cj_error *err);
/* The program's terminal, if it has one, gets the size of the caller's. */
void start_resize_terminal(const struct jail *j);
/* The last line that an interpreter printed, as a hint of why it failed. */
void start_take_last_line(struct jail *j, struct cj_error *err);
/* session_cell_start(): the interpreter runs already, and `cell` has what it is to be sent.  Takes
 * *calls_fd, the near end of the interpreter's socket for calls. */
int start_cell(struct jail *j, struct session_cell *cell, const struct cell_ops *ops, int *calls_fd,
	       const struct program *program, const struct jail_io *io, struct cj_error *err);

/* --- for start.c: handover.c and adopt.c ------------------------------------------------------ */

/* Sends the code, the arguments file and the copied files. */
int handover_inputs(struct jail *j, struct cj_error *err);

/* `step`: STEP_START for the program, STEP_WARM for a launcher.  calls_fd: the far end of the
 * socket for its calls; -1: it can make none. */
int handover_start(struct jail *j, enum step step, const struct program *p, const int stdio[3],
		   int calls_fd, struct cj_error *err);

/* Sends the program to the waiting launcher.  Fails: EINVAL when its command does not match. */
int handover_go(struct jail *j, struct cj_error *err);

/*
 * adopt_launcher - bring a fork of a zygote into a sealed jail, as its launcher, whose is `stdio`.
 *
 * The order of steps is in zygote/zygote.h.
 * On success the fork is sealed, as /proc says of it, and its calls are notified to j->watch; init
 * waits for its byte.  Borrows every descriptor.
 */
int adopt_launcher(struct jail *j, int zygote_fd, const int stdio[3], int calls_fd,
		   struct cj_error *err);
