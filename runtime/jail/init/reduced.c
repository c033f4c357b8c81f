/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Init of a jail without namespaces (--reduced): what its stages do instead.
 *
 * Init is an ordinary child of the supervisor and a subreaper, so every process of the program
 * descends from it.  It is in a Landlock domain that keeps signals inside, and the program is in a
 * domain below, so the program can signal neither init nor anything outside.  kill(-1) by init
 * reaches exactly the processes of its domain, all in one call: the kernel lets no fork(2) slip
 * through.  So nobody has to search for them, and no process escapes by double forks or setsid(2).
 *
 * END_SIGNAL makes init kill them and wait for them: it comes from the supervisor, or from the
 * kernel when the supervisor is dead.  The guard is a second process in init's domain, which does
 * the same when init is dead.
 */
#include "runtime/jail/init/init.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "rootfs/rootfs.h"
#include "runtime/base/child.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/jail/jail_state.h"
#include "runtime/kernel/process/landlock.h"
#include "runtime/kernel/process/privileges.h"

/* Until init is in its domain, and that was tried, kill(-1) would reach the caller's processes. */
static volatile sig_atomic_t is_alone_in_domain;

void init_end_all(void)
{
	if (!is_alone_in_domain || geteuid() == 0)
		return;
	(void)kill(-1, SIGKILL); /* ESRCH: there is no other process */
	init_reap_all();
}

static void on_end(int signal)
{
	(void)signal;
	init_end_all();
	_exit(EXIT_FAILURE);
}

/* Asks for END_SIGNAL when the parent dies, which this process handles. */
static int end_with_parent(int link_fd, struct cj_error *err)
{
	if (child_die_with_parent(link_fd, err) < 0)
		return -err->code;
	if (prctl(PR_SET_PDEATHSIG, INIT_END_SIGNAL, 0, 0, 0) < 0)
		return cj_fail(err, errno, "ask for a signal when the parent dies");
	return 0;
}

int init_reduced_detach(struct jail *j, struct cj_error *err)
{
	const struct sigaction end = { .sa_handler = on_end };
	sigset_t ending;
	sigemptyset(&ending);
	sigaddset(&ending, INIT_END_SIGNAL);
	if (sigaction(INIT_END_SIGNAL, &end, NULL) < 0 ||
	    sigprocmask(SIG_UNBLOCK, &ending, NULL) < 0)
		return cj_fail(err, errno, "handle signal %d", INIT_END_SIGNAL);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return cj_fail(err, errno, "become the parent of orphans");
	return end_with_parent(j->link.sock_fd, err);
}

int init_reduced_become(struct jail *j, const struct ids_mapped *ids, struct cj_error *err)
{
	if (ids->may_setgroups && privileges_become(ids->uid, ids->gid, true, err) < 0)
		return -err->code;
	if (geteuid() == 0) {
		(void)!cj_fail(err, EPERM, "become a user other than root");
		return cj_hint(err, "start cejail as an ordinary user");
	}
	if (privileges_keep_only(0, err) < 0)
		return -err->code;
	return end_with_parent(j->link.sock_fd, err); /* the change of ids has cleared it */
}

static int open_below(const char *dir, const char *name, int *out_fd, struct cj_error *err)
{
	char path[PRIVATE_DIR_MAX + 16];
	(void)snprintf(path, sizeof(path), "%s%s", dir, name);
	*out_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *out_fd < 0 ? cj_fail(err, errno, "open '%s'", path) : 0;
}

int init_reduced_handles(struct jail *j, struct cj_error *err)
{
	if (open_below(j->private_dir, "/box", &j->handles.box_fd, err) < 0 ||
	    open_below(j->private_dir, "", &j->handles.root_fd, err) < 0 ||
	    open_below("/proc", "", &j->handles.proc_fd, err) < 0)
		return -err->code;
	j->init.files_fd = fcntl(j->handles.root_fd, F_DUPFD_CLOEXEC, 0);
	if (j->init.files_fd < 0)
		return cj_fail(err, errno, "keep the private directory");
	j->init.oom_fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	(void)umask(022);
	return 0;
}

/* With this soft limit, may this user have one more process? */
static bool may_fork(rlim_t processes, rlim_t hard)
{
	const struct rlimit limit = { .rlim_cur = processes, .rlim_max = hard };
	if (setrlimit(RLIMIT_NPROC, &limit) < 0)
		return false;
	/* It only ends; NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.vfork) */
	pid_t pid = vfork();
	if (pid == 0)
		_exit(0); /* NOLINT(clang-analyzer-unix.Vfork) */
	if (pid > 0)
		(void)sys_waitpid(pid, NULL, 0); /* our child */
	return pid > 0;
}

/*
 * How many processes this user has in its user namespace, threads included.  /proc does not show
 * those of other containers, which the kernel counts, too.  So: the lowest limit with which fork(2)
 * succeeds, found by trying.
 */
