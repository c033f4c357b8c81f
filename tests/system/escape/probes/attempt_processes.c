/* SPDX-License-Identifier: Apache-2.0 */
/* attempt_processes - processes that are not the program's own (pid 1 is cejail's), ids,
 * capabilities, limits.  Acts; see attempt.h. */
#include "attempt.h"

#include <ctype.h>
#include <dirent.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>

static bool try_traceme(void)
{
	return worked(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}
static bool try_attach_init(void)
{
	if (!worked(ptrace(PTRACE_ATTACH, 1, NULL, NULL)))
		return false;
	(void)waitpid(1, NULL, __WALL);
	(void)ptrace(PTRACE_DETACH, 1, NULL, NULL);
	return true;
}
static bool try_seize_init(void)
{
	return worked(ptrace(PTRACE_SEIZE, 1, NULL, NULL));
}
static bool try_read_init(void)
{
	char byte;
	struct iovec to = { &byte, 1 }, from = { (void *)(uintptr_t)try_read_init, 1 };
	return worked(process_vm_readv(1, &to, 1, &from, 1, 0));
}
static bool try_init_mem(void)
{
	return can_open("/proc/1/mem", O_RDONLY);
}
static bool try_init_environ(void)
{
	return can_read_something("/proc/1/environ");
}
static bool try_init_root(void)
{
	return can_open("/proc/1/root/", O_RDONLY | O_DIRECTORY);
}
static bool try_init_cwd(void)
{
	return can_open("/proc/1/cwd/", O_RDONLY | O_DIRECTORY);
}
static bool try_init_exe(void)
{
	return can_open("/proc/1/exe", O_RDONLY);
}
/* Listing them is possible where init's owner is the only id there is: only their numbers show. */
static bool try_init_fds(void)
{
	for (int n = 0; n < 64; n++) {
		char path[32], target[8];
		(void)snprintf(path, sizeof(path), "/proc/1/fd/%d", n);
		if (worked(readlink(path, target, sizeof(target))) || can_open(path, O_RDONLY))
			return true;
	}
	return false;
}
static bool try_init_maps(void)
{
	return can_read_something("/proc/1/maps");
}
static bool try_getfd_init(void)
{
	int pidfd = (int)syscall(SYS_pidfd_open, 1, 0);
	return pidfd >= 0 && worked(syscall(SYS_pidfd_getfd, pidfd, 0, 0));
}
static bool try_prlimit_init(void)
{
	struct rlimit zero = { 0, 0 };
	return worked(prlimit(1, RLIMIT_NOFILE, &zero, NULL));
}
static bool try_kcmp(void)
{
	return worked(syscall(SYS_kcmp, 1, getpid(), 1, 0, 0));
}
static bool try_move_pages(void)
{
	return worked(syscall(SYS_move_pages, 1, 0ul, NULL, NULL, NULL, 0));
}

static bool try_setuid(void)
{
	return worked(setuid(0));
}
static bool try_setgid(void)
{
	return worked(setgid(0));
}
static bool try_setuid_other(void)
{
	return worked(setresuid(1, 1, 1));
}
static bool try_setgroups(void)
{
	gid_t group = 0;
	return worked(setgroups(1, &group));
}
static bool try_capset(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { { 1u << CAP_SYS_ADMIN, 1u << CAP_SYS_ADMIN, 0 } };
	return worked(syscall(SYS_capset, &head, data));
}
static bool try_ambient(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { { 0 } };
	const uint32_t admin = 1u << CAP_SYS_ADMIN;
	data[0].effective = data[0].permitted = data[0].inheritable = admin;
	(void)syscall(SYS_capset, &head, data);
	return worked(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0));
}
static bool try_securebits(void)
{
	return worked(prctl(PR_SET_SECUREBITS, 0, 0, 0, 0));
}
static bool try_new_privs(void)
{
	return worked(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
}
static bool try_more_files(void)
{
	struct rlimit l;
	getrlimit(RLIMIT_NOFILE, &l);
	l.rlim_max += 1;
	return worked(setrlimit(RLIMIT_NOFILE, &l));
}
static bool try_core(void)
{
	struct rlimit l = { 1 << 20, 1 << 20 };
	return worked(setrlimit(RLIMIT_CORE, &l));
}
static bool try_realtime(void)
{
	struct sched_param p = { .sched_priority = 1 };
	return worked(sched_setscheduler(0, SCHED_FIFO, &p));
}
static bool try_nice(void)
{
	return worked(setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) - 5));
}
static bool try_oom_score(void)
{
	return put_text("/proc/self/oom_score_adj", "-1000");
}
static bool try_uid_map(void)
{
	return put_text("/proc/self/uid_map", "0 0 1");
}
static bool try_chown(void)
{
	int fd = open("attempt-chown", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	bool given = fd >= 0 && worked(fchown(fd, 1, 1));
	int why = errno;
	(void)unlink("attempt-chown");
	errno = why;
	return given;
}

/* --- what is not the program's own ------------------------------------------------ */

static bool try_write_init(void)
{
	char byte = 0;
	struct iovec from = { &byte, 1 }, to = { &here, 1 };
	return worked(process_vm_writev(1, &from, 1, &to, 1, 0));
}
static bool try_madvise_init(void)
{
	int pidfd = (int)syscall(SYS_pidfd_open, 1, 0);
	struct iovec range = { (void *)((uintptr_t)&here & ~4095ul), 4096 };
	return pidfd >= 0 &&
	       worked(syscall(SYS_process_madvise, pidfd, &range, 1ul, 20 /* COLD */, 0));
}
/* Every process in sight: a number that is no entry of our own kind would be the host's. */
static bool is_filtered(const char *path)
{
	char text[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n < 0)
		return true; /* it has ended */
	text[n] = 0;
	return strstr(text, "\nSeccomp:\t2\n") && strstr(text, "\nNoNewPrivs:\t1\n") &&
	       strstr(text, "\nCapEff:\t0000000000000000\n");
}
static bool has_unfiltered_thread(const char *pid)
{
	char path[300];
	(void)snprintf(path, sizeof(path), "/proc/%s/task", pid);
	DIR *tasks = opendir(path);
	bool found = false;
	for (struct dirent *e; tasks && (e = readdir(tasks));) {
		(void)snprintf(path, sizeof(path), "/proc/%s/task/%.20s/status", pid, e->d_name);
		found = found || (isdigit(e->d_name[0]) && !is_filtered(path));
	}
	if (tasks)
		closedir(tasks);
	return found;
}
static bool try_unfiltered(void)
{
	DIR *proc = opendir("/proc");
	bool found = false;
	for (struct dirent *e; proc && (e = readdir(proc));)
		found = found || (isdigit(e->d_name[0]) && has_unfiltered_thread(e->d_name));
	errno = ESRCH;
	return found;
}
/* After an execve: did the file give us anything?  Outside, root of the namespace has it all. */
static bool try_raised(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { { 0 } };
	(void)syscall(SYS_capget, &head, data);
	errno = EPERM;
	return geteuid() != getuid() || getegid() != getgid() || geteuid() == 0 ||
	       data[0].effective != 0 || data[0].permitted != 0;
}
static bool try_timens(void)
{
	(void)unshare(0x80 /* CLONE_NEWTIME */); /* offsets are for namespaces without processes */
	return put_text("/proc/self/timens_offsets", "monotonic 1 0\n");
}

static const struct attempt attempts[] = {
	ROW(traceme),      ROW(attach_init),  ROW(seize_init),   ROW(read_init),  ROW(init_mem),
	ROW(init_environ), ROW(init_root),    ROW(init_cwd),     ROW(init_exe),   ROW(init_fds),
	ROW(init_maps),    ROW(getfd_init),   ROW(prlimit_init), ROW(kcmp),       ROW(move_pages),
	ROW(setuid),       ROW(setgid),       ROW(setuid_other), ROW(setgroups),  ROW(capset),
	ROW(ambient),      ROW(securebits),   ROW(new_privs),    ROW(more_files), ROW(core),
	ROW(realtime),     ROW(nice),         ROW(oom_score),    ROW(uid_map),    ROW(chown),
	ROW(write_init),   ROW(madvise_init), ROW(unfiltered),   ROW(timens),     ROW(raised),
};

ATTEMPTS_MAIN(attempts)
