/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kernel/seccomp/filter_parts.h"

#include <linux/ioprio.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* Newer than the kernel headers of Debian 12. */
#define NR_open_tree_attr 467

#define CALL(name)                                                                                 \
	{                                                                                          \
#name, SYS_##name                                                                  \
	}

/*
 * Not in the table: calls that libraries try at every start and do without (clone3, NUMA
 * placement). Nobody reads a report that is always there.
 */
const struct call_notified calls_notified[] = {
	CALL(socket),
	CALL(ioctl),
	CALL(clone),
	CALL(mknodat),
	CALL(ptrace),
	CALL(process_vm_readv),
	CALL(process_vm_writev),
	CALL(kcmp),
	CALL(pidfd_getfd),
	CALL(unshare),
	CALL(setns),
	CALL(mount),
	CALL(umount2),
	CALL(pivot_root),
	CALL(chroot),
	CALL(open_tree),
	CALL(move_mount),
	CALL(fsopen),
	CALL(fsconfig),
	CALL(fsmount),
	CALL(fspick),
	CALL(mount_setattr),
	{ "open_tree_attr", NR_open_tree_attr },
	CALL(keyctl),
	CALL(add_key),
	CALL(request_key),
	CALL(bpf),
	CALL(perf_event_open),
	CALL(userfaultfd),
	CALL(io_uring_setup),
	CALL(vmsplice),
	CALL(memfd_secret),
	CALL(open_by_handle_at),
	CALL(name_to_handle_at),
	CALL(fanotify_init),
	CALL(init_module),
	CALL(finit_module),
	CALL(delete_module),
	CALL(kexec_load),
	CALL(kexec_file_load),
	CALL(reboot),
	CALL(swapon),
	CALL(swapoff),
	CALL(acct),
	CALL(quotactl),
	CALL(quotactl_fd),
	CALL(syslog),
	CALL(vhangup),
	CALL(sethostname),
	CALL(setdomainname),
	CALL(settimeofday),
	CALL(clock_settime),
	CALL(clock_adjtime),
	CALL(adjtimex),
	CALL(personality),
	CALL(process_madvise),
#ifdef __x86_64__
	CALL(mknod),
	CALL(iopl),
	CALL(ioperm),
	CALL(modify_ldt),
#endif
};
const size_t calls_notified_count = COUNT_OF(calls_notified);

const char *call_notified_name(int nr)
{
	for (size_t i = 0; i < calls_notified_count; i++) {
		if (calls_notified[i].nr == nr)
			return calls_notified[i].name;
	}
	return NULL;
}