static int count_processes(uint64_t *out, struct cj_error *err)
{
	struct rlimit own;
	if (getrlimit(RLIMIT_NPROC, &own) < 0)
		return cj_fail(err, errno, "read the limit of processes");
	rlim_t most = own.rlim_max < (4u << 20) ? own.rlim_max : 4u << 20; /* PID_MAX_LIMIT */
	rlim_t low = 0, high = 1;
	while (!may_fork(high, own.rlim_max)) {
		if (high >= most)
			return cj_fail(err, EAGAIN, "start a process");
		low = high;
		high = 2 * high < most ? 2 * high : most;
	}
	while (high - low > 1) {
		rlim_t middle = low + (high - low) / 2;
		*(may_fork(middle, own.rlim_max) ? &high : &low) = middle;
	}
	*out = high - 1;
	return setrlimit(RLIMIT_NPROC, &own) < 0 ? cj_fail(err, errno, "limit processes") : 0;
}

int init_reduced_limits(struct jail *j, struct cj_error *err)
{
	struct limits_spec limits = j->plan->limits;
	const bool by_rlimit = !j->cgroup.enforced[CGROUP_PIDS];
	const struct rlimit size = { limits.disk_bytes, limits.disk_bytes };
	uint64_t others = 0;
	if (by_rlimit && limits.pids > 0 && count_processes(&others, err) < 0)
		return -err->code;
	limits.pids += limits.pids > 0 ? others : 0; /* init is one of them, the guard will be */
	if (setrlimit(RLIMIT_FSIZE, &size) < 0 && errno != EPERM) /* EPERM: it is lower */
		return cj_fail(err, errno, "limit the size of files");
	return limits_apply(&limits, by_rlimit, err);
}

/* clang-format off */
/* Besides host_paths[]. */
static const struct landlock_view views[] = {
	{ "/dev/null", LANDLOCK_DEVICE },
	{ "/dev/zero", LANDLOCK_DEVICE },
	{ "/dev/full", LANDLOCK_DEVICE },
	{ "/dev/random", LANDLOCK_DEVICE },
	{ "/dev/urandom", LANDLOCK_DEVICE },
	/* Nothing of a process: a rule can't be for the program's own alone. */
	{ "/proc/cpuinfo", LANDLOCK_READ },
	{ "/proc/filesystems", LANDLOCK_READ },
	{ "/proc/loadavg", LANDLOCK_READ },
	{ "/proc/meminfo", LANDLOCK_READ },
	{ "/proc/stat", LANDLOCK_READ },
	{ "/proc/uptime", LANDLOCK_READ },
	{ "/proc/version", LANDLOCK_READ },
	{ "/proc/sys/kernel/cap_last_cap", LANDLOCK_READ },
	{ "/proc/sys/kernel/ngroups_max", LANDLOCK_READ },
	{ "/proc/sys/vm/overcommit_memory", LANDLOCK_READ },
};
/* clang-format on */
#define VIEW_MAX 128

int init_reduced_landlock(struct jail *j, struct cj_error *err)
{
	char box[PRIVATE_DIR_MAX + 16], tmp[PRIVATE_DIR_MAX + 16];
	struct landlock_view all[VIEW_MAX] = { { box, LANDLOCK_CHANGE }, { tmp, LANDLOCK_CHANGE } };
	size_t count = 2;
	const pid_t supervisor = getppid();
	bool has_scopes = false;
	(void)snprintf(box, sizeof(box), "%s/box", j->private_dir);
	(void)snprintf(tmp, sizeof(tmp), "%s/tmp", j->private_dir);
	if (COUNT_OF(views) + host_paths_count > VIEW_MAX - count)
		return cj_fail(err, E2BIG, "list what the program may open");
	memcpy(&all[count], views, sizeof(views));
	count += COUNT_OF(views);
	for (size_t i = 0; i < host_paths_count; i++)
		all[count++] = (struct landlock_view){ host_paths[i], LANDLOCK_READ };
	if (landlock_apply_views(all, count, err) < 0)
		return -err->code;
	if (kill(supervisor, 0) == 0 || errno != EPERM)
		return cj_reject(err, "Landlock is in force but keeps no signal inside");
	is_alone_in_domain = 1;
	j->init.domain_fd = landlock_domain_ruleset(&has_scopes, err);
	j->layers[LAYER_LANDLOCK] = LAYER_ON;
	return j->init.domain_fd < 0 ? -err->code : 0;
}

/* From here: the guard.  It has nothing but its memory, and waits. */
_Noreturn static void guard_main(pid_t init)
{
	(void)sys_close_range(0, ~0u, 0); /* else init's end would not close its link */
	(void)prctl(PR_SET_NAME, "jail-guard", 0, 0, 0); /* only what ps(1) shows */
	if (prctl(PR_SET_PDEATHSIG, INIT_END_SIGNAL, 0, 0, 0) < 0 || getppid() != init)
		on_end(INIT_END_SIGNAL);
	for (;;)
		(void)pause();
}

int init_reduced_guard(struct jail *j, struct cj_error *err)
{
	const pid_t init = getpid();
	(void)j;
	pid_t pid = fork();
	if (pid == 0)
		guard_main(init);
	return pid < 0 ? cj_fail(err, errno, "fork the guard") : 0;
}
