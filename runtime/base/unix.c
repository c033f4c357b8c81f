/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/unix.h"

#include <assert.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "runtime/base/scope.h"

int unix_connect(const char *path, struct cj_error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	/* By the descriptor of the socket's file, because a path may be longer than sun_path. */
	auto_fd int file_fd = open(path, O_PATH | O_CLOEXEC);
	if (file_fd < 0)
		return cj_fail(err, errno, "open the socket '%s'", path);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", file_fd);

	auto_fd int sock_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (sock_fd < 0)
		return cj_fail(err, errno, "create a unix socket");
	if (connect(sock_fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return cj_fail(err, errno, "connect to the socket '%s'", path);
	return take_fd(&sock_fd);
}

/* A path, or a name in the abstract namespace after a '@'; 0: neither. */
static socklen_t address_of(const char *text, struct sockaddr_un *out)
{
	size_t size = strlen(text);
	*out = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if ((text[0] != '/' && text[0] != '@') || size < 2 || size >= sizeof(out->sun_path))
		return 0;
	memcpy(out->sun_path, text, size);
	if (text[0] == '@')
		out->sun_path[0] = '\0'; /* unix(7): the length of the address ends it, not a NUL */
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size + (text[0] == '/'));
}

int unix_connect_datagram(const char *where, struct cj_error *err)
{
	struct sockaddr_un address;
	socklen_t length = address_of(where, &address);
	if (length == 0)
		return cj_reject(err, "'%.128s' is neither a path nor an abstract name of a socket",
				 where);
	auto_fd int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return cj_fail(err, errno, "create a unix socket");
	if (connect(fd, (const struct sockaddr *)&address, length) < 0)
		return cj_fail(err, errno, "connect to the socket '%s'", where);
	return take_fd(&fd);
}

union control {
	struct cmsghdr header;
	char room[CMSG_SPACE(UNIX_FDS_MAX * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
};

ssize_t unix_send_message(int sock_fd, const struct unix_message *m)
{
	union control control = { 0 };
	struct msghdr msg = {
		.msg_name = (void *)m->to, /* sendmsg(2) only reads it */
		.msg_namelen = (socklen_t)m->to_size,
		.msg_iov = m->parts,
		.msg_iovlen = m->nparts,
	};
	assert(m->nfds <= UNIX_FDS_MAX);
	if (m->nfds > 0) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(m->nfds * sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(m->nfds * sizeof(int));
		memcpy(CMSG_DATA(&control.header), m->fds, m->nfds * sizeof(int));
	}
	ssize_t sent = TEMP_FAILURE_RETRY(sendmsg(sock_fd, &msg, m->flags | MSG_NOSIGNAL));
	return sent < 0 ? -errno : sent;
}

static void take_fds(struct unix_message *m, size_t room, const struct cmsghdr *c)
{
	size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	for (size_t i = 0; i < count; i++) {
		int fd;
		memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
		if (m->nfds < room) {
			m->fds[m->nfds++] = fd;
		} else {
			m->is_cut = true;
			cj_close(&fd);
		}
	}
}

ssize_t unix_receive_message(int sock_fd, struct unix_message *m)
{
	const size_t room = m->nfds;
	union control control;
	struct msghdr msg = {
		.msg_iov = m->parts,
		.msg_iovlen = m->nparts,
		.msg_control = &control,
		.msg_controllen = CMSG_SPACE(room * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred)),
	};
	assert(room <= UNIX_FDS_MAX);

	ssize_t got = TEMP_FAILURE_RETRY(recvmsg(sock_fd, &msg, m->flags | MSG_CMSG_CLOEXEC));
	if (got < 0)
		return -errno;
	m->nfds = 0;
	m->pid = 0;
	m->is_cut = msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			take_fds(m, room, c);
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS) {
			struct ucred sender;
			memcpy(&sender, CMSG_DATA(c), sizeof(sender));
			m->pid = sender.pid;
			m->uid = sender.uid;
		}
	}
	return got;
}

int unix_send(int sock_fd, const void *bytes, size_t size, int fd)
{
	struct iovec all = { .iov_base = (void *)bytes, .iov_len = size };
	const struct unix_message m = { .parts = &all, .nparts = 1, .fds = &fd, .nfds = 1 };
	ssize_t sent = unix_send_message(sock_fd, &m);
	if (sent < 0)
		return (int)-sent;
	for (size_t done = 0; sent >= 0;
	     sent = send(sock_fd, (const char *)bytes + done, size - done, MSG_NOSIGNAL)) {
		done += (size_t)sent;
		if (done == size)
			return 0;
	}
	return errno;
}
