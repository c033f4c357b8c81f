/* SPDX-License-Identifier: Apache-2.0 */
/* The jail's /dev. */
#include "rootfs/rootfs_parts.h"

#include <fcntl.h>
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

int devices_open(struct rootfs_entries *list, bool with_tty, int *out_dev_fd, struct cj_error *err)
{
	auto_fd int dev_fd = mounts_clone(AT_FDCWD, ROOTFS_PARK, DEVICE_ATTRS, ROOTFS_PARK, err);
	if (dev_fd < 0)
		return dev_fd;
	for (size_t i = 0; i < COUNT_OF(devices); i++) {
		struct rootfs_entry entry = { .path = devices[i].path };
		if (devices[i].is_tty && !with_tty)
			continue;
		/* The open node is checked: nothing can be put in its place any more. */
		entry.fd = mounts_open_device(dev_fd, entry.path, devices[i].major_number,
					      devices[i].minor_number, err);
		if (entry.fd < 0 || rootfs_entries_add(list, &entry, err) < 0)
			return -err->code;
	}
	*out_dev_fd = take_fd(&dev_fd);
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
