/* SPDX-License-Identifier: Apache-2.0 */
/* attempt_mounts - mounts, the root and namespaces.  Acts; see attempt.h. */
#include "attempt.h"

#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/syscall.h>

static bool try_mount(void)
{
	return worked(mount("none", "/box", "tmpfs", 0, NULL));
}
static bool try_mount_proc(void)
{
	return worked(mount("none", "/box", "proc", 0, NULL));
}
static bool try_bind(void)
{
	return worked(mount("/usr", "/box", NULL, MS_BIND, NULL));
}
static bool try_remount(void)
{
	return worked(mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL));
}
static bool try_umount(void)
{
	return worked(umount2("/box", MNT_DETACH));
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
	return worked(chroot("/box"));
}
static bool try_open_tree(void)
{
	return worked(syscall(SYS_open_tree, AT_FDCWD, "/", 1 /* CLONE */));
}
static bool try_move_mount(void)
{
	return worked(syscall(SYS_move_mount, AT_FDCWD, "/usr", AT_FDCWD, "/box", 0));
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
	return worked(syscall(SYS_open_by_handle_at, AT_FDCWD, &h, O_RDONLY));
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
	int fd = open("/proc/1/ns/user", O_RDONLY | O_CLOEXEC);
	return fd >= 0 && worked(setns(fd, 0));
}
static bool try_setns_own(void)
{
	int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	return fd >= 0 && worked(setns(fd, 0));
}

static const struct attempt attempts[] = {
	ROW(mount),         ROW(mount_proc),        ROW(bind),         ROW(remount),
	ROW(umount),        ROW(umount_proc),       ROW(pivot_root),   ROW(chroot),
	ROW(open_tree),     ROW(move_mount),        ROW(fsopen),       ROW(fspick),
	ROW(mount_setattr), ROW(open_by_handle),    ROW(unshare_user), ROW(unshare_mount),
	ROW(unshare_net),   ROW(unshare_high_bits), ROW(clone_user),   ROW(clone3),
	ROW(setns),         ROW(setns_own),
};

int main(int argc, char **argv)
{
	(void)argc;
	make_attempts(attempts, sizeof(attempts) / sizeof(attempts[0]), argv + 1);
	return 0;
}
