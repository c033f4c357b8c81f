/* SPDX-License-Identifier: Apache-2.0 */
/* The socket of a state directory.  Acts. */
#include "runtime/container/state/state_socket.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "runtime/base/scope.h"

#define QUEUE 8 /* connections of start that may wait: one is accepted */

/* The name is by descriptor, because a path may be longer than sun_path: unix(7). */
static int open_socket(const struct state *s, struct sockaddr_un *out_address, struct cj_error *err)
{
	*out_address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	(void)snprintf(out_address->sun_path, sizeof(out_address->sun_path),
		       "/proc/self/fd/%d/" STATE_SOCKET, s->dir_fd);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	return fd < 0 ? cj_fail(err, errno, "make the start socket") : fd;
}

int state_socket_listen(const struct state *s, struct cj_error *err)
{
	struct sockaddr_un address;
	auto_fd int fd = open_socket(s, &address, err);

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
	auto_fd int fd = open_socket(s, &address, err);

	if (fd < 0)
		return fd;
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return cj_fail(err, errno, "connect to the container's init");
	return take_fd(&fd);
}
