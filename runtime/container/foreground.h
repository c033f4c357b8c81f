/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreground - run and exec without --detach: wait for the program, and pass signals on to it.
 */
#pragma once

#include <sys/types.h>

#include "runtime/base/error.h"

/* Blocks the signals that are passed on.  Before the fork: one that comes early waits.  What is
 * forked unblocks them. */
int foreground_prepare(struct cj_error *err);

/* What the caller does while it waits. */
struct foreground_calls {
	void (*await)(void *context, int fd); /* returns when the descriptor is readable */
	void (*before_reap)(void *context);   /* until it returns, the status can be read */
	void *context;
};

/*
 * foreground_wait - until the child `pid` ends.
 *
 * `calls` may be NULL.  *out_status is the program's as a shell has it: 128 and the signal's number
 * where one ended it.
 */
int foreground_wait(pid_t pid, const struct foreground_calls *calls, int *out_status,
		    struct cj_error *err);
