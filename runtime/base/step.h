/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step - two processes exchange named steps over one SOCK_SEQPACKET pair.
 *
 * A message is whole or absent, carries its step and may carry descriptors.
 * No answer never means success: a closed socket, a timeout and an unexpected step
 * are errors that name the awaited step.  A peer that fails sends its
 * struct cj_error instead of any step, and that becomes the awaiting side's own.
 *
 * Which steps there are is the caller's table; this file knows none of them.
 */
#pragma once

#include "runtime/base/error.h"

#define STEP_DATA_MAX  8192 /* a path and its attributes; more travels as a memfd */
#define STEP_PLAIN_MAX 4096 /* without descriptors these need no sendmsg(2) */
#define STEP_FDS_MAX   32

struct step_link {
	int sock_fd;
	const char *peer;         /* "init", "supervisor": for messages */
	const char *const *names; /* indexed by step */
};

struct step_msg {
	unsigned step;
	size_t size;
	uint8_t data[STEP_DATA_MAX];
	int fds[STEP_FDS_MAX]; /* -1 where there is none; the receiver owns them, O_CLOEXEC */
	size_t nfds;
	/* The sender as the kernel names it, in the receiver's namespaces; after
	 * step_ask_sender().  pid 0: not asked, or not visible from here. */
	struct {
		pid_t pid;
		uid_t uid;
	} sender;
};

/* A connected pair, both ends O_CLOEXEC, with a limit on how long either side waits for the other;
 * 0: none. */
int step_pair(int out_fds[2], unsigned timeout_ms, struct cj_error *err);

/* From here on each message says who sent it: SO_PASSCRED in unix(7). */
int step_ask_sender(const struct step_link *link, struct cj_error *err);

/* The limit of one end, for a socket that step_pair() has not made: connect(2) obeys it, too.
 * 0: none. */
void step_limit_wait(int sock_fd, unsigned timeout_ms);

/* Removes the limit: from here on the wait may last as long as the program runs. */
void step_wait_forever(const struct step_link *link);

/*
 * Says that `step` is reached.  Borrows data and fds.
 * Fails: the peer's own error if it sent one before it ended; EPIPE; ETIMEDOUT.
 */
int step_tell(const struct step_link *link, unsigned step, const void *data, size_t size,
	      const int *fds, size_t nfds, struct cj_error *err);
/* The same without data and descriptors. */
static inline int step_say(const struct step_link *link, unsigned step, struct cj_error *err)
{
	return step_tell(link, step, NULL, 0, NULL, 0, err);
}

/*
 * step_next - the peer's next message, whichever step it is.
 * Fails: the peer's own error; EPIPE when the peer has ended; ETIMEDOUT; EPROTO for a malformed
 * message.  On failure *out owns no descriptor.
 */
int step_next(const struct step_link *link, struct step_msg *out, struct cj_error *err);

/* step_next() that refuses any other step (EPROTO, naming both).  `out` NULL: the step has neither
 * data nor descriptors that the caller wants. */
int step_await(const struct step_link *link, unsigned expected, struct step_msg *out,
	       struct cj_error *err);

/*
 * step_await_end - wait until no process has the other end of the link.
 * Fails: ETIMEDOUT; EPROTO when there is a message first.
 */
int step_await_end(const struct step_link *link, struct cj_error *err);

/* Sent instead of any step: "I failed, and this is why".  Best effort: the peer also sees us end.
 */
void step_abort(const struct step_link *link, const struct cj_error *why);

/* Closes the descriptors that the message still owns. */
void step_msg_fini(struct step_msg *msg);
#define auto_step_msg __attribute__((cleanup(step_msg_fini)))
