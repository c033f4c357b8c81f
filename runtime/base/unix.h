/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unix - connects to unix sockets; messages with descriptors: unix(7), SCM_RIGHTS in cmsg(3).
 */
#pragma once

#include "runtime/base/error.h"

/* A stream socket connected to the path, which may be longer than sun_path: unix(7). */
int unix_connect(const char *path, struct cj_error *err);

/* A datagram socket connected to a path or, after a '@', to an abstract name: NOTIFY_SOCKET of
 * sd_notify(3).  Neither is longer than sun_path. */
int unix_connect_datagram(const char *where, struct cj_error *err);

/* Sends all bytes, the descriptor with the first of them.  Makes system calls only.  0 or an
 * errno. */
int unix_send(int sock_fd, const void *bytes, size_t size, int fd);

#define UNIX_FDS_MAX 32 /* in one message */

struct unix_message {
	struct iovec *parts;
	size_t nparts;
	int *fds;       /* sent: borrowed; received: the receiver owns them, O_CLOEXEC */
	size_t nfds;    /* before it receives, the caller sets it to the room in fds[] */
	int flags;      /* MSG_DONTWAIT */
	const void *to; /* sent: the address of a socket that is not connected; else NULL */
	size_t to_size;
	/* received: the sender, with SO_PASSCRED; pid 0: unknown, or not visible from here */
	pid_t pid;
	uid_t uid;
	bool is_cut; /* received: it had more bytes or descriptors than there is room for */
};

/* One sendmsg(2) without SIGPIPE.  The number of bytes, or -errno. */
ssize_t unix_send_message(int sock_fd, const struct unix_message *m);

/*
 * One recvmsg(2).  The number of bytes, 0 at the end of the connection, or -errno.  Closes the
 * descriptors that fds[] has no room for.
 */
ssize_t unix_receive_message(int sock_fd, struct unix_message *m);
