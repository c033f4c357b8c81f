/* SPDX-License-Identifier: Apache-2.0 */
/* The jail's /dev. */
#include "rootfs/rootfs_parts.h"

#include <fcntl.h>
#include <sys/mount.h>

#include "rootfs/mounts.h"
#include "rootfs/skeleton.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

/* Numbers: Documentation/admin-guide/devices.txt. */
/* clang-format off */
static const struct {
	const char *name, *path;
	unsigned major_number, minor_number;
	bool is_tty;
} devices[] = {
	{ "null",    "/dev/null",    1, 3, false },
	{ "zero",    "/dev/zero",    1, 5, false },
	{ "full",    "/dev/full",    1, 7, false },
	{ "random",  "/dev/random",  1, 8, false },
	{ "urandom", "/dev/urandom", 1, 9, false },
	{ "tty",     "/dev/tty",     5, 0, true },
};
/* clang-format on */

#define DEVICE_COUNT (sizeof(devices) / sizeof(devices[0]))
_Static_assert(DEVICE_COUNT == DEVICES_MAX, "a descriptor for every device");

/* Read-only does not forbid writing to a device, but protects its mode and times.  These are the
 * only mounts without nodev. */
#define DEVICE_ATTRS (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC)

static int open_device(size_t i, int dev_fd, struct cj_error *err)
{
	auto_fd int fd = sys_openat2(dev_fd, devices[i].name, O_PATH | O_NOFOLLOW, 0,
				     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	if (fd < 0)
		return cj_fail(err, errno, "open '%s'", devices[i].path);
	if (!mounts_is_device(fd, devices[i].major_number, devices[i].minor_number))
		return cj_reject(err, "'%s' is not the device %u:%u", devices[i].path,
				 devices[i].major_number, devices[i].minor_number);
	return mounts_clone(fd, "", DEVICE_ATTRS, devices[i].path, err);
}

int devices_open(struct device_sources *out, int dev_fd, bool with_tty, struct cj_error *err)
{
	for (size_t i = 0; i < DEVICE_COUNT; i++)
		out->fds[i] = -1;

	for (size_t i = 0; i < DEVICE_COUNT; i++) {
		if (devices[i].is_tty && !with_tty)
			continue;
		out->fds[i] = open_device(i, dev_fd, err);
		if (out->fds[i] < 0) {
			devices_close(out);
			return -err->code;
		}
	}
	return 0;
}

void devices_close(struct device_sources *sources)
{
	for (size_t i = 0; i < DEVICE_COUNT; i++)
		cj_close(&sources->fds[i]);
}

int devices_add_places(const struct device_sources *sources, int skeleton_fd, struct cj_error *err)
{
	for (size_t i = 0; i < DEVICE_COUNT; i++) {
		if (sources->fds[i] < 0)
			continue;
		if (skeleton_add_place(skeleton_fd, devices[i].path + 1, false, err) < 0)
			return -err->code;
	}
	return 0;
}

/*
 * An instance of its own: the jail sees only terminals that it opens.  pts(4)  The kernel has 4096
 * for all of the host (kernel.pty.max), and no cgroup counts the unread bytes in them.
 */
#define TERMINALS_MAX "16"

static const struct mounts_option terminal_options[] = {
	{ "ptmxmode", "0666" },
	{ "mode", "0620" },
	{ "max", TERMINALS_MAX },
};

int devices_attach(const struct device_sources *sources, int root_fd, struct cj_error *err)
{
	auto_fd int dev_fd = mounts_resolve(root_fd, "/dev", err);
	if (dev_fd < 0)
		return dev_fd;
	for (size_t i = 0; i < DEVICE_COUNT; i++) {
		if (sources->fds[i] < 0)
			continue;
		if (mounts_attach_in(sources->fds[i], dev_fd, devices[i].name, devices[i].path,
				     err) < 0)
			return -err->code;
	}
	auto_fd int pts_fd = mounts_create("devpts", terminal_options,
					   sizeof(terminal_options) / sizeof(terminal_options[0]),
					   MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, err);
	return pts_fd < 0 ? pts_fd : mounts_attach_in(pts_fd, dev_fd, "pts", "/dev/pts", err);
}
