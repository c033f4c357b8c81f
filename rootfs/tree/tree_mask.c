/* SPDX-License-Identifier: Apache-2.0 */
/* Masks and read-only paths.  Acts. */
#include "rootfs/tree/tree_mask.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "rootfs/mounts.h"
#include "rootfs/tree/tree_mount.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

/* Read-only: the root of a container without a user namespace could change the mode of the host's
 * /dev/null through a mask. */
static const struct tree_attrs null_attrs = {
	.set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
	.clear = MOUNT_ATTR_NODEV,
};

int tree_mask_open(struct tree_masks *masks, int dev_fd, struct cj_error *err)
{
	auto_fd int fd = sys_openat2(dev_fd, "null", O_PATH | O_NOFOLLOW, 0,
				     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	if (fd < 0)
		return cj_fail(err, errno, "open '/dev/null'");
	if (!mounts_is_device(fd, 1, 3))
		return cj_reject(err, "'/dev/null' is not the device 1:3");
	auto_fd int null_fd = tree_mount_clone(fd, false, "/dev/null", err);
	if (null_fd < 0)
		return null_fd;
	int rc = tree_mount_restrict(null_fd, &null_attrs, "/dev/null", err);
	if (rc == 0)
		masks->null_fd = take_fd(&null_fd);
	return rc;
}

void tree_mask_close(struct tree_masks *masks)
{
	cj_close(&masks->null_fd);
	cj_close(&masks->empty_fd);
}

static int create_empty(struct cj_error *err)
{
	static const struct mounts_option options[] = {
		{ "mode", "0555" },
		{ "size", "4k" },
		{ "nr_inodes", "2" },
	};
	return mounts_create(
	    "tmpfs", options, sizeof(options) / sizeof(options[0]),
	    MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, err);
}

/* Attaches the mount itself the first time; from then on it is one of this namespace, which
 * open_tree(2) clones. */
static int attach_copy(int tree_fd, bool *is_attached, int place_fd, const char *name,
		       struct cj_error *err)
{
	if (!*is_attached) {
		int rc = mounts_attach(tree_fd, place_fd, name, err);
		*is_attached = rc == 0;
		return rc;
	}
	auto_fd int copy_fd = tree_mount_clone(tree_fd, false, name, err);
	return copy_fd < 0 ? copy_fd : mounts_attach(copy_fd, place_fd, name, err);
}

int tree_mask_cover(struct tree_masks *masks, int place_fd, const char *name, struct cj_error *err)
{
	struct stat st;
	if (fstat(place_fd, &st) < 0)
		return cj_fail(err, errno, "look at '%s'", name);
	if (!S_ISDIR(st.st_mode))
		return attach_copy(masks->null_fd, &masks->null_is_attached, place_fd, name, err);
	if (masks->empty_fd < 0)
		masks->empty_fd = create_empty(err);
	if (masks->empty_fd < 0)
		return masks->empty_fd;
	return attach_copy(masks->empty_fd, &masks->empty_is_attached, place_fd, name, err);
}

int tree_mask_make_read_only(int place_fd, const char *name, struct cj_error *err)
{
	auto_fd int tree_fd = mounts_clone(place_fd, "", MOUNT_ATTR_RDONLY, name, err);
	return tree_fd < 0 ? tree_fd : mounts_attach(tree_fd, place_fd, name, err);
}
