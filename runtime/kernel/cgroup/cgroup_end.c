/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a leaf, by its supervisor, by its record or by a sweep.  Each wait has a limit. */
#include "runtime/kernel/cgroup/cgroup.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/kernel/cgroup/cgroup_parent.h"
#include "runtime/kernel/cgroup/cgroup_tree.h"

#define EMPTY_WAIT_MS  700 /* killed processes leave within a few; a loaded host takes longer */
#define REMOVE_WAIT_MS 300

void cgroup_kill(const struct cgroup *c)
{
	struct cj_error ignored; /* the caller calls again, or removing the leaf fails */
	if (c->dir_fd >= 0)
		(void)cgroup_tree_kill(c->dir_fd, 0, &ignored);
}

bool cgroup_wait_empty(const struct cgroup *c, unsigned timeout_ms)
{
	return c->dir_fd < 0 || cgroup_tree_wait_empty(c->dir_fd, timeout_ms);
}

/* The next sweep finds a leaf that is left. */
static int end_leaf(const struct cgroup *c)
{
	struct cj_error ignored; /* removing it says whether it is empty */
	if (rmdir(c->path) == 0)
		return 0; /* the usual end: init was the last, and has been reaped */
	if (cgroup_tree_remove(AT_FDCWD, c->path, 0) == 0)
		return 0; /* the same, of a leaf that was divided */
	(void)cgroup_tree_kill(c->dir_fd, EMPTY_WAIT_MS, &ignored);
	return cgroup_tree_remove(AT_FDCWD, c->path, REMOVE_WAIT_MS);
}

void cgroup_close(struct cgroup *c)
{
	cj_close(&c->cpu_fd);
	cj_close(&c->init_fd);
	cj_close(&c->dir_fd);
	cj_close(&c->parent_fd);
	*c = CGROUP_NULL;
}

bool cgroup_destroy(struct cgroup *c)
{
	bool is_gone = c->dir_fd < 0 || end_leaf(c) == 0;
	cgroup_close(c);
	return is_gone;
}

/* A record may be stale or forged: opens only a leaf, and only that of the same inode number. */
static int open_leaf(const char *path, uint64_t inode, struct cgroup *out)
{
	if (path[0] != '/' || !cgroup_text_leaf_id(path) || strlen(path) >= sizeof(out->path))
		return -EINVAL;

	auto_fd int fd = sys_openat2(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0, RESOLVE_NO_SYMLINKS);
	struct statfs fs;
	struct stat st;
	if (fd < 0 || fstatfs(fd, &fs) < 0 || fstat(fd, &st) < 0)
		return errno == ELOOP || errno == ENOTDIR ? -EINVAL : -errno;
	if (fs.f_type != CGROUP2_SUPER_MAGIC)
		return -EINVAL;
	if (inode != 0 && st.st_ino != inode)
		return -ENOENT;
	memcpy(out->path, path, strlen(path) + 1);
	out->dir_fd = take_fd(&fd);
	return 0;
}

int cgroup_remove_path(const char *path, uint64_t inode, struct cj_error *err)
{
	struct cgroup leaf = CGROUP_NULL;
	int rc = open_leaf(path, inode, &leaf);
	if (rc == -ENOENT)
		return 0;
	if (rc == -EINVAL)
		return cj_reject(err, "'%s' is not a cgroup of a jail", path);
	if (rc == 0 && inode != 0)
		rc = end_leaf(&leaf);
	else if (rc == 0) /* killed before its record had the inode */
		rc = cgroup_tree_remove(AT_FDCWD, path, REMOVE_WAIT_MS);
	cj_close(&leaf.dir_fd);
	return rc < 0 ? cj_fail(err, -rc, "remove cgroup '%s'", path) : 0;
}

/* --- leaves without a supervisor -------------------------------------------------------- */

/* A session's leaf has children.  Another program's cgroup may have the name of a leaf. */
static bool has_only_our_children(int dir_fd)
{
	auto_dir DIR *dir = fd_open_dir(dir_fd, ".");
	for (struct dirent *e; dir && (e = readdir(dir)) != NULL;)
		if (e->d_type == DT_DIR && e->d_name[0] != '.' && !cgroup_text_is_child(e->d_name))
			return false;
	return dir != NULL;
}

/* The lock is kept until the leaf is gone.  The kernel removes none that has processes. */
static bool remove_abandoned(int parent_fd, const char *name)
{
	struct stat st;
	auto_fd int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
	       flock(fd, LOCK_EX | LOCK_NB) == 0 && has_only_our_children(fd) &&
	       cgroup_tree_remove(parent_fd, name, 0) == 0;
}

unsigned cgroup_sweep_in(int parent_fd)
{
	unsigned removed = 0;
	auto_dir DIR *dir = fd_open_dir(parent_fd, ".");
	for (struct dirent *e; dir && (e = readdir(dir)) != NULL;)
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
