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

/*
 * foreground_wait - until the child `pid` ends.
 *
 * It is reaped after before_reap(context), which may be NULL: until then its status can be read.
 * *out_status is the program's as a shell has it: 128 and the signal's number where one ended it.
 */
int foreground_wait(pid_t pid, void (*before_reap)(const void *context), const void *context,
		    int *out_status, struct cj_error *err);
