/* SPDX-License-Identifier: Apache-2.0 */
/* A process id in a file.  Acts. */
#include "runtime/container/pid_file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"

#define PID_MODE 0644 /* engines of another user read it */

static int write_new(const char *path, pid_t pid, struct cj_error *err)
{
	char text[16];
	auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, PID_MODE);

	if (fd < 0)
		return cj_fail(err, errno, "create '%s'", path);
	(void)snprintf(text, sizeof(text), "%d", (int)pid);
	return fd_write_all(fd, text, strlen(text), "the process id", err);
}

int pid_file_write(const char *path, pid_t pid, struct cj_error *err)
{
	char temporary[PATH_MAX];

	if (snprintf(temporary, sizeof(temporary), "%s.%d", path, (int)getpid()) >=
	    (int)sizeof(temporary))
		return cj_fail(err, ENAMETOOLONG, "write the pid file '%s'", path);
	(void)unlink(temporary); /* of a process that had our id and was killed */
	int rc = write_new(temporary, pid, err);
	if (rc == 0 && rename(temporary, path) < 0)
		rc = cj_fail(err, errno, "rename '%s' to '%s'", temporary, path);
	if (rc < 0) {
		(void)unlink(temporary); /* it may not exist */
		return cj_wrap(err, "pid file");
	}
	return 0;
}
