/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets of a state directory.  Acts. */
#include "runtime/container/state/state_socket.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "runtime/base/scope.h"

#define QUEUE       8 /* connections of start that may wait: one is accepted */
#define NOTIFY_MODE 0666

/* The name is by descriptor, because a path may be longer than sun_path: unix(7). */
static int open_socket(const struct state *s, const char *name, int type,
		       struct sockaddr_un *out_address, struct cj_error *err)
{
	*out_address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	(void)snprintf(out_address->sun_path, sizeof(out_address->sun_path), "/proc/self/fd/%d/%s",
		       s->dir_fd, name);
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	return fd < 0 ? cj_fail(err, errno, "make the socket '%s'", name) : fd;
}

int state_socket_listen(const struct state *s, struct cj_error *err)
{
	struct sockaddr_un address;
	auto_fd int fd = open_socket(s, STATE_SOCKET, SOCK_SEQPACKET, &address, err);

	if (fd < 0)
		return fd;
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return cj_fail(err, errno, "bind the start socket");
	if (listen(fd, QUEUE) < 0)
		return cj_fail(err, errno, "listen on the start socket");
	return take_fd(&fd);
}

int state_socket_connect(const struct state *s, struct cj_error *err)
{
	struct sockaddr_un address;
	auto_fd int fd = open_socket(s, STATE_SOCKET, SOCK_SEQPACKET, &address, err);

	if (fd < 0)
		return fd;
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return cj_fail(err, errno, "connect to the container's init");
	return take_fd(&fd);
}

int state_socket_notify(const struct state *s, struct cj_error *err)
{
	struct sockaddr_un address;
	auto_fd int fd = open_socket(s, STATE_NOTIFY, SOCK_DGRAM, &address, err);

	if (fd < 0)
		return fd;
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return cj_fail(err, errno, "bind the socket '" STATE_NOTIFY "'");
	/* bind(2) obeys the umask */
	if (fchmodat(s->dir_fd, STATE_NOTIFY, NOTIFY_MODE, 0) < 0)
		return cj_fail(err, errno, "set the mode of the socket '" STATE_NOTIFY "'");
	return take_fd(&fd);
}
