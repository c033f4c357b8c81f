/* SPDX-License-Identifier: Apache-2.0 */
/* The mount API by descriptors. */
#include "rootfs/mounts.h"

#include <assert.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

#define LEVEL_BYTES 2 /* "e ", "w " or "i " before a message: fsopen(2) */

int mounts_check_device(const struct stat *st, const char *path, unsigned major_number,
			unsigned minor_number, struct cj_error *err)
{
	if (S_ISCHR(st->st_mode) && st->st_rdev == makedev(major_number, minor_number))
		return 0;
	return cj_reject(err, "'%s' is not the device %u:%u", path, major_number, minor_number);
}

int mounts_open_device(int dev_fd, const char *path, unsigned major_number, unsigned minor_number,
		       struct cj_error *err)
{
	struct stat st;
	auto_fd int fd = sys_openat2(dev_fd, path + strlen("/dev/"), O_PATH | O_NOFOLLOW, 0,
				     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	if (fd < 0 || fstat(fd, &st) < 0)
		return cj_fail(err, errno, "open '%s'", path);
	if (mounts_check_device(&st, path, major_number, minor_number, err) < 0)
		return -err->code;
	return take_fd(&fd);
}

/*
 * A file system explains a failure better than errno: reading its context gives a message of
 * the form "e overlay: text" (fsopen(2)).  If there is none, only errno is reported.
 */
static int fail_with_log(int context_fd, int code, const char *type, const char *doing,
			 struct cj_error *err)
{
	char text[256];
	ssize_t size = sys_read(context_fd, text, sizeof(text) - 1);
	if (size <= LEVEL_BYTES)
		return cj_fail(err, code, "%s a '%s' file system", doing, type);

