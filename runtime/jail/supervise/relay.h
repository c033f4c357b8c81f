/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay - bytes from one descriptor to another through a bounded buffer, never blocking.
 *
 * Our own pipe ends are non-blocking.  The caller's descriptors are not ours to change
 * (O_NONBLOCK belongs to the open file, which others share): where the kernel lets us we
 * write through an open file of our own (relay_own_output); else they are polled first and
 * written in pieces that poll(2) promises room for.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum relay_name { RELAY_STDIN, RELAY_STDOUT, RELAY_STDERR, RELAY_COUNT };

#define RELAY_CHUNK 16384

struct relay {
	const char *farewell; /* written when the in side ends; NULL: nothing */
	int in_fd;            /* -1: the end was reached */
	int out_fd;           /* -1: nobody to pass bytes on to */
	bool owns_in, owns_out;
	bool is_caller_in, is_caller_out; /* poll before touching it */
	bool is_held;            /* nothing is read: there is no room for what it would bring */
	bool is_complete;        /* relay_complete() */
	size_t left;             /* then: so much is still read at most */
	int in_error;            /* why reading failed, if that ended the in side */
	int out_error;           /* why writing failed; EPIPE: the reader went away */
	bool escape;             /* control characters become \xNN on the way */
	uint8_t in[RELAY_CHUNK]; /* the last chunk read */
	size_t carried;          /* bytes whose escape the next ones decide, at its front */
	size_t fresh;            /* bytes behind them that relay_fill() brought */
	uint8_t out[4 * RELAY_CHUNK + 1]; /* what waits to be written: [start, end) */
	size_t start, end;
};

void relay_init(struct relay *r); /* the null value */
void relay_fini(struct relay *r); /* closes what it owns */

enum relay_result {
	RELAY_AGAIN, /* nothing to be had, or no room, for now */
	RELAY_MOVED,
	RELAY_END, /* end of file, or the reader is gone */
};

bool relay_has_pending(const struct relay *r);
/* There is room for what the in side would bring. */
bool relay_wants_more(const struct relay *r);

/*
 * All that should write to the in side have ended: empty means finished, and no more is taken than
 * the kernel can hold for us.  Somebody outside may have been sent the other end, and go on.
 */
void relay_complete(struct relay *r);

/* Reads one chunk (only when nothing is pending, and not while it is held); shows the fresh bytes
 * as they came. */
enum relay_result relay_fill(struct relay *r, const uint8_t **out_bytes, size_t *out_size);

/* Makes the fresh bytes pending, if there is anybody to pass them on to. */
void relay_pass(struct relay *r);

/* Writes what is pending, as far as it goes without blocking. */
enum relay_result relay_flush(struct relay *r);

/*
 * relay_open_own - the caller's terminal or pipe as an open file of ours, which never blocks.
 *
 * poll(2) is no promise for them: a terminal has room for a byte and not for the next, and
 * others may write to the same pipe in between.  -1 where that can't be had: for sockets and files,
 * and for what another user opened.
 */
int relay_open_own(int out_fd);
/* Has it as its out side, which we close; leaves out_fd as it is where that can't be had. */
void relay_own_output(struct relay *r);

/* The in side is finished: closes it, and the out side if it is ours. */
void relay_end_in(struct relay *r);
/* The reader is gone: what is pending is dropped, and all that still comes. */
void relay_end_out(struct relay *r);
