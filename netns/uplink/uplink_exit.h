/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uplink_exit - how a helper ended, and what it said last, as one line of a message.  Pure.
 *
 * It reads what the jail sends and has its keeper's uid: nothing in here is trusted.
 */
#pragma once

#include <stddef.h>

#define UPLINK_EXIT_TAIL_MAX 512

struct uplink_exit {
	int code, status; /* as in siginfo_t: CLD_EXITED and the exit status, CLD_KILLED and ... */
	size_t size;
	char tail[UPLINK_EXIT_TAIL_MAX]; /* the end of its standard error */
};

/* Appends, and forgets the oldest. */
void uplink_exit_add_output(struct uplink_exit *w, const char *bytes, size_t size);

/* "exit status 1: 'the last line that says something'"; printable. */
void uplink_exit_format(const struct uplink_exit *w, char *out, size_t size);
