/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_bytes - a step with bytes of any number: they stand behind its data where a message has room
 * for both, else in a sealed memfd, which is its first descriptor then.
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/step.h"

struct iovec;

/* What is sent: a step's data, then the parts one behind the other. */
struct step_bytes {
	const void *head;
	size_t head_size;
	const struct iovec *parts;
	size_t nparts;
};

/* step_tell() of both.  `name` is the memfd's.  Borrows all. */
int step_tell_bytes(const struct step_link *link, unsigned step, const struct step_bytes *bytes,
		    const char *name, const int *fds, size_t nfds, struct cj_error *err);

/*
 * step_take_bytes - the bytes behind `head_size` of data, at most `max`.
 *
 * They live in `a`, with a NUL behind them.  A memfd is closed and taken out of msg->fds.
 * Fails: EPROTO where the message has neither bytes nor a descriptor; EFBIG.
 */
int step_take_bytes(struct step_msg *msg, size_t head_size, size_t max, struct arena *a,
		    char **out_bytes, size_t *out_size, const char *what, struct cj_error *err);
