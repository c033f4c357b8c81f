/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confined - what a process of the gateway's program still has, as /proc tells, and what it can't
 * do.
 *
 * A test program includes this once.
 */
#pragma once

#include <fcntl.h>
#include <linux/sockios.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "netns/nftables/nfnl.h"
#include "runtime/base/scope.h"
#include "runtime/base/step.h"
#include "tests/netns/namespaces.h"
#include "tests/patience.h"

/* "/proc/PID/NAME" */
static void path_in_proc(pid_t pid, const char *name, char out[static 64])
{
	(void)snprintf(out, 64, "/proc/%d/%s", (int)pid, name);
}

static size_t read_proc(pid_t pid, const char *name, char *out, size_t size)
{
	char path[64];
	path_in_proc(pid, name, path);
	auto_file FILE *file = fopen(path, "re");
	MUST(file != NULL);
	size_t got = fread(out, 1, size - 1, file);
	out[got] = '\0';
	return got;
}

static pid_t pid_of(int pidfd)
{
	char path[64], text[4096];
	int pid = -1;
	(void)snprintf(path, sizeof(path), "fdinfo/%d", pidfd);
	MUST(read_proc(getpid(), path, text, sizeof(text)) > 0);
	const char *at = strstr(text, "\nPid:");
	MUST(at != NULL && sscanf(at, "\nPid: %d", &pid) == 1);
	return pid;
}

static unsigned long long status_of(int pidfd, const char *field, int base)
{
	char text[4096];
	MUST(read_proc(pid_of(pidfd), "status", text, sizeof(text)) > 0);
	const char *at = strstr(text, field);
	MUST(at != NULL);
	return strtoull(at + strlen(field), NULL, base);
}

static ino_t user_namespace_of(pid_t pid)
{
	char path[64];
	struct stat st;
	path_in_proc(pid, "ns/user", path);
	MUST(stat(path, &st) == 0);
	return st.st_ino;
}

/* What a program that has taken over the process tries, each in a system call. */
static const struct {
	const char *what;
	long number, arguments[5];
	bool is_loader_s; /* the loader may do it */
} attempts[] = {
	{ "open a file", SYS_openat, { AT_FDCWD, (long)"/etc/passwd", O_RDONLY } },
	{ "look at a file", SYS_newfstatat, { AT_FDCWD, (long)"/etc/passwd", 0, 0 } },
	{ "execute", SYS_execve, { (long)"/bin/true", 0, 0 } },
	{ "fork", SYS_clone, { SIGCHLD } },
	{ "open a socket", SYS_socket, { AF_INET, SOCK_DGRAM, 0 } },
	{ "open a local socket", SYS_socket, { AF_UNIX, SOCK_STREAM, 0 } },
	{ "open a netlink socket", SYS_socket, { AF_NETLINK, SOCK_RAW, NETLINK_ROUTE } },
	{ "bind a socket", SYS_bind, { 5, 0, 0 } },
	{ "connect a socket", SYS_connect, { 5, 0, 0 } },
	{ "send to another address", SYS_sendto, { 3, (long)"x", 1, 0, (long)"address" }, true },
	{ "send out of band", SYS_sendto, { 3, (long)"x", 1, MSG_OOB, 0 }, true },
	{ "send to an address that is not seen", SYS_sendmsg, { 6, (long)"message", 0 } },
	{ "pass on a descriptor", SYS_sendmsg, { 3, (long)"message", 0 } },
	{ "end one direction of a link", SYS_shutdown, { 4, SHUT_RD } },
	{ "open a namespace", SYS_ioctl, { 6, SIOCGSKNS } },
	{ "free the number of a socket", SYS_close, { 3 }, true },
	{ "copy a descriptor", SYS_dup, { 3 } },
	{ "copy a descriptor to a number", SYS_fcntl, { 3, F_DUPFD, 3 } },
	{ "choose a device", SYS_setsockopt, { 3, SOL_SOCKET, SO_BINDTODEVICE, (long)"lo", 3 } },
	{ "make memory executable", SYS_mmap, { 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, -1 } },
	{ "join a namespace", SYS_setns, { 5, 0 } },
	{ "create a user namespace", SYS_unshare, { CLONE_NEWUSER } },
	{ "create a network namespace", SYS_unshare, { CLONE_NEWNET } },
	{ "mount", SYS_mount, { (long)"none", (long)"/", (long)"tmpfs", 0, 0 } },
	{ "signal its user's processes", SYS_kill, { -1, 0 } },
	{ "signal init", SYS_kill, { 1, 0 } },
	{ "open a pidfd", SYS_pidfd_open, { 1, 0 } },
	{ "trace init", SYS_ptrace, { PTRACE_ATTACH, 1, 0, 0 } },
	{ "read the memory of init", SYS_process_vm_readv, { 1, 0, 0, 0, 0 } },
	{ "make a file in memory", SYS_memfd_create, { (long)"x", 0 } },
	{ "become another user", SYS_setuid, { 0 } },
	{ "get a capability", SYS_capset, { 0, 0 } },
	{ "change a limit", SYS_prlimit64, { 0, RLIMIT_NOFILE, 0, 0 } },
	{ "load a program into the kernel", SYS_bpf, { 0, 0, 0 } },
	{ "change how it is seen", SYS_prctl, { 4 /* PR_SET_DUMPABLE */, 1 } },
	{ "use an io_uring", SYS_io_uring_setup, { 1, 0 } },
};

static int try_all(bool is_gateway, struct cj_error *err)
{
	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
		const long *a = attempts[i].arguments;
		if (attempts[i].is_loader_s && !is_gateway)
			continue;
		errno = 0;
		if (syscall(attempts[i].number, a[0], a[1], a[2], a[3], a[4]) != -1 ||
		    errno != EPERM)
			return cj_fail(err, errno ? errno : EEXIST, "it could %s",
				       attempts[i].what);
	}
	return 0;
}

static const char *const child_steps[] = { "opened" };

/* A socket of a network namespace below our own user namespace, or of our own. */
static int open_rules(bool is_below)
{
	struct cj_error err = { 0 };
	int ends[2], status;
	if (!is_below) {
		int fd = nfnl_socket(NETLINK_NETFILTER, &err);
		MUST_DO(fd, err);
		return fd;
	}
	MUST_DO(step_pair(ends, (unsigned)patience_ms(60000), &err), err);
	pid_t pid = test_fork();
	if (pid == 0) {
		const struct step_link link = { ends[1], "the test", child_steps };
		MUST(unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0);
		MUST(put_file("/proc/self/setgroups", "deny") &&
		     put_file("/proc/self/uid_map", "0 0 1") &&
		     put_file("/proc/self/gid_map", "0 0 1"));
		int fd = nfnl_socket(NETLINK_NETFILTER, &err);
		MUST_DO(fd, err);
		MUST_DO(step_tell(&link, 0, NULL, 0, &fd, 1, &err), err);
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
	auto_step_msg struct step_msg msg = { 0 };
	const struct step_link link = { ends[0], "the child", child_steps };
	MUST_DO(step_await(&link, 0, &msg, &err), err);
	close(ends[0]);
	close(ends[1]);
	return take_fd(&msg.fds[0]);
}
