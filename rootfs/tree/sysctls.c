/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel parameters of namespaces. */
#include "rootfs/tree/sysctls.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "rootfs/mounts.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

/* NO_XDEV: a file that something is mounted over is refused. */
#define RESOLVE_SYSCTL                                                                             \
	(RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

/*
 * A procfs that is attached nowhere.  The kernel refuses one where the caller's own /proc has masks
 * or where the pid namespace is not the container's own; then it is the host's, which no container
 * can mount on.
 */
static int open_proc(struct cj_error *err)
{
	auto_fd int fd = mounts_create(
	    "proc", NULL, 0, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, err);
	if (fd == -EPERM) {
		*err = (struct cj_error){ 0 };
		fd = open("/proc", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			return cj_fail(err, errno, "open '/proc'");
	}
	if (fd < 0)
		return fd;
	struct statfs fs;
	if (fstatfs(fd, &fs) < 0)
		return cj_fail(err, errno, "look at '/proc'");
	if (fs.f_type != PROC_SUPER_MAGIC)
		return cj_reject(err, "'/proc' is no procfs");
	return take_fd(&fd);
}

static int write_one(int proc_fd, const struct sysctl *item, struct cj_error *err)
{
	char path[256];
	int length = snprintf(path, sizeof(path), "sys/%s", item->path);
	if (length < 0 || (size_t)length >= sizeof(path))
		return cj_fail(err, ENAMETOOLONG, "sysctl '%s'", item->name);
	auto_fd int fd = sys_openat2(proc_fd, path, O_WRONLY, 0, RESOLVE_SYSCTL);
	if (fd < 0) {
		(void)!cj_fail(err, errno, "sysctl '%s'", item->name);
		return cj_hint_for(err, ENOENT,
				   "this kernel does not have it, or not in this namespace");
	}
	/* One write(2): proc(5). */
	size_t size = strlen(item->value);
	if (sys_write(fd, item->value, size) != (ssize_t)size)
		return cj_fail(err, errno, "sysctl '%s': write '%s'", item->name, item->value);
	return 0;
}

/* Names in /proc/PID/ns: namespaces(7). */
static const char *const space_names[SYSCTL_NAMESPACES] = {
	[SYSCTL_IPC] = "ipc",
	[SYSCTL_NET] = "net",
	[SYSCTL_USER] = "user",
	[SYSCTL_UTS] = "uts",
};

int sysctls_look_at_host(struct sysctl_host *out, struct cj_error *err)
{
	for (size_t i = 0; i < SYSCTL_NAMESPACES; i++) {
		char path[32];
		struct stat st;
		(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", space_names[i]);
		if (stat(path, &st) < 0)
			return cj_fail(err, errno, "look at '%s'", path);
		out->spaces[i] = st.st_ino;
	}
	return 0;
}

static int check_spaces(const struct sysctl *items, size_t count, const struct sysctl_host *host,
			struct cj_error *err)
{
	struct sysctl_host own;
	if (sysctls_look_at_host(&own, err) < 0)
		return -err->code;
	for (size_t i = 0; i < count; i++) {
		enum sysctl_namespace space = items[i].space;
		if (own.spaces[space] == host->spaces[space])
			return cj_reject(err,
					 "sysctl '%s': the container is in the host's %s namespace",
					 items[i].name, space_names[space]);
	}
	return 0;
}

int sysctls_write(const struct sysctl *items, size_t count, const struct sysctl_host *host,
		  struct cj_error *err)
{
	if (count == 0)
		return 0;
	if (check_spaces(items, count, host, err) < 0)
		return -err->code;
	auto_fd int proc_fd = open_proc(err);
	if (proc_fd < 0)
		return proc_fd;
	for (size_t i = 0; i < count; i++) {
		if (write_one(proc_fd, &items[i], err) < 0)
			return -err->code;
	}
	return 0;
}
