/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/files/empty_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"

#define PASSES_MAX (1u << 17) /* one for each level of the tree */

struct emptying {
	int top_fd;
	uint64_t moved; /* numbers the directories that were moved up */
};

/* Whoever made the tree may have taken every right from a directory. */
static int open_any_mode(int dir_fd, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(dir_fd, name, flags);
	if (fd >= 0 && fchmod(fd, 0700) == 0) /* else what is in it can't be removed */
		return fd;
	cj_close(&fd);
	/* By descriptor: after a name could come a link, if somebody still changed the tree. */
	auto_fd int path_fd = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char path[32];
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	if (path_fd < 0 || chmod(path, 0700) < 0)
		return -1;
	return openat(path_fd, ".", flags);
}

/* Removes a file or an empty directory; any other goes up to the top, and is emptied from there.
 * So no tree is too deep. */
static int remove_entry(struct emptying *r, int dir_fd, const char *name)
{
	char up[32];
	if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0)
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST && errno != EACCES && errno != EPERM)
		return -errno;
	auto_fd int fd = open_any_mode(dir_fd, name); /* moving it writes its ".." */
	if (fd < 0)
		return -errno;
	do
		(void)snprintf(up, sizeof(up), ".up-%" PRIu64, r->moved++);
	while (faccessat(r->top_fd, up, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
	return renameat(dir_fd, name, r->top_fd, up) == 0 ? 0 : -errno;
}

static int empty_one(struct emptying *r, int dir_fd, const char *name)
{
	auto_fd int fd = open_any_mode(dir_fd, name);
	if (fd < 0)
		return errno == ENOTDIR || errno == ELOOP ? 0 : -errno;
	auto_fd_dir struct fd_dir *dir = fd_open_dir(fd, ".");
	if (!dir)
		return -errno;
	for (const struct dirent *e; (e = fd_next_entry(dir)) != NULL;) {
		int rc = remove_entry(r, dir->fd, e->d_name);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* One pass over the top: each directory in it is emptied and removed.  1: there may be more. */
static int pass(struct emptying *r)
{
	int left = 0;
	auto_fd_dir struct fd_dir *dir = fd_open_dir(r->top_fd, ".");
	if (!dir)
		return -errno;
	for (const struct dirent *e; (e = fd_next_entry(dir)) != NULL;) {
		left = 1;
		if (unlinkat(r->top_fd, e->d_name, 0) == 0 || errno == ENOENT)
			continue;
		int rc = empty_one(r, r->top_fd, e->d_name);
		if (rc < 0)
			return rc;
		if (unlinkat(r->top_fd, e->d_name, AT_REMOVEDIR) < 0 && errno != ENOENT &&
		    errno != ENOTEMPTY)
			return -errno;
	}
	return left;
}

int empty_dir(int dir_fd, const char *name)
{
	auto_fd int top_fd = open_any_mode(dir_fd, name);
	if (top_fd < 0)
		return -errno;
	struct emptying r = { .top_fd = top_fd };
	int rc = 1;
	for (unsigned i = 0; rc > 0 && i < PASSES_MAX; i++)
		rc = pass(&r);
	return rc > 0 ? -ELOOP : rc;
}
