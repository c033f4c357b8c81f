/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/container/process/process_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/ioprio.h>
#include <linux/sched/types.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/child.h"
#include "runtime/base/files/fd.h"

static int set_rlimit(const struct oci_rlimit *r, pid_t pid)
{
	const struct rlimit limit = { .rlim_cur = r->soft, .rlim_max = r->hard };
	return prlimit(pid, (__rlimit_resource_t)r->resource, &limit, NULL) < 0 ? -errno : 0;
}

static int fail_rlimit(const struct oci_rlimit *r, int code, struct cj_error *err)
{
	int rc = cj_fail(err, code, "process.rlimits: set %s to %" PRIu64 ", hard %" PRIu64,
			 oci_rlimit_name(r->resource), r->soft, r->hard);
	if (code == EPERM)
		(void)cj_hint(err, "only CAP_SYS_RESOURCE raises a hard limit: getrlimit(2)");
	return rc;
}

/* Without CAP_SYS_RESOURCE the kernel lets nobody set the limits of a process of another user. */
static int set_rlimits(const struct oci_process *wanted, pid_t pid, struct cj_error *err)
{
	for (size_t i = 0; i < wanted->nrlimits; i++) {
		const struct oci_rlimit *r = &wanted->rlimits[i];
		int rc = set_rlimit(r, pid);
		struct rlimit
		    now; /* a process may lower its own limits; it has those of this one */
		bool may_set_own = rc == -EPERM &&
				   getrlimit((__rlimit_resource_t)r->resource, &now) == 0 &&
				   r->hard <= now.rlim_max;
		if (rc < 0 && !may_set_own)
			return fail_rlimit(r, -rc, err);
	}
	return 0;
}

int process_adjust_own_limits(const struct oci_process *wanted, struct cj_error *err)
{
	for (size_t i = 0; i < wanted->nrlimits; i++) {
		int rc = set_rlimit(&wanted->rlimits[i], 0);
		if (rc < 0)
			return fail_rlimit(&wanted->rlimits[i], -rc, err);
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
	int rc = cj_fail(err, errno, "process.execCPUAffinity: set the CPUs");
	if (err->code == EINVAL)
		(void)cj_hint(err, "none of them is online and in the cgroup's cpuset");
	return rc;
}

int process_adjust_own_memory(const struct oci_memory_policy *policy, struct cj_error *err)
{
	const unsigned long *bits = policy->nodes ? policy->nodes->bits : NULL;
	unsigned long count = 0;

	for (size_t i = 0; bits && i < OCI_SET_MAX; i++)
		if (bits[i / OCI_SET_BITS] >> i % OCI_SET_BITS & 1)
			count = i + 2; /* the kernel takes one less: set_mempolicy(2) */
	if (!policy->is_given ||
	    syscall(SYS_set_mempolicy, policy->mode | policy->flags, bits, count) == 0)
		return 0;
	int rc = cj_fail(err, errno, "linux.memoryPolicy: set the policy");
	if (err->code == ENOSYS)
		(void)cj_hint(err, "this kernel is built without CONFIG_NUMA");
	else if (err->code == EINVAL)
		(void)cj_hint(err, "mode, flags and nodes must go together, and a node have memory "
				   "and be in the cpuset: set_mempolicy(2)");
	return rc;
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

static int set_oom_score(const struct oci_process *wanted, pid_t pid, struct cj_error *err)
{
	char path[64];
	if (!wanted->oom_score_adj.is_set || geteuid() != 0)
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", pid);
	return put_oom_score(wanted, path, err);
}

static int set_scheduler(const struct oci_process *wanted, pid_t pid, struct cj_error *err)
{
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
	return 0;
}

static int set_io_priority(const struct oci_process *wanted, pid_t pid, struct cj_error *err)
{
	const struct oci_io_priority *io = &wanted->io_priority;
	if (io->is_given && syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, pid,
				    IOPRIO_PRIO_VALUE(io->io_class, (int)io->level)) < 0)
		return cj_fail(err, errno, "process.ioPriority: set the I/O priority");
	return 0;
}

int process_adjust_pid(const struct oci_process *wanted, pid_t pid, struct cj_error *err)
{
	/* The limits come last: they may bind the other calls. */
	if (set_oom_score(wanted, pid, err) < 0 || set_io_priority(wanted, pid, err) < 0 ||
	    set_scheduler(wanted, pid, err) < 0 || set_rlimits(wanted, pid, err) < 0)
		return -err->code;
	return 0;
}
