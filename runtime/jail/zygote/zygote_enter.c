/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a zygote into a jail; runs in the zygote and in two intermediate processes.
 *
 * setns(2) with a pid namespace applies to later children only, and a user namespace can't be left.
 * So two processes come between the zygote and the copy (zygote.h): C1 enters the namespaces, and
 * its child C2 is in the pid namespace.  C2 forks and ends, and the kernel gives the copy to the
 * reaper of C2's pid namespace: the jail's init.
 *
 * C1 and C2 share the memory and the stack of the zygote, which sleeps until they end
 * (CLONE_VFORK).  So only C2's fork copies page tables.  They run deeper in the stack than the
 * zygote, and end with _exit(2).  The copy has a stack of its own and returns through all these
 * frames.
 */
#include "runtime/jail/zygote/zygote_inside.h"

#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

/* A directory has two links more than it has tasks: proc(5). */
int zygote_check_threads(struct cj_error *err)
{
	struct stat st;
	if (stat("/proc/self/task", &st) < 0)
		return cj_fail(err, errno, "count the threads of the zygote");
	if (st.st_nlink == 2 + 1)
		return 0;
	cj_refuse_as(err, EBUSY, "the interpreter has %ju threads, so it can't be forked",
		     (uintmax_t)st.st_nlink - 2);
	return cj_hint(err, "preload no module that starts a thread");
}

#define FLAGS "VmFlags:"

/*
 * "sh" is VM_SHARED.  The kernel clears it for a file that was opened read-only, which no
 * mprotect(2) can make writable: proc_pid_smaps(5).
 */
static bool is_shared(const char *line)
{
	return strncmp(line, FLAGS, strlen(FLAGS)) == 0 && strstr(line, " sh") != NULL;
}

int zygote_check_memory(struct cj_error *err)
{
	char line[512];
	bool has_flags = false;
	auto_file FILE *maps = fopen("/proc/self/smaps", "re");
	if (!maps)
		return cj_fail(err, errno, "read the mappings of the zygote");
	while (fgets(line, sizeof(line), maps)) {
		has_flags |= strncmp(line, FLAGS, strlen(FLAGS)) == 0;
		if (!is_shared(line))
			continue;
		cj_refuse_as(err, EBUSY, "the interpreter would share memory with its forks");
		return cj_hint(err, "preload no module that maps shared memory");
	}
	if (ferror(maps) || !has_flags)
		return cj_fail(err, EIO, "read the mappings of the zygote");
	return 0;
}

struct entry {
	const struct zygote_job *job;
	pid_t (*fork_now)(void);
};

/*
 * clone3(2) for a child that shares our memory and our stack.  The child calls `run` below our own
 * frames.  `run` returns only in a process with a copy of the memory; then this returns 0 there.  A
 * C function can't do that: the child would overwrite what the parent's registers are restored
 * from.  The 256 bytes skip the red zone of the System V ABI.
 */
#if defined(__x86_64__)
#define CAN_SHARE_STACK true
static long clone_sharing(const struct clone_args *args, void (*run)(const struct entry *),
			  const struct entry *entry)
{
	long rc = SYS_clone3;
	size_t size = sizeof(*args);
	register void (*run_register)(const struct entry *) __asm__("r12") = run;
	register const struct entry *entry_register __asm__("r13") = entry;
	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "mov %%rsp, %%rbx\n\t"
			 "sub $256, %%rsp\n\t"
			 "and $-16, %%rsp\n\t"
			 "mov %%r13, %%rdi\n\t"
			 "call *%%r12\n\t"
			 "mov %%rbx, %%rsp\n\t"
			 "xor %%eax, %%eax\n\t"
			 "1:"
			 : "+a"(rc), "+D"(args), "+S"(size)
			 : "r"(run_register), "r"(entry_register)
			 : "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0",
			   "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
			   "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
	return rc;
}
#elif defined(__aarch64__)
#define CAN_SHARE_STACK true
static long clone_sharing(const struct clone_args *args, void (*run)(const struct entry *),
			  const struct entry *entry)
{
	register long x0 __asm__("x0") = (long)args;
	register long x1 __asm__("x1") = sizeof(*args);
	register long x8 __asm__("x8") = SYS_clone3;
	register void (*run_register)(const struct entry *) __asm__("x19") = run;
	register const struct entry *entry_register __asm__("x20") = entry;
	__asm__ volatile("svc #0\n\t"
			 "cbnz x0, 1f\n\t"
			 "mov x21, sp\n\t"
			 "sub sp, sp, #256\n\t"
			 "mov x0, x20\n\t"
			 "blr x19\n\t"
			 "mov sp, x21\n\t"
			 "mov x0, #0\n\t"
			 "1:"
			 : "+r"(x0), "+r"(x1), "+r"(x8)
			 : "r"(run_register), "r"(entry_register)
			 : "x2", "x3", "x4", "x5", "x6", "x7", "x9", "x10", "x11", "x12", "x13",
			   "x14", "x15", "x16", "x17", "x18", "x21", "x30", "memory", "cc", "v0",
			   "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11",
			   "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21",
			   "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31");
	return x0;
}
#else
#define CAN_SHARE_STACK false
static long clone_sharing(const struct clone_args *args, void (*run)(const struct entry *),
			  const struct entry *entry)
{
	(void)args, (void)run, (void)entry;
	return -ENOSYS;
}
#endif

