/* SPDX-License-Identifier: Apache-2.0 */
/* Device nodes, links, masks and read-only paths in a tree. */
#include "rootfs/tree/tree_parts.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "rootfs/mounts.h"
#include "runtime/base/scope.h"

/* A device of the host.  Read-only does not forbid writing to it, but protects its mode and owner:
 * the root of a container without a user namespace could change them through the mount. */
static const struct tree_attrs bound_device = {
	.set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
	.clear = MOUNT_ATTR_NODEV,
};

static bool is_device(const struct stat *st, const struct tree_device *device)
{
	if ((st->st_mode & S_IFMT) != device->type)
		return false;
	return device->type == S_IFIFO ||
	       st->st_rdev == makedev(device->major_number, device->minor_number);
}

static int check_existing(int dir_fd, const char *name, const struct tree_op *op,
			  struct cj_error *err)
{
	struct stat st;
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return cj_fail(err, errno, "look at the device '%s'", op->path);
	if (is_device(&st, &op->device))
		return 0;
	return cj_reject_as(err, EEXIST, "'%s' exists and is not the device %u:%u", op->path,
			    op->device.major_number, op->device.minor_number);
}

static int clone_device(int fd, const char *name, struct cj_error *err)
{
	auto_fd int tree_fd = tree_mount_clone(fd, false, name, err);
	if (tree_fd < 0 || tree_mount_restrict(tree_fd, &bound_device, name, err) < 0)
		return -err->code;
	return take_fd(&tree_fd);
}

static int open_host_device(const struct tree_op *op, struct cj_error *err)
{
	auto_fd int fd = open(op->path, O_PATH | O_CLOEXEC);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return cj_fail(err, errno, "open the host's device '%s'", op->path);
	if (!is_device(&st, &op->device))
		return cj_reject(err, "the host's '%s' is not the device %u:%u", op->path,
				 op->device.major_number, op->device.minor_number);
	return clone_device(fd, op->path, err);
}

static int bind_device(const struct tree_path *at, const struct tree_op *op, struct cj_error *err)
{
	auto_fd int tree_fd = open_host_device(op, err);
	if (tree_fd < 0) {
		cj_hint(err, "mknod(2) is not permitted here, so the host's device is bound");
		return tree_fd;
	}
	auto_fd int place_fd = tree_place_open(at, TREE_PLACE_FILE, err);
	if (place_fd < 0)
		return place_fd;
	return mounts_attach(tree_fd, place_fd, op->path, err);
}

int tree_node_add_device(const struct tree_path *at, const struct tree_op *op, struct cj_error *err)
{
	const struct tree_device *device = &op->device;
	const char *name = NULL;
	auto_fd int parent_fd = tree_place_open_parent(at, &name, err);
	if (parent_fd < 0)
		return parent_fd;
	if (device->is_given)
		return check_existing(parent_fd, name, op, err);

	dev_t number =
	    device->type == S_IFIFO ? 0 : makedev(device->major_number, device->minor_number);
	if (mknodat(parent_fd, name, device->type | device->mode, number) == 0) {
		/* The node is ours: nobody else can have made it between the two calls on a new
		 * tmpfs, and elsewhere mknodat(2) would have failed with EEXIST. */
		if ((device->uid == geteuid() && device->gid == getegid()) ||
		    fchownat(parent_fd, name, device->uid, device->gid, AT_SYMLINK_NOFOLLOW) == 0)
			return 0;
		return cj_fail(err, errno, "give the device '%s' to %u:%u", op->path, device->uid,
			       device->gid);
	}
	if (errno == EEXIST)
		return check_existing(parent_fd, name, op, err);
	if (errno == EPERM && device->type != S_IFIFO)
		return bind_device(at, op, err);
	return cj_fail(err, errno, "make the device '%s'", op->path);
}

int tree_node_add_link(const struct tree_path *at, const char *target, struct cj_error *err)
{
	const char *name = NULL;
	auto_fd int parent_fd = tree_place_open_parent(at, &name, err);
	if (parent_fd < 0)
		return parent_fd;
	if (symlinkat(target, parent_fd, name) == 0)
		return 0;
	if (errno != EEXIST)
		return cj_fail(err, errno, "make the link '%s'", at->name);

	char found[PATH_MAX];
	ssize_t size = readlinkat(parent_fd, name, found, sizeof(found) - 1);
	if (size >= 0 && (size_t)size == strlen(target) && memcmp(found, target, (size_t)size) == 0)
		return 0;
	return cj_reject_as(err, EEXIST, "'%s' exists and is not a link to '%s'", at->name, target);
}

int tree_mask_open(struct tree_masks *masks, int dev_fd, struct cj_error *err)
{
	auto_fd int fd = mounts_open_device(dev_fd, "/dev/null", 1, 3, err);
	if (fd < 0)
		return fd;
	masks->null_fd = clone_device(fd, "/dev/null", err);
	return masks->null_fd < 0 ? masks->null_fd : 0;
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
	const struct mounts_option options[] = {
		{ "mode", "0555" },
		{ "size", "4k" },
		{ "nr_inodes", "2" },
		{ TREE_LABEL_OPTION, masks->label },
	};
	const size_t count = COUNT_OF(options) - (masks->label ? 0 : 1);
	struct stat st;
	if (fstat(place_fd, &st) < 0)
		return cj_fail(err, errno, "look at '%s'", name);
	if (!S_ISDIR(st.st_mode))
		return attach_copy(masks->null_fd, &masks->null_is_attached, place_fd, name, err);
	if (masks->empty_fd < 0)
		masks->empty_fd = mounts_create("tmpfs", options, count,
						MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
						    MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
						err);
	if (masks->empty_fd < 0)
		return masks->empty_fd;
	return attach_copy(masks->empty_fd, &masks->empty_is_attached, place_fd, name, err);
}