	text[size] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return cj_fail(err, code, "%s a '%s' file system (%s)", doing, type, text + LEVEL_BYTES);
}

int mounts_create(const char *type, const struct mounts_option *options, size_t noptions,
		  uint64_t attrs, struct cj_error *err)
{
	auto_fd int context_fd = fsopen(type, FSOPEN_CLOEXEC);
	if (context_fd < 0)
		return cj_fail(err, errno, "open a '%s' file system", type);

	for (size_t i = 0; i < noptions; i++) {
		unsigned command = options[i].value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;
		if (fsconfig(context_fd, command, options[i].key, options[i].value, 0) < 0)
			return fail_with_log(context_fd, errno, type, options[i].key, err);
	}

	if (fsconfig(context_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return fail_with_log(context_fd, errno, type, "create", err);

	int tree_fd = fsmount(context_fd, FSMOUNT_CLOEXEC, (unsigned)attrs);
	if (tree_fd < 0)
		return fail_with_log(context_fd, errno, type, "mount", err);
	return tree_fd;
}

int mounts_add(const char *type, const char *path, unsigned long flags, const char *options,
	       struct cj_error *err)
{
	if (mount(type, path, type, flags, options) < 0)
		return cj_fail(err, errno, "mount a '%s' file system", type);
	return 0;
}

int mounts_add_tmpfs(const char *path, unsigned long flags, const char *options,
		     struct cj_error *err)
{
	if (mounts_add("tmpfs", path, flags, options, err) < 0)
		return -err->code;
	int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? cj_fail(err, errno, "open '%s'", path) : fd;
}

int mounts_clone(int dir_fd, const char *path, uint64_t attrs, const char *name,
		 struct cj_error *err)
{
	auto_fd int tree_fd = sys_open_tree(dir_fd, path,
					    OPEN_TREE_CLONE | AT_RECURSIVE | AT_SYMLINK_NOFOLLOW |
						AT_NO_AUTOMOUNT | AT_EMPTY_PATH);
	if (tree_fd < 0)
		return cj_fail(err, errno, "clone the mount of '%s'", name);

	if (attrs != 0 && mounts_restrict_all(tree_fd, attrs, name, err) < 0)
		return -err->code;
	return take_fd(&tree_fd);
}

static int set_attrs(int tree_fd, unsigned flags, uint64_t set, uint64_t clear, const char *name,
		     struct cj_error *err)
{
	struct mount_attr wanted = { .attr_set = set, .attr_clr = clear };
	if (sys_mount_setattr(tree_fd, "", AT_EMPTY_PATH | flags, &wanted) < 0)
		return cj_fail(err, errno, "restrict the mount of '%s'", name);
	return 0;
}

int mounts_restrict(int tree_fd, uint64_t attrs, const char *name, struct cj_error *err)
{
	return set_attrs(tree_fd, 0, attrs, 0, name, err);
}

int mounts_restrict_all(int tree_fd, uint64_t attrs, const char *name, struct cj_error *err)
{
	return set_attrs(tree_fd, AT_RECURSIVE, attrs, 0, name, err);
}

int mounts_open_for_writing(int tree_fd, const char *name, struct cj_error *err)
{
	return set_attrs(tree_fd, 0, 0, MOUNT_ATTR_RDONLY, name, err);
}

int mounts_resolve(int root_fd, const char *path, struct cj_error *err)
{
	/* IN_ROOT: ".." and "/" stop at root_fd.  Not O_NOFOLLOW: with O_PATH that would open a
	 * link at the end of the path as a place, instead of refusing it with ELOOP. */
	const uint64_t resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
	int fd = sys_openat2(root_fd, path, O_PATH, 0, resolve);
	if (fd < 0)
		return cj_fail(err, errno, "find the mount point '%s'", path);
	return fd;
}

int mounts_attach(int tree_fd, int place_fd, const char *name, struct cj_error *err)
{
	unsigned flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH;
	if (move_mount(tree_fd, "", place_fd, "", flags) < 0)
		return cj_fail(err, errno, "attach a mount at '%s'", name);
	return 0;
}

int mounts_attach_in(int tree_fd, int dir_fd, const char *entry, const char *name,
		     struct cj_error *err)
{
	assert(!strchr(entry, '/'));
	/* Without MOVE_MOUNT_T_SYMLINKS a link at the end of the path is not followed. */
	if (move_mount(tree_fd, "", dir_fd, entry, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return cj_fail(err, errno, "attach a mount at '%s'", name);
	return 0;
}

int mounts_attach_at(int tree_fd, const char *place, const char *name, struct cj_error *err)
{
	if (move_mount(tree_fd, "", AT_FDCWD, place, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return cj_fail(err, errno, "attach a mount at '%s'", name);
	return 0;
}

int mounts_bind(int fd, const char *below, const char *place, const char *name,
		struct cj_error *err)
{
	char source[64];
	int size = snprintf(source, sizeof(source), "/proc/self/fd/%d%s", fd, below);
	assert(size > 0 && (size_t)size < sizeof(source));
	if (mount(source, place, NULL, MS_BIND | MS_REC, NULL) < 0)
		return cj_fail(err, errno, "mount '%s'", name);
	return 0;
}

static int swap_roots(int root_fd, struct cj_error *err)
{
	if (fchdir(root_fd) < 0)
		return cj_fail(err, errno, "enter the new root");

	/* Both names are ".": the old root is stacked on the new one, and umount2(2) removes it:
	 * pivot_root(2), NOTES. */
	if (sys_pivot_root(".", ".") == 0)
		return 0;
	(void)!cj_fail(err, errno, "pivot to the new root");
	return cj_hint_for(err, EINVAL,
			   "it cannot replace an initramfs: leave that with switch_root(8) first");
}

static int detach_old_root(struct cj_error *err)
{
	return umount2(".", MNT_DETACH) < 0 ? cj_fail(err, errno, "detach the old root") : 0;
}

int mounts_pivot(int root_fd, struct cj_error *err)
{
	/* The working directory is the new root since swap_roots(). */
	return swap_roots(root_fd, err) < 0 ? -err->code : detach_old_root(err);
}

int mounts_pivot_from_peers(int root_fd, struct cj_error *err)
{
	auto_fd int old_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (old_fd < 0)
		return cj_fail(err, errno, "open '/'");
	if (swap_roots(root_fd, err) < 0)
		return -err->code;
	/* mount(2) takes "." for the working directory itself, not for what lies on it. */
	if (fchdir(old_fd) < 0 || mount(NULL, ".", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return cj_fail(err, errno, "make the mounts of the old root private");
	if (detach_old_root(err) < 0)
		return -err->code;
	return chdir("/") < 0 ? cj_fail(err, errno, "enter '/'") : 0;
}
