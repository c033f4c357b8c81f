/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls - the calls of a program to the tools of its caller: cejail-tools(7).
 *
 * The supervisor stands between two stream sockets.  Both carry lines of JSON.
 *
 *	program                         supervisor                     caller
 *	{"id":"a","name":"search",
 *	 "arguments":{...}} ----------> validates, counts
 *	                                {"id":7,"name":"search",
 *	                                 "arguments":{...}} ---------->
 *	                                         <--------- {"id":7,"result":...}
 *	         <----- {"id":"a","result":...}
 *
 * Every byte of the program is hostile.  The caller sees only numbers that the supervisor counts,
 * names of the program's list, and arguments that are one JSON object on one line.  Memory and
 * time of each step are bounded:
 *
 *	a line of the program        CALL_LINE_MAX, and what json.h allows
 *	calls                        run_limits.calls; further ones are refused
 *	calls without an answer      run_limits.calls_outstanding; the next line is not read
 *	calls a second               run_limits.calls_per_second; the next line is not read
 *	answers that it does not read  CALL_UNREAD_MAX; then no line is read on either side
 *
 * An answer reaches the program and nothing else: no text of it is in the result.
 */
#pragma once

#include <poll.h>

#include "runtime/base/error.h"
#include "runtime/jail/jail.h"

#define CALL_LINE_MAX   (1u << 20)  /* of the program, with its newline */
#define CALL_ANSWER_MAX (16u << 20) /* of the caller */
#define CALL_UNREAD_MAX CALL_ANSWER_MAX

struct calls;
struct outcome;

/* The near end of the program's socket is `program_fd`, which *out owns from here on; borrows the
 * rest.  A program without tools: each call is refused.  Fails: ENOMEM; program_fd is closed then,
 * too. */
int calls_create(int program_fd, const struct program *program, const struct jail_io *io,
		 struct calls **out, struct cj_error *err);
void calls_destroy(struct calls **c);

/* NULL for the following: the program has no tools. */

/* For poll(2); fd -1: it is not watched now. */
#define CALLS_FDS 2
void calls_watch(struct calls *c, struct pollfd out[CALLS_FDS]);
/* Reads, validates and passes on what is there.  Never waits.  seen: what poll(2) has reported, so
 * that a socket which has nothing is not read; NULL: unknown. */
void calls_serve(struct calls *c, const struct pollfd seen[CALLS_FDS]);
/* On clock_ms(): the time of the next calls_look_at_clock(); 0: none. */
uint64_t calls_at_ms(const struct calls *c);
void calls_look_at_clock(struct calls *c, uint64_t now_ms);

/*
 * calls_end - the program has ended: cancels what has no answer, and writes the counts into *out.
 * keeps_socket: the program's process goes on (the cell of a session).
 */
void calls_end(struct calls *c, bool keeps_socket, struct outcome *out);
/* The process that goes on has no socket any more, though it has not closed it. */
bool calls_are_cut(const struct calls *c);
