/* SPDX-License-Identifier: Apache-2.0 */
/* Removes leaves without a living supervisor.  Acts. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "runtime/base/scope.h"
#include "runtime/kernel/cgroup/cgroup.h"
#include "runtime/kernel/cgroup/cgroup_parent.h"
#include "runtime/kernel/cgroup/cgroup_text.h"

/* The lock is kept until the leaf is gone.  The kernel removes none that has processes. */
static bool remove_abandoned(int parent_fd, const char *name)
{
	struct stat st;
	auto_fd int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid() ||
	    flock(fd, LOCK_EX | LOCK_NB) < 0)
		return false;
	if (unlinkat(parent_fd, name, AT_REMOVEDIR) == 0)
		return true;
	/* A session's leaf has children. */
	return errno == EBUSY && cgroup_remove_children(fd) == 0 &&
	       unlinkat(parent_fd, name, AT_REMOVEDIR) == 0;
}

unsigned cgroup_sweep_in(int parent_fd)
{
	auto_fd int fd = openat(parent_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir)
		return 0;
	(void)take_fd(&fd); /* dir's now: fdopendir(3) */

	unsigned removed = 0;
	for (struct dirent *e; (e = readdir(dir)) != NULL;)
		removed += cgroup_text_leaf_id(e->d_name) && remove_abandoned(parent_fd, e->d_name);
	return removed;
}

#define WAYS_MAX 8

/* Opens the path of a parent that can be used; the report may have cut off a long one. */
static int open_parent(const struct cgroup_parent_report *way)
{
	struct statfs fs;
	if (!way->serves || strlen(way->detail) + 1 == sizeof(way->detail))
		return -1;
	auto_fd int fd = open(way->detail, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstatfs(fd, &fs) < 0 || fs.f_type != CGROUP2_SUPER_MAGIC)
		return -1;
	return take_fd(&fd);
}

unsigned cgroup_sweep(void)
{
	struct cgroup_parent_report ways[WAYS_MAX];
	size_t count = cgroup_parent_reports(ways, WAYS_MAX);
	unsigned removed = 0;
	for (size_t i = 0; i < count; i++) {
		auto_fd int fd = open_parent(&ways[i]);
		if (fd >= 0)
			removed += cgroup_sweep_in(fd);
	}
	return removed;
}
