/* SPDX-License-Identifier: Apache-2.0 */
/* Connects to a unix socket, sends bytes and a descriptor.  Acts. */
#include "runtime/base/files/unix_send.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
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

static ssize_t send_first(int sock_fd, struct iovec *bytes, int fd)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr message = {
		.msg_iov = bytes,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(rights), &fd, sizeof(fd));
	ssize_t sent;
	do
		sent = sendmsg(sock_fd, &message, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent;
}

int unix_send(int sock_fd, const void *bytes, size_t size, int fd)
{
	struct iovec all = { .iov_base = (void *)bytes, .iov_len = size };
	ssize_t sent = send_first(sock_fd, &all, fd);
	for (size_t done = 0; sent >= 0;
	     sent = send(sock_fd, (const char *)bytes + done, size - done, MSG_NOSIGNAL)) {
		done += (size_t)sent;
		if (done == size)
			return 0;
	}
	return errno;
}
