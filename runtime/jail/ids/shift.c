/* SPDX-License-Identifier: Apache-2.0 */
/* ID-mapped clones of host directories.  Acts. */
#include "runtime/jail/ids/shift.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "rootfs/mounts.h"
#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

/* Lives until the last copy of the pipe's other end is closed. */
static _Noreturn void hold_namespace(int pipe_fds[2])
{
	char byte;
	cj_close(&pipe_fds[1]);
	(void)sys_read(pipe_fds[0], &byte, 1);
	_exit(EXIT_SUCCESS);
}

static int put_map(pid_t pid, const char *name, unsigned from, unsigned to, struct cj_error *err)
{
	char path[48], line[48];
	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	(void)snprintf(line, sizeof(line), "%u %u 1", from, to);
	int rc = system_file_write(AT_FDCWD, path, line);
	return rc < 0 ? cj_fail(err, -rc, "write '%s' to '%s'", line, name) : 0;
}

static int open_namespace(pid_t pid, const struct stat *owner, const struct idmap *ids,
			  struct cj_error *err)
{
	if (put_map(pid, "uid_map", owner->st_uid, ids->uid, err) < 0 ||
	    put_map(pid, "gid_map", owner->st_gid, ids->gid, err) < 0)
		return -err->code;
	char path[48];
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? cj_fail(err, errno, "open the user namespace of a helper") : fd;
}

/* A user namespace that only serves as a map from one owner to the jail's user. */
static int create_namespace(const struct stat *owner, const struct idmap *ids, struct cj_error *err)
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
	if (pid == 0)
		hold_namespace(ends);
	int code = errno;
	cj_close(&ends[0]);
	int fd = pid < 0 ? cj_fail(err, code, "create a user namespace")
			 : open_namespace(pid, owner, ids, err);
	cj_close(&ends[1]);
	cj_end_child(&pidfd);
	return fd;
}

static int set_ids(int tree_fd, const struct stat *owner, const struct idmap *ids,
		   struct cj_error *err)
{
	auto_fd int namespace_fd = create_namespace(owner, ids, err);
	if (namespace_fd < 0)
		return namespace_fd;
	struct mount_attr wanted = {
		.attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
			    MOUNT_ATTR_NODEV,
		.userns_fd = (uint64_t)namespace_fd,
	};
	if (sys_mount_setattr(tree_fd, "", AT_EMPTY_PATH, &wanted) == 0)
		return 0;
	int rc = cj_fail(err, errno, "give it the jail's ids");
	cj_hint(err, "its file system or this kernel has no ID-mapped mounts for us: start cejail "
		     "as the directory's owner, or copy it in with --file");
	return rc;
}

static int shift_one(const char *source, const struct idmap *ids, struct cj_error *err)
{
	auto_fd int dir_fd = sys_openat2(AT_FDCWD, source, O_PATH | O_DIRECTORY, 0,
					 RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	struct stat owner;
	if (dir_fd < 0 || fstat(dir_fd, &owner) < 0)
		return cj_fail(err, errno, "open it");
	auto_fd int tree_fd =
	    sys_open_tree(dir_fd, "", OPEN_TREE_CLONE | AT_NO_AUTOMOUNT | AT_EMPTY_PATH);
	if (tree_fd < 0)
		return cj_fail(err, errno, "clone its mount");
	int rc = set_ids(tree_fd, &owner, ids, err);
	return rc < 0 ? rc : take_fd(&tree_fd);
}

int shift_lowers(const struct rootfs_spec *root, const struct idmap *ids, int out_fds[OVERLAYS_MAX],
		 size_t *out_count, struct cj_error *err)
{
	*out_count = 0;
	for (size_t i = 0; ids->lock_fd >= 0 && i < root->nbinds; i++) {
		if (root->binds[i].kind != BIND_OVERLAY || *out_count == OVERLAYS_MAX)
			continue;
		int fd = shift_one(root->binds[i].source, ids, err);
		if (fd < 0) {
			while (*out_count > 0)
				cj_close(&out_fds[--*out_count]);
			return cj_wrap(err, "--overlay '%s'", root->binds[i].source);
		}
		out_fds[(*out_count)++] = fd;
	}
	return 0;
}
