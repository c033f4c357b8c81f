/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay - moves bytes from one descriptor to another through a bounded buffer, never blocking.
 *
 * Our own pipe ends are non-blocking.  The caller's descriptors must stay as they are, because
 * other processes share O_NONBLOCK of an open file.  If possible we open the file again and write
 * through that (relay_own_output()).  Else we poll(2) first, and write only as much as it promises
 * room for.
 */
#pragma once

enum relay_name { RELAY_STDIN, RELAY_STDOUT, RELAY_STDERR, RELAY_COUNT };

extern const char *const relay_names[RELAY_COUNT]; /* for messages */

#define RELAY_CHUNK 16384

struct relay {
	const char *farewell; /* written when the in side ends; NULL: nothing */
	int in_fd;            /* -1: the end was reached */
	int out_fd;           /* -1: nobody to pass bytes on to */
	bool owns_in, owns_out;
	bool is_caller_in, is_caller_out; /* poll before touching it */
	bool is_paused;                   /* nothing is read: the receiver of events has no room */
	bool is_complete;                 /* relay_complete() */
	size_t left;             /* with is_complete: at most so many bytes are still read */
	int in_error;            /* why reading failed, if that ended the in side */
	int out_error;           /* why writing failed; EPIPE: the reader closed it */
	bool escape;             /* control characters become \xNN on the way */
	uint8_t in[RELAY_CHUNK]; /* the last chunk read */
	size_t carried;          /* bytes at its front whose escape depends on the next ones */
	size_t fresh;            /* bytes after them, read by relay_fill() */
	uint8_t out[4 * RELAY_CHUNK + 1]; /* pending bytes: [start, end) */
	size_t start, end;
};

void relay_init(struct relay *r); /* the null value */
void relay_fini(struct relay *r); /* closes what it owns */

enum relay_result {
	RELAY_AGAIN, /* nothing to read, or no room, for now */
	RELAY_MOVED,
	RELAY_END, /* end of file, or the reader closed it */
};

bool relay_has_pending(const struct relay *r);
/* May the in side be read now? */
bool relay_wants_more(const struct relay *r);

/*
 * Every process that should write to the in side has ended.  From now on "empty" means finished,
 * and at most as much is read as the kernel can buffer: another process may have been sent the
 * other end, and may go on writing.
 */
void relay_complete(struct relay *r);

/* Reads one chunk, if nothing is pending and the relay is not paused; *out_bytes is unescaped. */
enum relay_result relay_fill(struct relay *r, const uint8_t **out_bytes, size_t *out_size);

/* Makes the fresh bytes pending, if there is an out side. */
void relay_pass(struct relay *r);

/* Writes pending bytes as far as possible without blocking. */
enum relay_result relay_flush(struct relay *r);

/*
 * relay_open_own - open the caller's terminal or pipe again, as a non-blocking file of our own.
 *
 * poll(2) promises too little for them: a terminal may have room for one byte and not for the next,
 * and others may write to the same pipe in between.  -1 for sockets and files, and for a terminal
 * or pipe of another user.
 */
int relay_open_own(int out_fd);
/* Replaces the out side by relay_open_own()'s; leaves it as it is where that fails. */
void relay_own_output(struct relay *r);

/* The in side is finished: closes it, and the out side if it is ours. */
void relay_end_in(struct relay *r);
/* The reader has closed the out side: drops pending bytes and all later ones. */
void relay_end_out(struct relay *r);
