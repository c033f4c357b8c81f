/* SPDX-License-Identifier: Apache-2.0 */
/* procfs, and its masks.  Acts; two tables decide what is masked. */
#include "rootfs/proc.h"

#include <assert.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "rootfs/devices.h"
#include "rootfs/mounts.h"
#include "runtime/base/scope.h"

#define PROC_ATTRS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

/* Settings: readable, because programs read some (cap_last_cap, overcommit, pid_max).  Read-only,
 * because some belong to the jail's user, and pid_max is writable inside since Linux 6.14. */
static const char *const read_only_paths[] = { "bus", "fs", "irq", "sys", "sysrq-trigger" };

/* meminfo, cpuinfo, stat, uptime, loadavg, version, filesystems, vmstat stay: runtimes choose
 * sizes by them.  A path that this kernel does not have is skipped. */
static const char *const masked_paths[] = {
	/* where the kernel lies in memory: the first step of most exploits */
	"kallsyms",
	"kcore",
	"iomem",
	"ioports",
	"modules",
	"slabinfo",
	"vmallocinfo",
	"timer_list",
	"timer_stats",
	"sched_debug",
	"latency_stats",
	/* the kernel's log, build and command line: these have contained passwords */
	"kmsg",
	"cmdline",
	"bootconfig",
	"config.gz",
	/* other users' keys, by name and number: keyrings(7) */
	"keys",
	"key-users",
	/* the machine's hardware and its use by others */
	"acpi",
	"asound",
	"scsi",
	"diskstats",
	"partitions",
	"interrupts",
	/* pressure stall information; since Linux 6.6 a write makes the kernel monitor it */
	"pressure",
};

int proc_attach(int root_fd, struct cj_error *err)
{
	auto_fd int proc_fd = mounts_create("proc", NULL, 0, PROC_ATTRS, err);
	if (proc_fd == -EPERM)
		return cj_hint(err, "parts of the outer /proc are masked, as in a container, so "
				    "the kernel allows no new one; see 'cejail doctor'");
	if (proc_fd < 0)
		return proc_fd;
	return mounts_attach_at(proc_fd, root_fd, "/proc", err);
}

/* Opens /proc and checks that it is a real procfs. */
static int open_proc(struct cj_error *err)
{
	auto_fd int proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (proc_fd < 0)
		return cj_fail(err, errno, "open '/proc'");

	struct statfs fs;
	if (fstatfs(proc_fd, &fs) < 0)
		return cj_fail(err, errno, "look at '/proc'");
	if (fs.f_type != PROC_SUPER_MAGIC)
		return cj_reject(err, "'/proc' is no procfs");
	return take_fd(&proc_fd);
}

/* Checks that /dev/null is the real device: it is bound over files of /proc. */
static int check_null(struct cj_error *err)
{
	auto_fd int null_fd = open("/dev/null", O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (null_fd < 0)
		return cj_fail(err, errno, "open '/dev/null'");
	if (!device_is(null_fd, 1, 3))
		return cj_reject(err, "'/dev/null' is not the device 1:3");
	return 0;
}

/* Returns 1 and fills *out, 0 when this kernel has no such path, or an error. */
static int look(int proc_fd, const char *path, struct stat *out, struct cj_error *err)
{
	if (fstatat(proc_fd, path, out, AT_SYMLINK_NOFOLLOW) == 0)
		return 1;
	return errno == ENOENT ? 0 : cj_fail(err, errno, "look at '/proc/%s'", path);
}

static int make_read_only(int proc_fd, const char *path, struct cj_error *err)
{
	struct stat st;
	int rc = look(proc_fd, path, &st, err);
	if (rc <= 0)
		return rc;

	auto_fd int tree_fd =
	    mounts_clone(proc_fd, path, PROC_ATTRS | MOUNT_ATTR_RDONLY, path, err);
	if (tree_fd < 0)
		return tree_fd;
	return mounts_attach_in(tree_fd, proc_fd, path, path, err);
}

/* Is it a file that only the host's root may open?  That user does not exist in the jail. */
static bool is_closed(const struct stat *st)
{
	return !S_ISDIR(st->st_mode) && (st->st_mode & 0077) == 0 && st->st_uid != geteuid();
}

/*
 * By mount(2) and paths, not by descriptor: there are two dozen of these mounts, and this takes
 * half the time.  Only init has used this tree so far, and open_proc() and check_null() have just
 * checked both ends.
 */
static int mask(int proc_fd, const char *path, struct cj_error *err)
{
	struct stat st;
	int rc = look(proc_fd, path, &st, err);
	if (rc <= 0 || is_closed(&st))
		return rc < 0 ? rc : 0;

	char target[64];
	int size = snprintf(target, sizeof(target), "/proc/%s", path);
	assert(size > 0 && (size_t)size < sizeof(target));

	rc = S_ISDIR(st.st_mode)
		 ? mount("tmpfs", target, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
			 "mode=0555,size=4k,nr_inodes=2")
		 : mount("/dev/null", target, NULL, MS_BIND, NULL);
	return rc < 0 ? cj_fail(err, errno, "mask '%s'", target) : 0;
}

int proc_mask(struct cj_error *err)
{
	auto_fd int proc_fd = open_proc(err);
	if (proc_fd < 0)
		return proc_fd;
	if (check_null(err) < 0)
		return -err->code;

	for (size_t i = 0; i < sizeof(read_only_paths) / sizeof(read_only_paths[0]); i++) {
		int rc = make_read_only(proc_fd, read_only_paths[i], err);
		if (rc < 0)
			return cj_wrap(err, "make '/proc/%s' read-only", read_only_paths[i]);
	}
	for (size_t i = 0; i < sizeof(masked_paths) / sizeof(masked_paths[0]); i++) {
		int rc = mask(proc_fd, masked_paths[i], err);
		if (rc < 0)
			return rc;
	}
	return 0;
}
