/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process of ours becomes what config.json says, short of the filter and execve(2).
 *
 * The order is the kernel's:
 *
 *	streams, session    as root of the container: a terminal gets its owner
 *	bounding set        while CAP_SETPCAP is effective
 *	working directory   tried as root first: users start in directories that they can't enter
 *	groups, user        while CAP_SETGID and CAP_SETUID are effective; PR_SET_KEEPCAPS keeps
 *	                    the permitted set
 *	capabilities        the four sets that are left, ambient last: it needs the others
 *	no_new_privs        last, because nothing above needs it and nothing below minds it
 */
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/ioprio.h>
#include <linux/sched/types.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "rootfs/tree_place.h"
#include "runtime/base/child.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/container/process/console.h"
#include "runtime/container/process/process_parts.h"
#include "runtime/kernel/process/privileges.h"

#define DEFAULT_UMASK 0022

static int set_groups(const struct process *p, struct cj_error *err)
{
	const struct oci_user *user = &p->wanted->user;
	if (setgroups(user->ngroups, user->groups) == 0)
		return 0;
	int why = errno;
	/* A user namespace that an ordinary user made denies it: its groups may restrict.  They are
	 * not mapped there.  user_namespaces(7) */
	if (why == EPERM && user->ngroups == 0 && capabilities_is_effective(CAP_SETGID))
		return 0;
	(void)!cj_fail(err, why, "set %zu additional groups", user->ngroups);
	return cj_hint_for(err, EINVAL,
			   "linux.gidMappings must map each of process.user.additionalGids");
}

static int set_ids(const struct process *p, struct cj_error *err)
{
	const struct oci_user *user = &p->wanted->user;
	uid_t uid[3];
	gid_t gid[3];
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
		return cj_fail(err, errno, "keep the capabilities over the change of user");
	if (setresgid(user->gid, user->gid, user->gid) < 0)
		return cj_fail(err, errno, "become group %u", user->gid);
	if (setresuid(user->uid, user->uid, user->uid) < 0)
		return cj_fail(err, errno, "become user %u", user->uid);
	/* With fs.suid_dumpable=1 the change has made this process dumpable. */
	if (child_become_undumpable(err) < 0)
		return -err->code;
	if (prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) < 0)
		return cj_fail(err, errno, "clear the keep-capabilities flag");

	if (getresuid(&uid[0], &uid[1], &uid[2]) < 0 || getresgid(&gid[0], &gid[1], &gid[2]) < 0)
		return cj_fail(err, errno, "read the user and group ids");
	for (int i = 0; i < 3; i++)
		if (uid[i] != user->uid || gid[i] != user->gid)
			return cj_fail(err, EPERM, "verify user %u and group %u", user->uid,
				       user->gid);
	return 0;
}

/*
 * Directories may be open to root or to the user only.  What was entered must be in the container:
 * by /proc/self/fd/N or a link it might be one of the host, for which the kernel has no path here
 * (CVE-2024-21626).  Not getcwd(3), which hides that; and before the filter, which may refuse it.
 */
static int enter_cwd(const char *cwd, bool is_entered, struct cj_error *err)
{
	char path[PATH_MAX];
	if (!is_entered && chdir(cwd) < 0)
		return cj_fail(err, errno, "process.cwd: change to '%s'", cwd);
	if (syscall(SYS_getcwd, path, sizeof(path)) < 0)
		return cj_fail(err, errno, "process.cwd: find the path of '%s'", cwd);
	if (path[0] != '/')
		return cj_reject_as(err, EPERM, "process.cwd: '%s' is outside the container's root",
				    cwd);
	return 0;
}

