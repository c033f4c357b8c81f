/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uplink_exit - how a helper ended and the last line of its standard error, for a message.  Pure.
 *
 * The helper reads packets of the jail, so its output is untrusted.
 */
#pragma once

#include <stddef.h>

#define UPLINK_EXIT_TAIL_MAX 512

struct uplink_exit {
	int code, status; /* as in siginfo_t: CLD_EXITED and the exit status, CLD_KILLED and ... */
	size_t size;
	char tail[UPLINK_EXIT_TAIL_MAX]; /* the end of its standard error */
};

/* Appends output; drops the oldest when `tail` is full. */
void uplink_exit_add_output(struct uplink_exit *w, const char *bytes, size_t size);

/* "exit status 1: 'the last useful line'"; printable. */
void uplink_exit_format(const struct uplink_exit *w, char *out, size_t size);
