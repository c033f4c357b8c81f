/* SPDX-License-Identifier: Apache-2.0 */
/* Files without a name, and the moment they get one.  Acts. */
#include "runtime/base/newfile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#include "runtime/base/scope.h"

#define LINK_ATTEMPTS 16 /* others may publish under the same name at once */

/* So nobody can have put something there. */
static int open_named(int dir_fd, mode_t mode, struct newfile *out)
{
	uint64_t number;
	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		return -errno;
	(void)snprintf(out->temp, sizeof(out->temp), ".cejail-%016" PRIx64, number);
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	out->fd = openat(dir_fd, out->temp, flags, mode);
	if (out->fd >= 0)
		return 0;
	out->temp[0] = '\0';
	return -errno;
}

int newfile_open(int dir_fd, mode_t mode, struct newfile *out)
{
	*out = (struct newfile)NEWFILE_NULL;
	out->fd = openat(dir_fd, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, mode);
	if (out->fd >= 0)
		return 0;
	/* EISDIR: a kernel or file system that takes the flag for another: open(2) */
	return errno == EOPNOTSUPP || errno == EISDIR ? open_named(dir_fd, mode, out) : -errno;
}

/* linkat(2) names AT_EMPTY_PATH as needing a capability and this way as the one without. */
static int link_nameless(int fd, int dir_fd, const char *name)
{
	char self[32];
	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	for (unsigned i = 0; i < LINK_ATTEMPTS; i++) {
		if (linkat(AT_FDCWD, self, dir_fd, name, AT_SYMLINK_FOLLOW) == 0)
			return 0;
		if (errno != EEXIST)
			return -errno;
		if (unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT)
			return -errno;
	}
	return -EEXIST;
}

int newfile_publish(struct newfile *f, int dir_fd, const char *name)
{
	int rc = f->temp[0] == '\0' ? link_nameless(f->fd, dir_fd, name) : 0;
	if (close(take_fd(&f->fd)) < 0 && rc == 0) /* where NFS and quotas speak up */
		rc = -errno;
	if (rc < 0 || f->temp[0] == '\0')
		return rc;
	if (renameat(dir_fd, f->temp, dir_fd, name) < 0)
		return -errno;
	f->temp[0] = '\0';
	return 0;
}

void newfile_fini(struct newfile *f, int dir_fd)
{
	int saved = errno;
	if (f->temp[0] != '\0')
		(void)unlinkat(dir_fd, f->temp, 0); /* ours; if it is gone, so much the better */
	cj_close(&f->fd);
	*f = (struct newfile)NEWFILE_NULL;
	errno = saved;
}
