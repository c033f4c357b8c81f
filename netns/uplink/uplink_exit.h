/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uplink_exit - how a helper ended, and what it said last, as one line of a message.  Pure.
 *
 * It reads what the jail sends and has its keeper's uid: nothing in here is trusted.
 */
#pragma once

#include <stddef.h>

#define WORDS_TAIL_MAX 512

struct last_words {
	int code, status; /* as in siginfo_t: CLD_EXITED and the exit status, CLD_KILLED and ... */
	size_t size;
	char tail[WORDS_TAIL_MAX]; /* the end of its standard error */
};

/* Appends, and forgets the oldest. */
void words_add(struct last_words *w, const char *bytes, size_t size);

/* "exit status 1: 'the last line that says something'"; printable. */
void words_format(const struct last_words *w, char *out, size_t size);
