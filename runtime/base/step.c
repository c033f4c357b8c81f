/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named steps over a SOCK_SEQPACKET pair.
 *
 * On the wire: a header, then the data; a failure is the header of STEP_FAILED and a
 * whole struct cj_error.  Both ends are the same program, so there is no byte order to
 * agree on; sizes are still checked, because init shares a uid with the payload.
 */
#include "runtime/base/step.h"

#include <assert.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>

#include "runtime/base/unix.h"
#include "runtime/base/scope.h"

#define STEP_FAILED UINT32_MAX
#define UNREAD_MAX  64 /* steps of a peer that has ended, or says so */

static_assert(sizeof(struct cj_error) <= STEP_PLAIN_MAX, "an error needs no sendmsg(2)");
static_assert(STEP_FDS_MAX <= UNIX_FDS_MAX, "a message has room for the descriptors of a step");

struct step_header {
	uint32_t step;
	uint32_t size; /* of the data behind it */
};

void step_limit_wait(int sock_fd, unsigned timeout_ms)
{
	struct timeval limit = {
		.tv_sec = timeout_ms / 1000,
		.tv_usec = (suseconds_t)(timeout_ms % 1000) * 1000,
	};
	/* Cannot fail on a socket of ours; without it a hung peer would only be waited for. */
	(void)setsockopt(sock_fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	(void)setsockopt(sock_fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

int step_pair(int out_fds[2], unsigned timeout_ms, struct cj_error *err)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, out_fds) < 0)
		return cj_fail(err, errno, "create a socket pair");

	for (int i = 0; i < 2 && timeout_ms > 0; i++)
		step_limit_wait(out_fds[i], timeout_ms);
	return 0;
}

