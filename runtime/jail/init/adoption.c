/* SPDX-License-Identifier: Apache-2.0 */
/* Init takes in a launcher that it has not started.  Acts; runs in init. */
#include "runtime/jail/init/adoption.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "runtime/base/files/unix.h"
#include "runtime/base/scope.h"
#include "runtime/jail/protocol.h"

/* Init is in the outer user namespace when it opens most of them; then in the program's. */
static const char *const paths[ZYGOTE_NAMESPACES] = {
	[ZYGOTE_USER] = "/proc/self/ns/user",   [ZYGOTE_MOUNT] = "/proc/self/ns/mnt",
	[ZYGOTE_NETWORK] = "/proc/self/ns/net", [ZYGOTE_IPC] = "/proc/self/ns/ipc",
	[ZYGOTE_UTS] = "/proc/self/ns/uts",     [ZYGOTE_CGROUP] = "/proc/self/ns/cgroup",
	[ZYGOTE_PID] = "/proc/self/ns/pid",     [ZYGOTE_PROGRAM_USER] = "/proc/self/ns/user",
};

static int open_namespace(struct adoption *a, enum zygote_namespace which, struct cj_error *err)
{
	a->namespace_fds[which] = open(paths[which], O_RDONLY | O_CLOEXEC);
	if (a->namespace_fds[which] < 0)
		return cj_fail(err, errno, "open '%s'", paths[which]);
	return 0;
}

/* A socket that names the sender: the filter may refuse to ask for it later. */
static int open_socket(struct adoption *a, struct cj_error *err)
{
	int ends[2];
	const int on = 1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return cj_fail(err, errno, "create a socket pair for the interpreter");
	a->our_fd = ends[0];
	a->its_fd = ends[1];
	if (setsockopt(a->our_fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
		return cj_fail(err, errno, "ask who sends the interpreter's messages");
	return 0;
}

int adoption_open(struct adoption *a, struct cj_error *err)
{
	for (int which = 0; which < ZYGOTE_PROGRAM_USER; which++)
		if (open_namespace(a, (enum zygote_namespace)which, err) < 0)
			return -err->code;
	return open_socket(a, err);
}

int adoption_open_program_user(struct adoption *a, struct cj_error *err)
{
	return open_namespace(a, ZYGOTE_PROGRAM_USER, err);
}

int adoption_begin(struct adoption *a, const struct step_link *link, int *out_fd,
		   struct cj_error *err)
{
	int fds[1 + ZYGOTE_NAMESPACES + 1] = { a->its_fd };
	size_t count = 1;
	if (a->our_fd < 0)
		return cj_fail(err, EPROTO, "adopt an interpreter: the plan has no zygote");
	for (size_t i = 0; i < ZYGOTE_NAMESPACES; i++)
		fds[count++] = a->namespace_fds[i];
	if (a->ruleset_fd >= 0)
		fds[count++] = a->ruleset_fd;
	int rc = step_tell(link, STEP_ADOPTED, NULL, 0, fds, count, err);
	*out_fd = take_fd(&a->our_fd);
	while (count > 0)
		cj_close(&fds[--count]);
	*a = ADOPTION_NULL;
	return rc;
}

static bool is_live_child(pid_t pid)
{
	return pid > 1 && waitpid(pid, NULL, WNOHANG | __WALL) == 0;
}

pid_t adoption_await(int fd, struct cj_error *err)
{
	char ready;
	struct iovec part = { .iov_base = &ready, .iov_len = 1 };
	struct unix_message m = { .parts = &part, .nparts = 1 };
	ssize_t got = unix_receive_message(fd, &m);
	if (got < 0)
		return cj_fail(err, (int)-got, "wait for the fork of the zygote");
	if (got == 0)
		return cj_reject_as(err, ECHILD,
				    "the fork of the zygote ended before it was ready");

	if (!is_live_child(m.pid))
		return cj_fail(err, EPROTO,
			       "take the fork of the zygote: pid %d is no child of init", m.pid);
	return m.pid;
}
