/* SPDX-License-Identifier: Apache-2.0 */
/* The jail's /dev. */
#include "rootfs/rootfs_parts.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>

#include "rootfs/mounts.h"
#include "runtime/base/scope.h"

/* Numbers: Documentation/admin-guide/devices.txt. */
/* clang-format off */
static const struct {
	const char *path;
	unsigned major_number, minor_number;
	bool is_tty;
} devices[] = {
	{ "/dev/null",    1, 3, false },
	{ "/dev/zero",    1, 5, false },
	{ "/dev/full",    1, 7, false },
	{ "/dev/random",  1, 8, false },
	{ "/dev/urandom", 1, 9, false },
	{ "/dev/tty",     5, 0, true },
};
/* clang-format on */

/* Read-only does not forbid writing to a device, but protects its mode and times.  These are the
 * only mounts without nodev. */
#define DEVICE_ATTRS (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC)

#define DEVICES (sizeof(devices) / sizeof(devices[0]))

int devices_open(struct rootfs_entries *list, bool with_tty, int *out_dev_fd, struct cj_error *err)
{
	auto_fd int dev_fd = mounts_clone(AT_FDCWD, ROOTFS_PARK, DEVICE_ATTRS, ROOTFS_PARK, err);
	if (dev_fd < 0 || mounts_attach_at(dev_fd, ROOTFS_PARK, ROOTFS_PARK, err) < 0)
		return -err->code;
	for (size_t i = 0; i < DEVICES; i++) {
		const struct rootfs_entry place = { .path = devices[i].path, .fd = -1 };
		if ((with_tty || !devices[i].is_tty) && rootfs_entries_add(list, &place, err) < 0)
			return -err->code;
	}
	*out_dev_fd = take_fd(&dev_fd);
	return 0;
}

int devices_attach(int dev_fd, bool with_tty, int root_fd, struct cj_error *err)
{
	for (size_t i = 0; i < DEVICES; i++) {
		const char *path = devices[i].path;
		char place[sizeof(ROOTFS_PARK) + 16];
		struct stat st;
		if (devices[i].is_tty && !with_tty)
			continue;
		(void)snprintf(place, sizeof(place), ROOTFS_PARK "%s", path);
		if (mounts_bind(dev_fd, path + strlen("/dev"), place, path, err) < 0)
			return -err->code;
		/* What is mounted is checked: nothing can be put in its place any more. */
		if (fstatat(root_fd, path + 1, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return cj_fail(err, errno, "look at '%s'", path);
		if (mounts_check_device(&st, path, devices[i].major_number, devices[i].minor_number,
					err) < 0)
			return -err->code;
	}
	return 0;
}

/*
 * An instance of its own: the jail sees only terminals that it opens.  pts(4)  The kernel has 4096
 * for all of the host (kernel.pty.max), and no cgroup counts the unread bytes in them.
 */
#define TERMINALS_MAX "16"

int devices_attach_terminals(struct cj_error *err)
{
	return mounts_add("devpts", ROOTFS_PARK "/dev/pts", MS_NOSUID | MS_NOEXEC,
			  "ptmxmode=0666,mode=0620,max=" TERMINALS_MAX, err);
}