/* Executed programs keep it.  set_mempolicy(2) */
static int set_memory_policy(const struct oci_memory_policy *policy, struct cj_error *err)
{
	const unsigned long *bits = policy->nodes ? policy->nodes->bits : NULL;
	unsigned long count = 0;

	for (size_t i = 0; bits && i < OCI_SET_MAX; i++)
		if (bits[i / OCI_SET_BITS] >> i % OCI_SET_BITS & 1)
			count = i + 2; /* the kernel takes one less: set_mempolicy(2) */
	if (!policy->is_given ||
	    syscall(SYS_set_mempolicy, policy->mode | policy->flags, bits, count) == 0)
		return 0;
	(void)!cj_fail(err, errno, "linux.memoryPolicy: set the policy");
	cj_hint_for(err, ENOSYS, "this kernel is built without CONFIG_NUMA");
	return cj_hint_for(
	    err, EINVAL,
	    "mode, flags and nodes must go together, and a node have memory and be in "
	    "the cpuset: set_mempolicy(2)");
}

int process_make_cwd(const struct process *p, int root_fd, struct cj_error *err)
{
	const char *cwd = p->wanted->cwd;
	const struct tree_path at = { root_fd, cwd, cwd, .follows_links = true };
	struct cj_error unmade = { 0 };
	auto_fd int fd = tree_place_open(&at, TREE_PLACE_GIVEN, &unmade);
	if (fd != -ENOENT)
		return 0;
	mode_t saved = umask(0);
	fd = tree_place_open(&at, TREE_PLACE_DIRECTORY, err);
	(void)umask(saved);
	return fd < 0 ? cj_wrap(err, "process.cwd") : 0;
}

int process_become(struct process *p, const struct console *console, struct cj_error *err)
{
	const struct oci_process *wanted = p->wanted;
	const struct oci_linux *on_linux = &p->config->on_linux;
	const struct oci_u64 *mask = &wanted->user.umask;
	child_default_signals();
	if (child_unblock_signals(err) < 0)
		return -err->code;
	/* A member of the caller's session could push input into its terminal: TIOCSTI. */
	if ((console ? console_enter(console, err) : child_start_session(err)) < 0)
		return -err->code;
	/* Engines open the streams as root, and programs open them again by /dev/stderr. */
	const struct oci_user *user = &p->wanted->user;
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		struct stat st;
		if (fstat(fd, &st) < 0)
			return cj_fail(err, errno, "look at descriptor %d", fd);
		/* Not a device or a file of the host: nobody made /dev/null for this container. */
		if (!S_ISFIFO(st.st_mode) && !S_ISSOCK(st.st_mode))
			continue;
		/* Best effort: the owner may not be mapped.  The open descriptor works anyway. */
		int rc = st.st_uid != user->uid ? fchown(fd, user->uid, (gid_t)-1) : 0;
		(void)rc;
	}
	if (sys_close_range(CHILD_FIRST_FD + p->context.preserved_fds, ~0u, CLOSE_RANGE_CLOEXEC) <
	    0)
		return cj_fail(err, errno, "close all other descriptors at execve(2)");
	if (!p->context.keeps_keyring && privileges_join_keyring(err) < 0)
		return -err->code;
	if (on_linux->personality.is_given && personality(on_linux->personality.domain) < 0)
		return cj_fail(err, errno, "set the personality 0x%x",
			       on_linux->personality.domain);
	if (set_memory_policy(&on_linux->memory_policy, err) < 0)
		return -err->code;
	(void)umask(mask->is_set ? (mode_t)mask->value : DEFAULT_UMASK); /* returns the old one */
	if (capabilities_bound(p->caps.bounding, -1, err) < 0)
		return -err->code;
	bool has_entered = chdir(wanted->cwd) == 0;
	if (set_groups(p, err) < 0 || set_ids(p, err) < 0 ||
	    capabilities_apply(&p->caps, p->kept_caps, err) < 0 ||
	    (p->no_new_privileges && privileges_no_new(err) < 0))
		return -err->code;
	return enter_cwd(wanted->cwd, has_entered, err);
}

/* Without CAP_SYS_RESOURCE the kernel lets nobody set the limits of a process of another user.  It
 * may lower its own limits later, and has those of this process. */