#define NEEDED(name, ...)                                                                          \
	{                                                                                          \
#name, SYS_##name,                                                                 \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}

/* What init.c, intake.c, payload.c and inputs.c call, verified with strace(1); libc's calls
 * below. */
const struct call_needed calls_needed[] = {
	/* writes inputs: files and directories below /box */
	NEEDED(read),
	NEEDED(pread64),
	NEEDED(write),
	NEEDED(close),
	NEEDED(openat),
	NEEDED(mkdirat),
	NEEDED(symlinkat),
	NEEDED(fchmod),
	NEEDED(fstat),
	NEEDED(newfstatat),
	/* speaks with the supervisor */
	NEEDED(sendmsg),
	NEEDED(recvmsg),
	NEEDED(setsockopt, 0, SOL_SOCKET, SO_RCVTIMEO),
	NEEDED(setsockopt, 0, SOL_SOCKET, SO_SNDTIMEO),
	/* starts the payload, on a terminal or not */
	NEEDED(clone, CLONE_VM | CLONE_VFORK | SIGCHLD),
	NEEDED(execve),
	NEEDED(setsid),
	NEEDED(ioctl, 0, TIOCGPTPEER),
	NEEDED(ioctl, 0, TIOCSCTTY),
	NEEDED(close_range),
	NEEDED(chdir),
	NEEDED(rt_sigprocmask),
	/* reaps and exits */
	NEEDED(wait4),
	NEEDED(getrusage),
	NEEDED(exit_group),
	/* malloc(3) */
	NEEDED(brk),
	NEEDED(mmap),
	NEEDED(munmap),
#ifdef __x86_64__
	NEEDED(vfork),
	NEEDED(dup2),
#else
	NEEDED(dup3),
#endif
};
const size_t calls_needed_count = COUNT_OF(calls_needed);

static const struct option_call {
	int nr, errno_value;
} option_calls[] = {
	{ SYS_ioctl, ENOTTY },           { SYS_prctl, EINVAL },           { SYS_fcntl, EINVAL },
	{ SYS_setsockopt, ENOPROTOOPT }, { SYS_getsockopt, ENOPROTOOPT },
};

int call_option_errno(int nr)
{
	for (size_t i = 0; i < COUNT_OF(option_calls); i++) {
		if (option_calls[i].nr == nr)
			return option_calls[i].errno_value;
	}
	return 0;
}

const struct call_bounded calls_bounded[] = {
	{ SYS_seccomp, CALL_BOUND_FILTERS, 0, SECCOMP_SET_MODE_FILTER },
	{ SYS_prctl, CALL_BOUND_FILTERS, 0, PR_SET_SECCOMP },
	{ SYS_socket, CALL_BOUND_NETLINK, 0, AF_NETLINK },
	{ SYS_socket, CALL_BOUND_NETWORK, 0, AF_INET },
	{ SYS_socket, CALL_BOUND_NETWORK, 0, AF_INET6 },
	{ SYS_setpriority, CALL_BOUND_OTHERS, 0, PRIO_USER },
	{ SYS_setpriority, CALL_BOUND_OTHERS, 1, .is_nonzero = true },
	{ SYS_ioprio_set, CALL_BOUND_OTHERS, 0, IOPRIO_WHO_USER },
	{ SYS_ioprio_set, CALL_BOUND_OTHERS, 1, .is_nonzero = true },
	{ SYS_sched_setscheduler, CALL_BOUND_OTHERS, 0, .is_nonzero = true },
	{ SYS_sched_setparam, CALL_BOUND_OTHERS, 0, .is_nonzero = true },
	{ SYS_sched_setattr, CALL_BOUND_OTHERS, 0, .is_nonzero = true },
	{ SYS_sched_setaffinity, CALL_BOUND_OTHERS, 0, .is_nonzero = true },
	{ SYS_prlimit64, CALL_BOUND_OTHERS, 0, .is_nonzero = true },
	{ SYS_memfd_create, CALL_BOUND_UNCOUNTED, .is_whole = true },
	{ SYS_shmget, CALL_BOUND_UNCOUNTED, .is_whole = true },
	/* by default 32,000 sets of 32,000, and 32,000 queues of 16 KiB */
	{ SYS_semget, CALL_BOUND_UNCOUNTED, .is_whole = true },
	{ SYS_msgget, CALL_BOUND_UNCOUNTED, .is_whole = true },
};
const size_t calls_bounded_count = COUNT_OF(calls_bounded);

pid_t call_names_process(int nr, const uint64_t *args)
{
	if (nr != SYS_setpriority && nr != SYS_ioprio_set)
		return (pid_t)args[0];
	uint32_t one = nr == SYS_setpriority ? PRIO_PROCESS : IOPRIO_WHO_PROCESS;
	return (uint32_t)args[0] == one ? (pid_t)args[1] : -1;
}

/* The ones that policies name; seccomp(2) shows a filter 64 bits of every argument. */
static const struct call_int {
	int nr;
	unsigned index;
} ints[] = {
	{ SYS_ioctl, 1 },       { SYS_socket, 0 },     { SYS_socket, 1 },  { SYS_socket, 2 },
	{ SYS_socketpair, 0 },  { SYS_socketpair, 1 }, { SYS_prctl, 0 },   { SYS_fcntl, 1 },
	{ SYS_personality, 0 }, { SYS_clone, 0 },      { SYS_bpf, 0 },     { SYS_setsockopt, 1 },
	{ SYS_setsockopt, 2 },  { SYS_keyctl, 0 },     { SYS_seccomp, 0 },
};

bool call_arg_is_int(int nr, unsigned index)
{
	for (size_t i = 0; i < COUNT_OF(ints); i++) {
		if (ints[i].nr == nr && ints[i].index == index)
			return true;
	}
	return false;
}

static const struct call_number {
	const char *name;
	int nr;
} newer[] = {
	{ "quotactl_fd", 443 },
	{ "memfd_secret", 447 },
	{ "process_mrelease", 448 },
	{ "futex_waitv", 449 },
	{ "set_mempolicy_home_node", 450 },
	{ "cachestat", 451 },        /* 6.5 */
	{ "fchmodat2", 452 },        /* 6.6 */
	{ "map_shadow_stack", 453 }, /* 6.6 */
	{ "futex_wake", 454 },       /* 6.7, with the next two */
	{ "futex_wait", 455 },
	{ "futex_requeue", 456 },
	{ "statmount", 457 }, /* 6.8, with the next four */
	{ "listmount", 458 },
	{ "lsm_get_self_attr", 459 },
	{ "lsm_set_self_attr", 460 },
	{ "lsm_list_modules", 461 },
	{ "mseal", 462 },      /* 6.10 */
	{ "setxattrat", 463 }, /* 6.13, with the next three */
	{ "getxattrat", 464 },
	{ "listxattrat", 465 },
	{ "removexattrat", 466 },
	{ "open_tree_attr", 467 }, /* 6.15 */
	{ "file_getattr", 468 },   /* 6.17, with the next */
	{ "file_setattr", 469 },
	{ "listns", 470 }, /* 6.19 */
};

int call_newer(const char *name)
{
	for (size_t i = 0; i < COUNT_OF(newer); i++) {
		if (strcmp(newer[i].name, name) == 0)
			return newer[i].nr;
	}
	return -1;
}
