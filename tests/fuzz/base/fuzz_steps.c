/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_steps - any datagrams, with any descriptors, as what the other process says.
 *
 * The first byte is the awaited step; then each message: its step, 16 bits of size that its header
 * claims, how many descriptors come along, 16 bits of how much data, the data.
 *
 * Asserted: what is taken is as long as its header said, has the awaited step and owns its
 * descriptors, close-on-exec; what is not leaves none open; errors have a code, a text, and end.
 */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "runtime/base/step.h"
#include "tests/fuzz/bytes.h"

#define MESSAGES_MAX 8
#define SENT_FDS_MAX 40 /* more than a message may have */
#define STEPS        4

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const char *const names[STEPS] = { "first", "second", "third", "fourth" };

static size_t put_fds(struct msghdr *msg, char *room, size_t count)
{
	if (count == 0)
		return 0;
	msg->msg_control = room;
	msg->msg_controllen = CMSG_SPACE(count * sizeof(int));
	struct cmsghdr *rights = CMSG_FIRSTHDR(msg);
	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(count * sizeof(int));
	for (size_t i = 0; i < count; i++)
		memcpy(CMSG_DATA(rights) + i * sizeof(int), &(int){ STDIN_FILENO }, sizeof(int));
	return count;
}

static void send_one(int sock_fd, struct bytes *b)
{
	uint8_t step = bytes_u8(b);
	uint32_t header[2] = { step == 255 ? UINT32_MAX : step, bytes_u16(b) };
	size_t nfds = bytes_u8(b) % (SENT_FDS_MAX + 1);
	size_t size = bytes_u16(b), head = bytes_u8(b) == 255 ? 4 : sizeof(header);
	static uint8_t data[UINT16_MAX]; /* zeros behind what the input has */
	struct bytes given = bytes_take(b, size);
	if (given.left > 0)
		memcpy(data, given.at, given.left);

	_Alignas(struct cmsghdr) char room[CMSG_SPACE(SENT_FDS_MAX * sizeof(int))] = { 0 };
	struct iovec parts[] = { { header, head }, { data, head == 4 ? 0 : size } };
	struct msghdr msg = { .msg_iov = parts, .msg_iovlen = 2 };
	(void)put_fds(&msg, room, nfds);
	ssize_t sent = sendmsg(sock_fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	assert(sent >= 0 || errno == EAGAIN);
	memset(data, 0, given.left);
}

/* The lowest free descriptor: nothing below it has been left open. */
static int lowest_free(void)
{
	int fd = fcntl(STDIN_FILENO, F_DUPFD, 0);
	assert(fd >= 0);
	close(fd);
	return fd;
}

static void check_error(int rc, const struct cj_error *err)
{
	assert(rc < 0 && err->code == -rc && err->msg[0] != '\0');
	assert(memchr(err->msg, '\0', sizeof(err->msg)));
	assert(memchr(err->hint, '\0', sizeof(err->hint)));
	assert(memchr(err->stage, '\0', sizeof(err->stage)));
}

static void check_taken(const struct step_msg *msg)
{
	assert(msg->size <= STEP_DATA_MAX && msg->nfds <= STEP_FDS_MAX);
	for (size_t i = 0; i < msg->nfds; i++)
		assert(fcntl(msg->fds[i], F_GETFD) & FD_CLOEXEC);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct bytes b = { bytes, size };
	struct cj_error err = { 0 };
	int ends[2];
	int rc = step_pair(ends, 1000, &err);
	assert(rc == 0);
	const struct step_link link = { ends[0], "init", names };

	unsigned awaited = bytes_u8(&b);
	for (unsigned i = 0; i < MESSAGES_MAX && b.left > 0; i++)
		send_one(ends[1], &b);
	close(ends[1]);
	int before = lowest_free();
	do {
		static struct step_msg msg;
		err = (struct cj_error){ 0 };
		rc = awaited < STEPS ? step_await(&link, awaited, &msg, &err)
				     : step_next(&link, &msg, &err);
		if (rc < 0) {
			check_error(rc, &err);
		} else {
			assert(awaited >= STEPS || msg.step == awaited);
			check_taken(&msg);
		}
		step_msg_fini(&msg);
		assert(lowest_free() == before);
	} while (rc == 0 || err.code != EPIPE);
	close(ends[0]);
	return 0;
}