/* Ends an intermediate process.  The supervisor gets its error, or reads the end of the socket. */
static _Noreturn void end(const struct zygote_job *job, const struct cj_error *err)
{
	const struct step_link report = { job->fds[ZYGOTE_FD_REPORT], "the supervisor",
					  zygote_step_names };
	if (err->code != 0)
		step_abort(&report, err);
	_exit(err->code != 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* It shares our memory until it ends.  Its end sends no signal: only __WALL waits for it. */
static pid_t clone_child(const struct entry *e, int cgroup_fd, void (*run)(const struct entry *))
{
	const struct clone_args args = {
		.flags = CLONE_VM | CLONE_VFORK | (cgroup_fd >= 0 ? CLONE_INTO_CGROUP : 0),
		.cgroup = cgroup_fd >= 0 ? (uint64_t)cgroup_fd : 0,
	};
	long rc = clone_sharing(&args, run, e);
	if (rc >= 0)
		return (pid_t)rc;
	errno = (int)-rc;
	return -1;
}

/* Was it killed, instead of ending by itself? */
static bool reap(pid_t pid)
{
	int status = 0;
	(void)sys_waitpid(pid, &status, __WALL); /* our child */
	return WIFSIGNALED(status);
}

/* From here: C2, in the jail's pid namespace.  Returns only in the copy. */
static void run_inside(const struct entry *e)
{
	struct cj_error err = { 0 };
	pid_t pid = e->fork_now();
	if (pid == 0)
		return;
	if (pid < 0)
		(void)!cj_fail(&err, errno, "fork into the jail");
	end(e->job, &err);
}

static const struct {
	int type;
	const char *name;
} namespaces[ZYGOTE_NAMESPACES] = {
	[ZYGOTE_USER] = { CLONE_NEWUSER, "user" },
	[ZYGOTE_MOUNT] = { CLONE_NEWNS, "mount" },
	[ZYGOTE_NETWORK] = { CLONE_NEWNET, "network" },
	[ZYGOTE_IPC] = { CLONE_NEWIPC, "ipc" },
	[ZYGOTE_UTS] = { CLONE_NEWUTS, "uts" },
	[ZYGOTE_CGROUP] = { CLONE_NEWCGROUP, "cgroup" },
	[ZYGOTE_PID] = { CLONE_NEWPID, "pid" },
	/* The program's user namespace is entered with the jail's ids: zygote_seal.c. */
};

/* From here: C1.  Returns only in the copy. */
static void run_outside(const struct entry *e)
{
	struct cj_error err = { 0 };
	for (size_t i = 0; i < ZYGOTE_PROGRAM_USER; i++) {
		if (setns(e->job->fds[ZYGOTE_FD_NAMESPACES + i], namespaces[i].type) < 0) {
			(void)!cj_fail(&err, errno, "enter the jail's %s namespace",
				       namespaces[i].name);
			end(e->job, &err);
		}
	}
	pid_t pid = clone_child(e, -1, run_inside);
	if (pid == 0)
		return;
	if (pid < 0)
		(void)!cj_fail(&err, errno, "enter the jail's pid namespace");
	else
		(void)reap(pid); /* or the end of the jail's init would wait for its zombie */
	end(e->job, &err);
}

pid_t zygote_enter(const struct zygote_job *job, pid_t (*fork_now)(void), struct cj_error *err)
{
	const struct entry entry = { job, fork_now };
	if (!CAN_SHARE_STACK)
		return cj_fail(err, ENOSYS, "fork into a jail on this processor");

	pid_t pid = clone_child(&entry, job->fds[ZYGOTE_FD_CGROUP], run_outside);
	if (pid < 0)
		return cj_fail(err, errno, "fork into the jail's cgroup");
	/* The jail was killed meanwhile.  C2 may not be dead yet, and it has our memory. */
	if (pid > 0 && reap(pid))
		_exit(EXIT_FAILURE);
	return pid;
}
