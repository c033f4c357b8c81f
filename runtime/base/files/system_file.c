/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/files/system_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

/* The kernel gives what a page holds at once, and stops early only before a record that does not
 * fit into the rest of it: Documentation/filesystems/seq_file.rst.  Only lists of mounts and swap
 * files have longer records. */
#define RECORD_MAX 2048

ssize_t system_file_reread(int fd, char *buf, size_t size)
{
	size_t used = 0;
	for (;;) {
		ssize_t got = TEMP_FAILURE_RETRY(pread(fd, buf + used, size - used, (off_t)used));
		if (got < 0)
			return -errno;
		used += (size_t)got;
		if (used == size)
			return -EFBIG;
		if (got == 0 || used < RECORD_MAX)
			break;
	}
	buf[used] = '\0';
	return (ssize_t)used;
}

ssize_t system_file_read(int dir_fd, const char *name, char *buf, size_t size)
{
	auto_fd int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return system_file_reread(fd, buf, size);
}

static int put(int fd, const char *text)
{
	size_t size = strlen(text);
	ssize_t written = sys_write(fd, text, size);
	if (written < 0)
		return -errno;
	return (size_t)written == size ? 0 : -EIO;
}

int system_file_write(int dir_fd, const char *name, const char *text)
{
	auto_fd int fd = openat(dir_fd, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : put(fd, text);
}

int system_file_write_back(int dir_fd, const char *name, const char *text, char *buf, size_t size,
			   ssize_t *out_size)
{
	auto_fd int fd = openat(dir_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	int rc = fd < 0 ? -errno : put(fd, text);
	if (rc == 0)
		*out_size = system_file_reread(fd, buf, size);
	return rc;
}

int system_file_make_dir(int dir_fd, const char *name)
{
	if (mkdirat(dir_fd, name, 0755) < 0)
		return -errno;
	if (fchmodat(dir_fd, name, 0755, 0) == 0)
		return 0;
	int rc = -errno;
	(void)unlinkat(dir_fd, name, AT_REMOVEDIR); /* ours of just now */
	return rc;
}
