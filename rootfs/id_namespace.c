/* SPDX-License-Identifier: Apache-2.0 */
/* User namespaces that are maps. */
#include "rootfs/id_namespace.h"

#include <fcntl.h>

#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

static int put_map(pid_t pid, const char *name, const char *map, struct cj_error *err)
{
	char path[48];
	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	int rc = system_file_write(AT_FDCWD, path, map);
	return rc < 0 ? cj_fail(err, -rc, "write '%s' to '%s'", map, path) : 0;
}

int id_namespace_open(const char *uid_map, const char *gid_map, struct cj_error *err)
{
	int ends[2], pidfd = -1;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return cj_fail(err, errno, "create a pipe");
	const struct clone_args args = {
		.flags = CLONE_NEWUSER | CLONE_PIDFD,
		.pidfd = (uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};
	pid_t pid = sys_clone3(&args);
	if (pid == 0) { /* it lives until the last copy of the pipe's other end is closed */
		char byte;
		cj_close(&ends[1]);
		(void)sys_read(ends[0], &byte, 1);
		_exit(EXIT_SUCCESS);
	}
	int rc = pid < 0 ? cj_fail(err, errno, "create a user namespace") : 0, fd = -1;
	cj_close(&ends[0]);
	if (rc == 0)
		rc = put_map(pid, "uid_map", uid_map, err);
	if (rc == 0)
		rc = put_map(pid, "gid_map", gid_map, err);
	if (rc == 0) {
		char path[48];
		(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			rc = cj_fail(err, errno, "open the user namespace of a helper");
	}
	cj_close(&ends[1]);
	cj_end_child(&pidfd);
	return rc < 0 ? rc : fd;
}