int process_set_limits(const struct oci_process *wanted, pid_t pid, struct cj_error *err)
{
	for (size_t i = 0; i < wanted->nrlimits; i++) {
		const struct oci_rlimit *r = &wanted->rlimits[i];
		const __rlimit_resource_t resource = (__rlimit_resource_t)r->resource;
		const struct rlimit limit = { .rlim_cur = r->soft, .rlim_max = r->hard };
		struct rlimit now;
		if (prlimit(pid, resource, &limit, NULL) == 0)
			continue;
		int why = errno;
		if (pid != 0 && why == EPERM && getrlimit(resource, &now) == 0 &&
		    r->hard <= now.rlim_max)
			continue;
		(void)!cj_fail(err, why, "process.rlimits: set %s to %" PRIu64 ", hard %" PRIu64,
			       oci_rlimit_name(r->resource), r->soft, r->hard);
		return cj_hint_for(err, EPERM,
				   "only CAP_SYS_RESOURCE raises a hard limit: getrlimit(2)");
	}
	return 0;
}

int process_adjust_own_cpus(const struct oci_set *cpus, struct cj_error *err)
{
	struct oci_set all;

	memset(&all, 0xff, sizeof(all));
	/* The kernel leaves out those that do not exist or are not of the cpuset. */
	if (syscall(SYS_sched_setaffinity, 0, sizeof(all), cpus ? cpus : &all) == 0)
		return 0;
	(void)!cj_fail(err, errno, "process.execCPUAffinity: set the CPUs");
	return cj_hint_for(err, EINVAL, "none of them is online and in the cgroup's cpuset");
}

static int put_oom_score(const struct oci_process *wanted, const char *path, struct cj_error *err)
{
	char score[32];
	(void)snprintf(score, sizeof(score), "%" PRId64, wanted->oom_score_adj.value);
	if (fd_put_file(AT_FDCWD, path, score, err) == 0)
		return 0;
	if (err->code == EACCES)
		(void)cj_hint(err, "only CAP_SYS_RESOURCE lowers it: proc(5)");
	return cj_wrap(err, "process.oomScoreAdj");
}

int process_adjust_self(const struct oci_process *wanted, struct cj_error *err)
{
	if (!wanted->oom_score_adj.is_set || geteuid() == 0)
		return 0;
	int was = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
	if (was < 0 || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return cj_fail(err, errno, "become dumpable");
	int rc = put_oom_score(wanted, "/proc/self/oom_score_adj", err);
	if (was != 1 && child_become_undumpable(err) < 0)
		return -err->code;
	return rc;
}

int process_adjust(const struct process *p, pid_t pid, struct cj_error *err)
{
	const struct oci_process *wanted = p->wanted;
	const struct oci_io_priority *io = &wanted->io_priority;
	char path[64];
	(void)snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", pid);
	if (wanted->oom_score_adj.is_set && geteuid() == 0 && put_oom_score(wanted, path, err) < 0)
		return -err->code;
	if (io->is_given && syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, pid,
				    IOPRIO_PRIO_VALUE(io->io_class, (int)io->level)) < 0)
		return cj_fail(err, errno, "process.ioPriority: set the I/O priority");
	const struct oci_scheduler *s = &wanted->scheduler;
	const struct sched_attr attr = {
		.size = sizeof(attr),
		.sched_policy = (uint32_t)s->policy,
		.sched_flags = s->flags,
		.sched_nice = s->nice,
		.sched_priority = (uint32_t)s->priority,
		.sched_runtime = s->runtime_ns,
		.sched_deadline = s->deadline_ns,
		.sched_period = s->period_ns,
	};
	if (s->is_given && syscall(SYS_sched_setattr, pid, &attr, 0) < 0)
		return cj_fail(err, errno, "process.scheduler: set the scheduling policy");
	return process_set_limits(wanted, pid, err); /* last: they may bind the other calls */
}
