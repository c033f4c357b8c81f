/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys - system calls that glibc does not wrap (Debian 12's, at least), and the
 * few that want a retry on EINTR.  Each returns what its page says: -1 and errno.
 */
#pragma once

#include <linux/openat2.h>
#include <linux/sched.h>
#include <signal.h>

struct mount_attr;
struct sock_fprog;

/* clone3(2); 0 in the child, which has its own copy of our memory and leaves by _exit. */
pid_t sys_clone3(const struct clone_args *args);

int sys_pidfd_open(pid_t pid);
int sys_pidfd_send_signal(int pidfd, int sig);
int sys_close_range(unsigned first, unsigned last, unsigned flags);

/*
 * openat2(2).  `resolve` is RESOLVE_*; O_CLOEXEC is added.  Paths from outside
 * are opened with RESOLVE_BENEATH or RESOLVE_IN_ROOT, or at least NO_MAGICLINKS.
 *
 * With these two, the kernel answers EAGAIN to ".." after any rename or mount on the machine.  The
 * call is repeated then, at most 1000 times.  EAGAIN after that: the machine never pauses, or
 * O_NONBLOCK met a lease of fcntl(2).
 */
int sys_openat2(int dir_fd, const char *path, int flags, mode_t mode, uint64_t resolve);

/* The mount API by descriptors: fsopen(2), fsconfig(2), fsmount(2), open_tree(2), move_mount(2). */
int sys_open_tree(int dir_fd, const char *path, unsigned flags);
int sys_mount_setattr(int dir_fd, const char *path, unsigned flags, struct mount_attr *attr);
int sys_pivot_root(const char *new_root, const char *put_old);

int sys_seccomp(unsigned operation, unsigned flags, void *args);
long sys_keyctl_join_session_keyring(void);

/* The processors that this process may use; 1 with over a thousand: sched_getaffinity(2). */
unsigned sys_cpus(void);

/* read(2), write(2), flock(2), waitpid(2) that retry EINTR. */
ssize_t sys_read(int fd, void *buf, size_t size);
ssize_t sys_write(int fd, const void *buf, size_t size);
int sys_flock(int fd, int operation);
pid_t sys_waitpid(pid_t pid, int *out_status, int options);
