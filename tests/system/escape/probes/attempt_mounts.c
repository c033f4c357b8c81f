/* SPDX-License-Identifier: Apache-2.0 */
/* attempt_mounts - mounts, the root and namespaces.  Acts; see attempt.h. */
#include "attempt.h"

#include <linux/fs.h>
#include <sys/ioctl.h>

static bool try_mount(void)
{
	return worked(mount("none", ".", "tmpfs", 0, NULL));
}
static bool try_mount_proc(void)
{
	return worked(mount("none", ".", "proc", 0, NULL));
}
static bool try_bind(void)
{
	return worked(mount("/usr", ".", NULL, MS_BIND, NULL));
}
static bool try_remount(void)
{
	return worked(mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL));
}
static bool try_umount(void)
{
	return worked(umount2(".", MNT_DETACH));
}
static bool try_umount_proc(void)
{
	return worked(umount2("/proc/sys", MNT_DETACH));
}
static bool try_pivot_root(void)
{
	return worked(syscall(SYS_pivot_root, ".", "."));
}
static bool try_chroot(void)
{
	return worked(chroot("."));
}
static bool try_open_tree(void)
{
	return worked(syscall(SYS_open_tree, AT_FDCWD, ".", 1 /* CLONE */));
}
static bool try_move_mount(void)
{
	return worked(syscall(SYS_move_mount, AT_FDCWD, ".", AT_FDCWD, "/etc", 0));
}
static bool try_fsopen(void)
{
	return worked(syscall(SYS_fsopen, "tmpfs", 0));
}
static bool try_fspick(void)
{
	return worked(syscall(SYS_fspick, AT_FDCWD, "/", 0));
}
static bool try_mount_setattr(void)
{
	struct {
		uint64_t set, clear, propagation, userns;
	} attr = { .clear = 1 /* RDONLY */ };
	return worked(syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, &attr, sizeof(attr)));
}
static bool try_open_by_handle(void)
{
	struct {
		unsigned bytes;
		int type;
		unsigned char handle[8];
	} h = { .bytes = 8, .type = 1 };
	return got_past(syscall(SYS_open_by_handle_at, AT_FDCWD, &h, O_RDONLY), ESTALE);
}

static bool try_unshare_user(void)
{
	return worked(unshare(CLONE_NEWUSER));
}
static bool try_unshare_mount(void)
{
	return worked(unshare(CLONE_NEWNS));
}
static bool try_unshare_net(void)
{
	return worked(unshare(CLONE_NEWNET));
}
static bool try_unshare_high_bits(void)
{
	return worked(syscall(SYS_unshare, 1ull << 32 | CLONE_NEWUSER));
}
static bool try_clone_user(void)
{
	long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0)
		_exit(0);
	return worked(pid);
}
static bool try_clone3(void)
{
	struct {
		uint64_t f[11];
	} args = { { CLONE_NEWUSER, 0, 0, 0, SIGCHLD } };
	long pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0)
		_exit(0);
	return worked(pid);
}
static bool try_setns(void)
{
	static const char *const names[] = { "user", "mnt", "net", "pid", "uts", "ipc", "cgroup" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[32];
		(void)snprintf(path, sizeof(path), "/proc/1/ns/%s", names[i]);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && worked(setns(fd, 0)))
			return true;
	}
	return false;
}
static bool try_setns_own(void)
{
	int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	return fd >= 0 && worked(setns(fd, 0));
}

/* linux/nsfs.h and linux/pidfd.h, which older headers have in part. */
#define NS_OWNER       _IO(0xb7, 1)
#define NS_PARENT      _IO(0xb7, 2)
#define NS_MNT_NEXT    _IOR(0xb7, 11, uint64_t[2])
#define PIDFD_NS_FIRST 1 /* of the requests that give a namespace's descriptor */
#define PIDFD_NS_LAST  10

static bool can_ask_namespaces(pid_t pid, unsigned long request)
{
	static const char *const names[] = { "user", "mnt", "net",    "pid",
					     "uts",  "ipc", "cgroup", "time" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[64];
		uint64_t room[2] = { sizeof(room), 0 };
		(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, names[i]);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && worked(ioctl(fd, request, room)))
			return true;
	}
	return false;
}
static bool try_ns_owner(void)
{
	return can_ask_namespaces(getpid(), NS_OWNER);
}
/* The parent of a namespace that a child has made is one that we may name. */
static bool try_ns_parent(void)
{
	int ready[2];
	char byte;
	if (can_ask_namespaces(getpid(), NS_PARENT))
		return true;
	if (pipe(ready) < 0)
		return false;
	pid_t pid = fork();
	if (pid == 0) {
		(void)!unshare(CLONE_NEWUSER);
		(void)!write(ready[1], "", 1);
		(void)pause();
		_exit(0);
	}
	bool done = pid > 0 && read(ready[0], &byte, 1) == 1 && can_ask_namespaces(pid, NS_PARENT);
	int why = errno;
	(void)kill(pid, SIGKILL);
	errno = why;
	return done;
}
static bool try_ns_next(void)
{
	return can_ask_namespaces(getpid(), NS_MNT_NEXT);
}
static bool try_pidfd_ns(void)
{
	int pidfd = (int)syscall(SYS_pidfd_open, 1, 0);
	for (int request = PIDFD_NS_FIRST; request <= PIDFD_NS_LAST; request++)
		if (pidfd >= 0 && worked(ioctl(pidfd, _IO(0xff, request), 0)))
			return true;
	return false;
}
static bool try_setns_pidfd(void)
{
	int pidfd = (int)syscall(SYS_pidfd_open, 1, 0);
	return pidfd >= 0 && worked(setns(pidfd, CLONE_NEWNET));
}

