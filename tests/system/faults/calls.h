/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls - the names of the system calls cejail makes, and which of their arguments can be read.
 * Pure. A call that is missing here has its number for a name.
 */
#pragma once

#include <sys/syscall.h>

#define CALLS_MAX 512 /* system call numbers */

/* clang-format off */
static const char *const call_names[CALLS_MAX] = {
#define CALL(name) [SYS_##name] = #name
	CALL(accept4), CALL(access), CALL(alarm), CALL(arch_prctl), CALL(bind), CALL(bpf), CALL(brk),
	CALL(capget), CALL(capset), CALL(chdir), CALL(chmod), CALL(chown), CALL(clock_gettime),
	CALL(clock_nanosleep), CALL(clone), CALL(clone3), CALL(close), CALL(close_range),
	CALL(connect), CALL(copy_file_range), CALL(creat), CALL(dup), CALL(dup2), CALL(dup3),
	CALL(epoll_create1), CALL(epoll_ctl), CALL(epoll_pwait), CALL(epoll_wait), CALL(eventfd2),
	CALL(execve), CALL(execveat), CALL(exit), CALL(exit_group), CALL(faccessat), CALL(faccessat2),
	CALL(fallocate), CALL(fchdir), CALL(fchmod), CALL(fchmodat), CALL(fchown), CALL(fchownat),
	CALL(fcntl), CALL(flock), CALL(fork), CALL(fsconfig), CALL(fsmount), CALL(fsopen),
	CALL(fstat), CALL(fstatfs), CALL(fsync), CALL(ftruncate), CALL(futex), CALL(getcwd),
	CALL(getdents64), CALL(getegid), CALL(geteuid), CALL(getgid), CALL(getgroups),
	CALL(getpeername), CALL(getpgid), CALL(getpgrp), CALL(getpid), CALL(getppid),
	CALL(getrandom), CALL(getresgid), CALL(getresuid), CALL(getrlimit), CALL(getrusage),
	CALL(getsid), CALL(getsockname), CALL(getsockopt), CALL(gettid), CALL(gettimeofday),
	CALL(getuid), CALL(getxattr), CALL(fgetxattr), CALL(inotify_add_watch),
	CALL(inotify_init1), CALL(io_uring_register), CALL(io_uring_setup), CALL(ioctl), CALL(keyctl), CALL(kill), CALL(landlock_add_rule),
	CALL(landlock_create_ruleset), CALL(landlock_restrict_self), CALL(lgetxattr), CALL(link),
	CALL(linkat), CALL(listen), CALL(lseek), CALL(lstat), CALL(madvise), CALL(memfd_create),
	CALL(mkdir), CALL(mkdirat), CALL(mknod), CALL(mknodat), CALL(mmap), CALL(mount),
	CALL(mount_setattr), CALL(move_mount), CALL(mprotect), CALL(mremap), CALL(munmap),
	CALL(name_to_handle_at), CALL(nanosleep), CALL(newfstatat), CALL(open), CALL(open_tree),
	CALL(openat), CALL(openat2), CALL(pause), CALL(personality), CALL(pidfd_open),
	CALL(pidfd_send_signal), CALL(pipe), CALL(pipe2), CALL(pivot_root), CALL(poll),
	CALL(ppoll), CALL(prctl), CALL(pread64), CALL(prlimit64), CALL(process_madvise), CALL(pwrite64), CALL(pwritev), CALL(read),
	CALL(readlink), CALL(readlinkat), CALL(recvfrom), CALL(recvmmsg), CALL(recvmsg),
	CALL(rename), CALL(renameat), CALL(renameat2), CALL(rmdir), CALL(rseq),
	CALL(restart_syscall), CALL(rt_sigaction), CALL(rt_sigprocmask), CALL(rt_sigreturn), CALL(rt_sigtimedwait),
	CALL(sched_getaffinity), CALL(sched_yield), CALL(seccomp), CALL(select), CALL(sendfile),
	CALL(sendmmsg), CALL(sendmsg), CALL(sendto), CALL(set_robust_list), CALL(set_tid_address),
	CALL(setgid), CALL(setgroups), CALL(sethostname), CALL(setns), CALL(setpgid),
	CALL(setpriority), CALL(setregid), CALL(setresgid), CALL(setresuid), CALL(setreuid),
	CALL(setrlimit), CALL(setsid), CALL(setsockopt), CALL(setuid), CALL(shutdown),
	CALL(signalfd4), CALL(socket), CALL(socketpair), CALL(splice), CALL(stat), CALL(statfs),
	CALL(statx), CALL(symlink), CALL(symlinkat), CALL(syncfs), CALL(sysinfo), CALL(tgkill), CALL(time),
	CALL(timer_create), CALL(timer_settime), CALL(timerfd_create), CALL(timerfd_settime), CALL(umask), CALL(umount2), CALL(uname),
	CALL(unlink), CALL(unlinkat), CALL(unshare), CALL(utimensat), CALL(vfork), CALL(wait4),
	CALL(waitid), CALL(write), CALL(writev),
#undef CALL
	[457] = "statmount", /* newer than the headers of Debian 12 */
};
/* clang-format on */

/* Which argument is a path, or text being written; else the first one is reported.
 */
static inline int text_argument(unsigned nr)
{
	/* clang-format off */
	switch (nr) {
	case SYS_access: case SYS_chdir: case SYS_chmod: case SYS_execve: case SYS_lstat:
	case SYS_memfd_create: case SYS_mkdir: case SYS_open: case SYS_readlink: case SYS_rmdir:
	case SYS_sethostname: case SYS_stat: case SYS_statfs: case SYS_umount2: case SYS_unlink:
	case SYS_pivot_root:
		return 0;
	case SYS_faccessat: case SYS_faccessat2: case SYS_fchmodat: case SYS_fchownat:
	case SYS_inotify_add_watch:
	case SYS_mkdirat: case SYS_mknodat: case SYS_mount: case SYS_mount_setattr:
	case SYS_newfstatat: case SYS_open_tree: case SYS_openat: case SYS_openat2:
	case SYS_readlinkat: case SYS_renameat2: case SYS_statx: case SYS_symlink:
	case SYS_unlinkat: case SYS_utimensat: case SYS_write: case SYS_fsconfig:
		return 1;
	case SYS_symlinkat: case SYS_move_mount:
		return 2;
	default:
		return -1;
	}
	/* clang-format on */
}