int step_ask_sender(const struct step_link *link, struct cj_error *err)
{
	const int on = 1;
	if (setsockopt(link->sock_fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
		return cj_fail(err, errno, "ask who sends the messages of %s", link->peer);
	return 0;
}

void step_wait_forever(const struct step_link *link)
{
	step_limit_wait(link->sock_fd, 0);
}

/* Without an address: a process that may pass on no descriptor has no sendmsg(2). */
static int send_plain(int sock_fd, const struct step_header *header, const void *data, size_t size)
{
	uint8_t whole[sizeof(*header) + STEP_PLAIN_MAX];
	memcpy(whole, header, sizeof(*header));
	if (size > 0)
		memcpy(whole + sizeof(*header), data, size);
	ssize_t sent = TEMP_FAILURE_RETRY(
	    sendto(sock_fd, whole, sizeof(*header) + size, MSG_NOSIGNAL, NULL, 0));
	return sent < 0 ? -errno : 0;
}

static int send_message(int sock_fd, uint32_t step, const void *data, size_t size, const int *fds,
			size_t nfds)
{
	struct step_header header = { .step = step, .size = (uint32_t)size };
	if (nfds == 0 && size <= STEP_PLAIN_MAX)
		return send_plain(sock_fd, &header, data, size);
	struct iovec parts[] = {
		{ .iov_base = &header, .iov_len = sizeof(header) },
		{ .iov_base = (void *)data, .iov_len = size }, /* sendmsg(2) only reads it */
	};
	const struct unix_message m = {
		.parts = parts,
		.nparts = size > 0 ? 2 : 1,
		.fds = (int *)fds, /* only read */
		.nfds = nfds,
	};
	ssize_t sent = unix_send_message(sock_fd, &m);
	return sent < 0 ? (int)sent : 0;
}

void step_abort(const struct step_link *link, const struct cj_error *why)
{
	/* If even this can't be sent, the peer reads the end of the socket. */
	(void)send_message(link->sock_fd, STEP_FAILED, why, sizeof(*why), NULL, 0);
}

static int receive_message(int sock_fd, struct step_header *header, struct step_msg *out,
			   bool *out_truncated)
{
	struct iovec parts[] = {
		{ .iov_base = header, .iov_len = sizeof(*header) },
		{ .iov_base = out->data, .iov_len = sizeof(out->data) },
	};
	struct unix_message m = {
		.parts = parts,
		.nparts = 2,
		.fds = out->fds,
		.nfds = STEP_FDS_MAX,
	};

	/*
	 * A peer that ended with messages of ours unread leaves one ECONNRESET before what it
	 * sent itself, and that is what we are after: unix(7) reports an error once.
	 */
	ssize_t got;
	do
		got = unix_receive_message(sock_fd, &m);
	while (got == -ECONNRESET);
	if (got < 0)
		return (int)got;
	out->nfds = m.nfds;
	out->sender.pid = m.pid;
	out->sender.uid = m.uid;
	*out_truncated = m.is_cut || (got > 0 && (size_t)got < sizeof(*header));
	out->size = (size_t)got > sizeof(*header) ? (size_t)got - sizeof(*header) : 0;
	return got == 0 ? -EPIPE : 0;
}

/* Reads one message; what failed is said by the caller, who knows what was awaited. */
static int next_message(const struct step_link *link, struct step_msg *out, const char *awaited,
			struct cj_error *err)
{
	struct step_header header = { 0 };
	bool is_truncated = false;
	out->nfds = 0;
	out->size = 0;
	out->sender.pid = 0;

	int rc = receive_message(link->sock_fd, &header, out, &is_truncated);
	if (rc == -EPIPE)
		return cj_reject_as(err, EPIPE, "%s ended before '%s'", link->peer, awaited);
	if (rc == -EAGAIN)
		return cj_fail(err, ETIMEDOUT, "wait for %s to reach '%s'", link->peer, awaited);
	if (rc < 0)
		return cj_fail(err, -rc, "receive a message of %s", link->peer);
	if (is_truncated || header.size != out->size)
		return cj_fail(err, EPROTO, "read a message of %s", link->peer);

	if (header.step == STEP_FAILED && out->size == sizeof(struct cj_error)) {
		struct cj_error theirs;
		memcpy(&theirs, out->data, sizeof(theirs));
		return cj_adopt(err, &theirs, link->peer);
	}
	out->step = header.step;
	return 0;
}

int step_tell(const struct step_link *link, unsigned step, const void *data, size_t size,
	      const int *fds, size_t nfds, struct cj_error *err)
{
	if (size > STEP_DATA_MAX || nfds > STEP_FDS_MAX)
		return cj_fail(err, EMSGSIZE, "send '%s' to %s", link->names[step], link->peer);

	int rc = send_message(link->sock_fd, step, data, size, fds, nfds);
	/*
	 * A peer that has ended may have sent its error before, which says more than our EPIPE.
	 * The error is queued after the steps that this side has not read yet.
	 */
	for (unsigned i = 0; (rc == -EPIPE || rc == -ECONNRESET) && i < UNREAD_MAX; i++) {
		auto_step_msg struct step_msg last = { 0 };
		if (next_message(link, &last, link->names[step], err) < 0)
			return -err->code;
	}
	if (rc < 0)
		return cj_fail(err, rc == -EAGAIN ? ETIMEDOUT : -rc, "send '%s' to %s",
			       link->names[step], link->peer);
	return 0;
}

int step_next(const struct step_link *link, struct step_msg *out, struct cj_error *err)
{
	int rc = next_message(link, out, "end of run", err);
	if (rc < 0)
		step_msg_fini(out);
	return rc;
}

int step_await(const struct step_link *link, unsigned expected, struct step_msg *out,
	       struct cj_error *err)
{
	struct step_msg unwanted = { 0 }, *msg = out ? out : &unwanted;
	int rc = next_message(link, msg, link->names[expected], err);
	if (rc == 0 && msg->step != expected)
		rc = cj_fail(err, EPROTO, "wait for %s to reach '%s': it sent step %u", link->peer,
			     link->names[expected], msg->step);
	if (rc < 0 || !out)
		step_msg_fini(msg);
	return rc;
}

int step_await_end(const struct step_link *link, struct cj_error *err)
{
	auto_step_msg struct step_msg msg = { 0 };
	struct step_header header = { 0 };
	bool is_truncated = false;
	int rc = receive_message(link->sock_fd, &header, &msg, &is_truncated);
	if (rc == -EPIPE)
		return 0;
	if (rc == -EAGAIN)
		rc = -ETIMEDOUT;
	return cj_fail(err, rc < 0 ? -rc : EPROTO, "wait for the end of %s", link->peer);
}

void step_msg_fini(struct step_msg *msg)
{
	for (size_t i = 0; i < msg->nfds; i++)
		cj_close(&msg->fds[i]);
	msg->nfds = 0;
}
