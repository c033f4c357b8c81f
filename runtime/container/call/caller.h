/* SPDX-License-Identifier: Apache-2.0 */
/* caller - what create, run and exec do for their caller: a pid file, waiting in the foreground. */
#pragma once

#include "runtime/base/error.h"

/*
 * caller_write_pid - `path` is relative to the caller's working directory.
 *
 * The file gets its name when it is whole, by rename(2): a reader never sees a part of it.  What
 * had the name before is replaced.
 */
int caller_write_pid(const char *path, pid_t pid, struct cj_error *err);

/* --- run and exec without --detach ------------------------------------------------------------ */

/* Blocks the signals that are passed on.  Before the fork: one that comes early waits.  What is
 * forked unblocks them. */
int caller_block_signals(struct cj_error *err);

/* What the caller does while it waits. */
struct caller_wait_calls {
	void (*await)(void *context, int fd); /* returns when the descriptor is readable */
	void (*before_reap)(void *context);   /* until it returns, the status can be read */
	void *context;
};

/*
 * caller_wait - until the child `pid` ends.
 *
 * `calls` may be NULL.  *out_status is the program's as a shell has it: 128 and the signal's number
 * where one ended it.
 */
int caller_wait(pid_t pid, const struct caller_wait_calls *calls, int *out_status,
		struct cj_error *err);
