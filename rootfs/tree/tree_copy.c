/* SPDX-License-Identifier: Apache-2.0 */
/* Copies a directory by descriptors.  Acts. */
#include "rootfs/tree/tree_copy.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

#define CHUNK_BYTES (1u << 20)

struct copier {
	const char *name; /* for messages */
	unsigned entries;
};

static int copy_directory(struct copier *c, int from_fd, int to_fd, unsigned depth,
			  struct cj_error *err);

/* No mount is entered: procfs or a volume may lie below. */
static int open_entry(int dir_fd, const char *name)
{
	return sys_openat2(dir_fd, name, O_PATH | O_NOFOLLOW, 0, RESOLVE_BENEATH | RESOLVE_NO_XDEV);
}

/* Owner before mode: chown(2) clears the setuid bit. */
static int copy_owner(struct copier *c, int to_fd, const struct stat *st, struct cj_error *err)
{
	const struct timespec times[] = { st->st_atim, st->st_mtim };
	if (fchown(to_fd, st->st_uid, st->st_gid) < 0 || fchmod(to_fd, st->st_mode & 07777) < 0 ||
	    futimens(to_fd, times) < 0)
		return cj_fail(err, errno, "copy the owner, mode or times below '%s'", c->name);
	return 0;
}

static int fail_open(const struct copier *c, const char *entry, int code, struct cj_error *err)
{
	int rc = cj_fail(err, code, "copy '%s' below '%s'", entry, c->name);
	if (code == EWOULDBLOCK)
		cj_hint(err, "another process has a lease on the file: F_SETLEASE in fcntl(2)");
	return rc;
}

static int copy_bytes(struct copier *c, int from_fd, int to_fd, struct cj_error *err)
{
	for (;;) {
		ssize_t size = sendfile(to_fd, from_fd, NULL, CHUNK_BYTES);
		if (size == 0)
			return 0;
		if (size < 0 && errno != EINTR)
			return cj_fail(err, errno, "copy a file below '%s'", c->name);
	}
}

/*
 * Opened for reading only after it is known to be a regular file: to open a device can act on it.
 * The descriptor of the object itself is opened again, not its name.  Without O_NONBLOCK, another
 * container's lease (F_SETLEASE in fcntl(2)) blocks the open for 45 seconds.
 */
static int copy_file(struct copier *c, int path_fd, int to_dir_fd, const char *entry,
		     const struct stat *st, struct cj_error *err)
{
	char again[32];
	(void)snprintf(again, sizeof(again), "/proc/self/fd/%d", path_fd);
	auto_fd int from_fd = open(again, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (from_fd < 0)
		return fail_open(c, entry, errno, err);
	auto_fd int to_fd = openat(to_dir_fd, entry, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (to_fd < 0)
		return cj_fail(err, errno, "copy '%s' below '%s'", entry, c->name);
	int rc = copy_bytes(c, from_fd, to_fd, err);
	return rc < 0 ? rc : copy_owner(c, to_fd, st, err);
}

static int copy_link(struct copier *c, int path_fd, int to_dir_fd, const char *entry,
		     const struct stat *st, struct cj_error *err)
{
	char target[PATH_MAX];
	ssize_t size = readlinkat(path_fd, "", target, sizeof(target) - 1);
	if (size < 0)
		return cj_fail(err, errno, "copy the link '%s' below '%s'", entry, c->name);
	target[size] = '\0';
	if (symlinkat(target, to_dir_fd, entry) < 0 ||
	    fchownat(to_dir_fd, entry, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return cj_fail(err, errno, "copy the link '%s' below '%s'", entry, c->name);
	return 0;
}

/* At most TREE_COPY_DEPTH_MAX deep; NOLINTNEXTLINE(misc-no-recursion) */
static int copy_below(struct copier *c, int path_fd, int to_dir_fd, const char *entry,
		      unsigned depth, struct cj_error *err)
{
	if (depth >= TREE_COPY_DEPTH_MAX)
		return cj_reject_as(err, E2BIG, "copy '%s': more than %d directories deep", c->name,
				    TREE_COPY_DEPTH_MAX);
	if (mkdirat(to_dir_fd, entry, 0700) < 0)
		return cj_fail(err, errno, "copy '%s' below '%s'", entry, c->name);
	auto_fd int from_fd = openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_fd int to_fd =
	    openat(to_dir_fd, entry, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (from_fd < 0 || to_fd < 0)
		return cj_fail(err, errno, "copy '%s' below '%s'", entry, c->name);
	return copy_directory(c, from_fd, to_fd, depth + 1, err);
}

/* At most TREE_COPY_DEPTH_MAX deep; NOLINTNEXTLINE(misc-no-recursion) */
static int copy_entry(struct copier *c, int from_dir_fd, int to_dir_fd, const char *entry,
		      unsigned depth, struct cj_error *err)
{
	if (++c->entries > TREE_COPY_ENTRIES_MAX)
		return cj_reject_as(err, E2BIG, "copy '%s': more than %d files", c->name,
				    TREE_COPY_ENTRIES_MAX);
	auto_fd int path_fd = open_entry(from_dir_fd, entry);
	struct stat st;
	if (path_fd < 0 || fstat(path_fd, &st) < 0)
		return cj_fail(err, errno, "copy '%s' below '%s'", entry, c->name);
	switch (st.st_mode & S_IFMT) {
	case S_IFREG:
		return copy_file(c, path_fd, to_dir_fd, entry, &st, err);
	case S_IFLNK:
		return copy_link(c, path_fd, to_dir_fd, entry, &st, err);
	case S_IFDIR:
		return copy_below(c, path_fd, to_dir_fd, entry, depth, err);
	default:
		return cj_reject(err, "copy '%s': '%s' is a device, a fifo or a socket", c->name,
				 entry);
	}
}

/* At most TREE_COPY_DEPTH_MAX deep; NOLINTNEXTLINE(misc-no-recursion) */
static int copy_entries(struct copier *c, DIR *dir, int to_fd, unsigned depth, struct cj_error *err)
{
	for (;;) {
		errno = 0;
		const struct dirent *entry = readdir(dir);
		if (!entry)
			return errno == 0 ? 0 : cj_fail(err, errno, "list '%s'", c->name);
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		int rc = copy_entry(c, dirfd(dir), to_fd, entry->d_name, depth, err);
		if (rc < 0)
			return rc;
	}
}

/* At most TREE_COPY_DEPTH_MAX deep; NOLINTNEXTLINE(misc-no-recursion) */
static int copy_directory(struct copier *c, int from_fd, int to_fd, unsigned depth,
			  struct cj_error *err)
{
	struct stat st;
	auto_fd int list_fd = openat(from_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (list_fd < 0 || fstat(list_fd, &st) < 0)
		return cj_fail(err, errno, "list '%s'", c->name);
	auto_dir DIR *dir = fdopendir(list_fd);
	if (!dir)
		return cj_fail(err, errno, "list '%s'", c->name);
	(void)take_fd(&list_fd); /* closedir(3) closes it */
	int rc = copy_entries(c, dir, to_fd, depth, err);
	return rc < 0 ? rc : copy_owner(c, to_fd, &st, err);
}

int tree_copy(int from_fd, int to_fd, const char *name, struct cj_error *err)
{
	struct copier copier = { .name = name };
	return copy_directory(&copier, from_fd, to_fd, 0, err);
}
