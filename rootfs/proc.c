/* SPDX-License-Identifier: Apache-2.0 */
/* procfs, and its masks.  Acts; what is masked is decided by two tables. */
#include "rootfs/proc.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "rootfs/devices.h"
#include "rootfs/mounts.h"
#include "rootfs/rootfs.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

#define PROC_ATTRS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

/* Settings: readable, because programs look there (cap_last_cap, overcommit, pid_max), but some
 * belong to the jail's user now, and pid_max has been writable inside since Linux 6.14. */
static const char *const read_only_paths[] = { "bus", "fs", "irq", "sys", "sysrq-trigger" };

/* meminfo, cpuinfo, stat, uptime, loadavg, version, filesystems, vmstat stay: runtimes size
 * themselves by them.  A path this kernel does not have is passed over. */
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
	"pagetypeinfo",
	"kpagecount",
	"kpageflags",
	"kpagecgroup",
	"sched_debug",
	"latency_stats",
	/* what the kernel says and how it was built and started: passwords have been seen there */
	"kmsg",
	"cmdline",
	"bootconfig",
	"config.gz",
	"dynamic_debug",
	/* other users' keys, by name and number: keyrings(7) */
	"keys",
	"key-users",
	/* the machine's hardware and what others do with it */
	"acpi",
	"asound",
	"scsi",
	"driver",
	"mtrr",
	"mdstat",
	"diskstats",
	"partitions",
	"swaps",
	"interrupts",
	"softirqs",
	"schedstat",
	"locks",
	"cgroups",
};

int proc_attach(int root_fd, struct cj_error *err)
{
	auto_fd int proc_fd = mounts_create("proc", NULL, 0, PROC_ATTRS, err);
	if (proc_fd == -EPERM)
		return cj_hint(err, "parts of the outer /proc are masked, as in a container, so "
				    "the kernel allows no new one; see 'cejail doctor'");
	if (proc_fd < 0)
		return proc_fd;
	return mounts_attach_at(proc_fd, root_fd, "proc", err);
}

/* A descriptor on /proc that is a procfs and nothing made to look like one. */
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

static int open_null(struct cj_error *err)
{
	auto_fd int null_fd = open("/dev/null", O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (null_fd < 0)
		return cj_fail(err, errno, "open '/dev/null'");
	if (!device_is(null_fd, 1, 3))
		return cj_reject(err, "'/dev/null' is not the device 1:3");
	return take_fd(&null_fd);
}

/* The place proc_fd/path; *out_fd is -1 when this kernel has no such thing. */
static int find(int proc_fd, const char *path, int *out_fd, struct cj_error *err)
{
	*out_fd = sys_openat2(proc_fd, path, O_PATH, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	if (*out_fd < 0 && errno != ENOENT)
		return cj_fail(err, errno, "open '/proc/%s'", path);
	return 0;
}

static int make_read_only(int proc_fd, const char *path, struct cj_error *err)
{
	auto_fd int place_fd = -1;
	int rc = find(proc_fd, path, &place_fd, err);
	if (rc < 0 || place_fd < 0)
		return rc;

	auto_fd int tree_fd = mounts_clone(place_fd, "", PROC_ATTRS | MOUNT_ATTR_RDONLY, path, err);
	if (tree_fd < 0)
		return tree_fd;
	return mounts_attach(tree_fd, place_fd, path, err);
}

/* An empty, read-only directory. */
static int make_empty(struct cj_error *err)
{
	static const struct mounts_option options[] = {
		{ "mode", "0555" },
		{ "size", "4k" },
		{ "nr_inodes", "2" },
	};
	return mounts_create("tmpfs", options, sizeof(options) / sizeof(options[0]),
			     PROC_ATTRS | MOUNT_ATTR_RDONLY, err);
}

static int mask(int proc_fd, int null_fd, const char *path, struct cj_error *err)
{
	auto_fd int place_fd = -1;
	int rc = find(proc_fd, path, &place_fd, err);
	if (rc < 0 || place_fd < 0)
		return rc;

	struct stat st;
	if (fstat(place_fd, &st) < 0)
		return cj_fail(err, errno, "look at '/proc/%s'", path);

	auto_fd int tree_fd = S_ISDIR(st.st_mode) ? make_empty(err)
						  : mounts_clone(null_fd, "", 0, "/dev/null", err);
	if (tree_fd < 0)
		return tree_fd;
	return mounts_attach(tree_fd, place_fd, path, err);
}

int rootfs_mask_proc(struct cj_error *err)
{
	auto_fd int proc_fd = open_proc(err);
	if (proc_fd < 0)
		return proc_fd;
	auto_fd int null_fd = open_null(err);
	if (null_fd < 0)
		return null_fd;

	for (size_t i = 0; i < sizeof(read_only_paths) / sizeof(read_only_paths[0]); i++) {
		int rc = make_read_only(proc_fd, read_only_paths[i], err);
		if (rc < 0)
			return cj_wrap(err, "make '/proc/%s' read-only", read_only_paths[i]);
	}
	for (size_t i = 0; i < sizeof(masked_paths) / sizeof(masked_paths[0]); i++) {
		int rc = mask(proc_fd, null_fd, masked_paths[i], err);
		if (rc < 0)
			return cj_wrap(err, "mask '/proc/%s'", masked_paths[i]);
	}
	return 0;
}
