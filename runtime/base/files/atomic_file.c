/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/files/atomic_file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "runtime/base/scope.h"

#define LINK_ATTEMPTS 16 /* others may publish under the same name at once */
#define COPY_BYTES    (1u << 20)
#define TEMP_BYTES    32

/* A random name: no other process can have created it in advance. */
static int open_named(int dir_fd, mode_t mode, char name[static TEMP_BYTES])
{
	uint64_t number;
	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		return -errno;
	(void)snprintf(name, TEMP_BYTES, ".cejail-%016" PRIx64, number);
	int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(dir_fd, name, flags, mode);
	return fd < 0 ? -errno : fd;
}

static int open_unlinked(int dir_fd, mode_t mode, struct atomic_file *out)
{
	char name[TEMP_BYTES];
	auto_fd int fd = open_named(dir_fd, mode, name);
	if (fd < 0)
		return fd;
	if (unlinkat(dir_fd, name, 0) < 0)
		return -errno;
	*out = (struct atomic_file){ .fd = take_fd(&fd), .is_copied = true };
	return 0;
}

int atomic_file_open(int dir_fd, mode_t mode, struct atomic_file *out)
{
	*out = NEWFILE_NULL;
	out->fd = openat(dir_fd, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, mode);
	if (out->fd >= 0)
		return 0;
	/* EISDIR: a kernel or file system that takes the flag for another: open(2) */
	return errno == EOPNOTSUPP || errno == EISDIR ? open_unlinked(dir_fd, mode, out) : -errno;
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

static int copy(int from_fd, int to_fd)
{
	struct stat st;
	off_t at = 0;
	if (fstat(from_fd, &st) < 0 || fchmod(to_fd, st.st_mode & 07777) < 0)
		return -errno;
	while (at < st.st_size) {
		ssize_t part = sendfile(to_fd, from_fd, &at, COPY_BYTES);
		if (part < 0 && errno != EINTR)
			return -errno;
		if (part == 0)
			return -EIO; /* it got shorter, though no other process has it open */
	}
	return 0;
}

static int copy_unlinked(int from_fd, int dir_fd, const char *name)
{
	char temp[TEMP_BYTES];
	auto_fd int fd = open_named(dir_fd, 0600, temp);
	if (fd < 0)
		return fd;
	int rc = copy(from_fd, fd);
	if (close(take_fd(&fd)) < 0 && rc == 0) /* where NFS and quotas speak up */
		rc = -errno;
	if (rc == 0 && renameat(dir_fd, temp, dir_fd, name) < 0)
		rc = -errno;
	if (rc < 0)
		(void)unlinkat(dir_fd, temp, 0); /* ours; if it is gone, so much the better */
	return rc;
}

int atomic_file_publish(struct atomic_file *f, int dir_fd, const char *name)
{
	int rc = f->is_copied ? copy_unlinked(f->fd, dir_fd, name)
			      : link_nameless(f->fd, dir_fd, name);
	cj_close(&f->fd);
	return rc;
}

void atomic_file_fini(struct atomic_file *f)
{
	cj_close(&f->fd);
	*f = NEWFILE_NULL;
}