static bool cover_proc_sys(void)
{
	return make_room("/proc/sys", NULL);
}

/* --- calls that glibc 2.36 has no name for --------------------------------------- */

#define SYS_OPEN_TREE_ATTR 467
#define SYS_STATMOUNT      457
#define SYS_LISTMOUNT      458

static bool try_open_tree_attr(void)
{
	struct mount_attr none = { 0 };
	return worked(
	    syscall(SYS_OPEN_TREE_ATTR, AT_FDCWD, ".", 1 /* CLONE */, &none, sizeof(none)));
}
static bool try_fsconfig(void)
{
	return got_past(syscall(SYS_fsconfig, -1, 6 /* CREATE */, NULL, NULL, 0), EINVAL);
}
static bool try_fsmount(void)
{
	return got_past(syscall(SYS_fsmount, -1, 0, 0), EBADF);
}
struct mount_request {
	uint32_t size, spare;
	uint64_t id, param;
};
static bool try_listmount(void)
{
	struct mount_request all = { .size = sizeof(all), .id = UINT64_MAX /* the root */ };
	uint64_t ids[4];
	return worked(syscall(SYS_LISTMOUNT, &all, ids, 4, 0));
}
static bool try_statmount(void)
{
	struct mount_request none = { .size = sizeof(none), .id = 1ull << 40, .param = 1 };
	char answer[512];
	return got_past(syscall(SYS_STATMOUNT, &none, answer, sizeof(answer), 0), ENOENT);
}

/* --- file systems that say or do more than tmpfs ----------------------------------- */

static bool try_mount_cgroup(void)
{
	return worked(mount("none", ".", "cgroup2", 0, NULL));
}
/* An existing hierarchy, if there is one: as root this could move a controller of the host's. */
static bool try_mount_cgroup1(void)
{
	return worked(mount("none", ".", "cgroup", 0, "memory")) ||
	       worked(mount("none", ".", "cgroup", 0, "pids"));
}
static bool try_mount_sysfs(void)
{
	return worked(mount("none", ".", "sysfs", 0, NULL));
}
static bool try_mount_mqueue(void)
{
	return worked(mount("none", ".", "mqueue", 0, NULL));
}
static bool try_mount_overlay(void)
{
	return worked(mount("none", ".", "overlay", 0, "lowerdir=/usr:/etc"));
}
static bool try_freeze(void)
{
	int fd = open(".", O_RDONLY | O_CLOEXEC);
	return fd >= 0 && got_past(ioctl(fd, FIFREEZE, 0), EOPNOTSUPP);
}
static bool try_clone_mount(void)
{
	long pid = syscall(SYS_clone, CLONE_NEWNS | SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0)
		_exit(0);
	return worked(pid);
}

static const struct attempt attempts[] = {
	ROW(mount),         ROW(mount_proc),
	ROW(bind),          ROW(remount),
	ROW(umount),        ROW_AFTER(umount_proc, cover_proc_sys),
	ROW(pivot_root),    ROW(chroot),
	ROW(open_tree),     ROW(move_mount),
	ROW(fsopen),        ROW(fspick),
	ROW(mount_setattr), ROW(open_by_handle),
	ROW(unshare_user),  ROW(unshare_mount),
	ROW(unshare_net),   ROW(unshare_high_bits),
	ROW(clone_user),    ROW(clone3),
	ROW(setns),         ROW(setns_own),
	ROW(ns_owner),      ROW(ns_parent),
	ROW(ns_next),       ROW(pidfd_ns),
	ROW(setns_pidfd),   ROW(open_tree_attr),
	ROW(fsconfig),      ROW(fsmount),
	ROW(listmount),     ROW(statmount),
	ROW(mount_cgroup),  ROW_OWN(mount_cgroup1),
	ROW(mount_sysfs),   ROW(mount_mqueue),
	ROW(mount_overlay), ROW(freeze),
	ROW(clone_mount),
};

ATTEMPTS_MAIN(attempts)
