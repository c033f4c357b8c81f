/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/sys.h"

#include <fcntl.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>

pid_t sys_clone3(const struct clone_args *args)
{
	return (pid_t)syscall(SYS_clone3, args, sizeof(*args));
}

int sys_pidfd_open(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

int sys_pidfd_send_signal(int pidfd, int sig)
{
	return (int)syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
}

int sys_close_range(unsigned first, unsigned last, unsigned flags)
{
	return (int)syscall(SYS_close_range, first, last, flags);
}

/* Each try takes microseconds.  Two loops of renames fail most single tries. */
#define BENEATH_TRIES 1000

int sys_openat2(int dir_fd, const char *path, int flags, mode_t mode, uint64_t resolve)
{
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC),
		.mode = mode,
		.resolve = resolve,
	};
	unsigned tries = (resolve & (RESOLVE_BENEATH | RESOLVE_IN_ROOT)) != 0 ? BENEATH_TRIES : 1;
	int fd;
	do
		fd = (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
	while (fd < 0 && errno == EAGAIN && --tries > 0);
	return fd;
}

int sys_open_tree(int dir_fd, const char *path, unsigned flags)
{
	return (int)syscall(SYS_open_tree, dir_fd, path, flags | O_CLOEXEC);
}

#define MOUNT_ATTR_BYTES 32 /* MOUNT_ATTR_SIZE_VER0; its header quarrels with <sys/mount.h> */

int sys_mount_setattr(int dir_fd, const char *path, unsigned flags, struct mount_attr *attr)
{
	return (int)syscall(SYS_mount_setattr, dir_fd, path, flags, attr, MOUNT_ATTR_BYTES);
}

int sys_pivot_root(const char *new_root, const char *put_old)
{
	return (int)syscall(SYS_pivot_root, new_root, put_old);
}

int sys_seccomp(unsigned operation, unsigned flags, void *args)
{
	return (int)syscall(SYS_seccomp, operation, flags, args);
}

long sys_keyctl_join_session_keyring(void)
{
	return syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL, 0, 0, 0);
}

pid_t sys_waitpid(pid_t pid, int *out_status, int options)
{
	return (pid_t)TEMP_FAILURE_RETRY(waitpid(pid, out_status, options));
}

ssize_t sys_read(int fd, void *buf, size_t size)
{
	return TEMP_FAILURE_RETRY(read(fd, buf, size));
}

ssize_t sys_write(int fd, const void *buf, size_t size)
{
	return TEMP_FAILURE_RETRY(write(fd, buf, size));
}

int sys_flock(int fd, int operation)
{
	return (int)TEMP_FAILURE_RETRY(flock(fd, operation));
}

unsigned sys_cpus(void)
{
	cpu_set_t cpus;
	CPU_ZERO(&cpus);
	if (sched_getaffinity(0, sizeof(cpus), &cpus) < 0)
		return 1;
	return (unsigned)CPU_COUNT(&cpus);
}
