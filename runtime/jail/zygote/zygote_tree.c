/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/jail/zygote/zygote_tree.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "rootfs/mounts.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/step.h"
#include "runtime/base/sys.h"
#include "runtime/kernel/process/privileges.h"

enum tree_step { TREE_MADE, TREE_STEP_COUNT };
static const char *const tree_step_names[TREE_STEP_COUNT] = { [TREE_MADE] = "tree" };

#define TREE_TIMEOUT_MS 10000

/* <linux/mount.h> has no prototype for <fcntl.h>'s flag. */
#define RECURSIVE 0x8000 /* AT_RECURSIVE */

static int copy_tree(struct cj_error *err)
{
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
	};
	auto_fd int tree_fd = sys_open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE | RECURSIVE);
	if (tree_fd < 0)
		return cj_fail(err, errno, "copy the mount tree");
	if (sys_mount_setattr(tree_fd, "", AT_EMPTY_PATH | RECURSIVE, &attr) < 0)
		return cj_fail(err, errno, "make a copy of the mount tree read-only");
	return take_fd(&tree_fd);
}

/* From here: the child, in namespaces of its own. */
static int make_both(const struct step_link *link, uid_t uid, gid_t gid, struct cj_error *err)
{
	static const struct mounts_option options[] = {
		{ "size", ZYGOTE_SCRATCH_SIZE },
		{ "mode", "0700" },
	};
	auto_fd int tree_fd = copy_tree(err);
	if (tree_fd < 0)
		return tree_fd;
	if (privileges_map_own(uid, gid, err) < 0) /* files need a mapped owner */
		return cj_wrap(err, "map the ids of the zygote");
	auto_fd int scratch_fd = mounts_create("tmpfs", options, COUNT_OF(options),
					       MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
	if (scratch_fd < 0)
		return scratch_fd;
	const int fds[] = { tree_fd, scratch_fd };
	return step_tell(link, TREE_MADE, NULL, 0, fds, 2, err);
}

void zygote_tree_close(struct zygote_tree *t)
{
	cj_close(&t->tree_fd);
	cj_close(&t->scratch_fd);
}

int zygote_tree_open(struct zygote_tree *out, struct cj_error *err)
{
	const uid_t uid = geteuid();
	const gid_t gid = getegid();
	int ends[2];
	if (step_pair(ends, TREE_TIMEOUT_MS, err) < 0)
		return -err->code;
	auto_fd int near_fd = ends[0], far_fd = ends[1];
	auto_child int pidfd = -1;
	const struct clone_args args = {
		.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_PIDFD,
		.pidfd = (uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};
	pid_t pid = sys_clone3(&args);
	if (pid < 0)
		return cj_fail(err, errno, "create a mount namespace");
	if (pid == 0) {
		const struct step_link link = { far_fd, "the supervisor", tree_step_names };
		if (make_both(&link, uid, gid, err) < 0)
			step_abort(&link, err);
		_exit(EXIT_SUCCESS);
	}
	cj_close(&far_fd);

	const struct step_link link = { near_fd, "the process that copies mounts",
					tree_step_names };
	auto_step_msg struct step_msg made = { 0 };
	if (step_await(&link, TREE_MADE, &made, err) < 0)
		return -err->code;
	if (made.nfds != 2)
		return cj_fail(err, EPROTO, "receive a copy of the mount tree");
	*out = (struct zygote_tree){ take_fd(&made.fds[0]), take_fd(&made.fds[1]) };
	return 0;
}

/* Links are followed as if the copy were the root.  -1 and errno when it is no program. */
static int open_program(int tree_fd, const char *path)
{
	struct stat st;
	auto_fd int fd =
	    sys_openat2(tree_fd, path, O_PATH, 0, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		return -1;
	if (!S_ISREG(st.st_mode) || !(st.st_mode & 0111)) {
		errno = EACCES;
		return -1;
	}
	return take_fd(&fd);
}

/* In the first directory of `path` that has it. */
static int search(int tree_fd, const char *name, const char *path)
{
	if (strchr(name, '/'))
		return open_program(tree_fd, name);
	for (const char *dir = path, *end; *dir; dir = *end ? end + 1 : end) {
		char file[PATH_MAX];
		end = strchrnul(dir, ':');
		int size = snprintf(file, sizeof(file), "%.*s/%s", (int)(end - dir), dir, name);
		if (*dir != '/' || size < 0 || (size_t)size >= sizeof(file))
			continue;
		int fd = open_program(tree_fd, file);
		/* EAGAIN: not found out, and the next directory's program would be another one */
		if (fd >= 0 || errno == EAGAIN)
			return fd;
	}
	errno = ENOENT;
	return -1;
}

int zygote_tree_find(int tree_fd, const char *name, const char *path, struct cj_error *err)
{
	char real[PATH_MAX];
	auto_fd int fd = search(tree_fd, name, path);
	if (fd < 0)
		return cj_fail(err, errno, "find the interpreter '%s'", name);
	if (!fd_real_path(fd, real) || strncmp(real, "/usr/", strlen("/usr/")) != 0)
		return cj_reject(err, "the interpreter '%s' is not below /usr", name);
	return take_fd(&fd);
}
