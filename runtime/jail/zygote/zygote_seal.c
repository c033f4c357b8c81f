/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seals a copy of the zygote; runs in a process of the jail that is not sealed yet.
 *
 * The copy has the zygote's ids and, in the jail's outer user namespace, every capability.  It
 * gives up rights in the order of init_stages[] (init.c), with the same functions.  Only trusted
 * code has run in it.
 */
#include "runtime/jail/zygote/zygote_inside.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "runtime/base/child.h"
#include "runtime/base/scope.h"
#include "runtime/kernel/process/landlock.h"
#include "runtime/jail/init/init.h"
#include "runtime/kernel/process/privileges.h"
#include "runtime/kernel/seccomp/filter.h"

/* The descriptors that it needs until it is sealed, at their new places. */
struct sealing {
	const struct zygote_job *job;
	int report_fd, program_user_fd, ruleset_fd;
};

/* The launcher's streams and socket; all else closes on its way or with the last seal. */
static int take_descriptors(struct sealing *s, struct cj_error *err)
{
	const struct zygote_job *job = s->job;
	int kept[CHILD_FDS_MAX] = { job->fds[ZYGOTE_FD_LINK], job->fds[ZYGOTE_FD_CALLS],
				    job->fds[ZYGOTE_FD_REPORT],
				    job->fds[ZYGOTE_FD_NAMESPACES + ZYGOTE_PROGRAM_USER],
				    job->fds[ZYGOTE_FD_RULESET] };
	for (int i = 0; i < 3; i++)
		if (dup2(job->fds[ZYGOTE_FD_STDIN + i], i) < 0)
			return cj_fail(err, errno, "give the interpreter its standard streams");
	if (child_keep_only(kept, job->request.has_ruleset ? 5 : 4, err) < 0)
		return -err->code;
	/* as a launcher's that was executed */
	if (fcntl(kept[0], F_SETFD, 0) < 0 || fcntl(kept[1], F_SETFD, 0) < 0)
		return cj_fail(err, errno, "give the interpreter its sockets");
	s->report_fd = kept[2];
	s->program_user_fd = kept[3];
	s->ruleset_fd = kept[4];
	return 0;
}

/* *step is the name of the step that is taken, for messages. */
static int become_user(struct sealing *s, const char **step, struct cj_error *err)
{
	const struct zygote_request *r = &s->job->request;
	*step = "descriptors"; /* first: the zygote's own are gone */
	if (take_descriptors(s, err) < 0)
		return -err->code;

	*step = "session"; /* no process group of the zygote, no terminal */
	umask(022);
	if (child_start_session(err) < 0)
		return -err->code;

	/* Before the program's user namespace, in which no other id is mapped.  The keyring counts
	 * as a key of the jail's user. */
	*step = "ids";
	if (privileges_become(r->uid, r->gid, r->may_setgroups, err) < 0 ||
	    privileges_join_keyring(err) < 0)
		return -err->code;

	*step = "user namespace"; /* no step below needs a capability over the namespaces */
	if (setns(s->program_user_fd, CLONE_NEWUSER) < 0)
		return cj_fail(err, errno, "enter the program's user namespace");
	cj_close(&s->program_user_fd);
	return 0;
}

static int drop_rights(struct sealing *s, const char **step, struct cj_error *err)
{
	const struct zygote_request *r = &s->job->request;
	*step = "rlimits"; /* hard limits can only be lowered: setrlimit(2) */
	if (limits_apply(&r->limits, r->pids_by_rlimit, err) < 0)
		return -err->code;

	*step = "no new privileges"; /* landlock(7) and seccomp(2) require it */
	if (privileges_no_new(err) < 0)
		return -err->code;

	/* A second layer, after the mounts: the ruleset that init has made for itself. */
	*step = "landlock";
	if (s->ruleset_fd >= 0 && landlock_restrict(s->ruleset_fd, err) < 0)
		return -err->code;
	cj_close(&s->ruleset_fd);

	/*
	 * Before execve(2) init's children are undumpable like it; a launcher is not, and reads its
	 * own /proc/self.  Nothing untrusted is in the jail yet.  The memory still belongs to the
	 * user namespace of the zygote, so no process inside gains a right over it by capabilities.
	 */
	*step = "capabilities"; /* no step below needs one */
	if (privileges_drop(-1, err) < 0)
		return -err->code;
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return cj_fail(err, errno, "become dumpable");

	*step = "working directory"; /* with the rights of the program */
	if (chdir(s->job->workdir) < 0)
		return cj_fail(err, errno, "start in directory '%s'", s->job->workdir);
	return 0;
}

/* The smallest area that the kernel takes: rseq(2).  A later C library says fewer bytes. */
#define RSEQ_BYTES_MIN 32

/*
 * The kernel drops the registration in a clone with CLONE_VM, and the C library would read the
 * zygote's processor number for ever.  If the kernel refuses a new one, this writes the value that
 * makes the library call getcpu(2) each time.
 */
static void register_rseq(void)
{
	if (__rseq_size == 0)
		return; /* the C library has not registered one */
	struct rseq *area = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
	unsigned size = __rseq_size < RSEQ_BYTES_MIN ? RSEQ_BYTES_MIN : __rseq_size;
	area->cpu_id_start = 0;
	area->cpu_id = (uint32_t)RSEQ_CPU_ID_UNINITIALIZED;
	if (syscall(SYS_rseq, area, size, 0, RSEQ_SIG) < 0)
		area->cpu_id = (uint32_t)RSEQ_CPU_ID_REGISTRATION_FAILED;
}

/* The supervisor gets the listener, and this process keeps no copy. */
static int load_filter(struct sealing *s, struct cj_error *err)
{
	const struct zygote_request *r = &s->job->request;
	auto_fd int listener_fd = -1;
	const struct filter filter = {
		.insns = s->job->insns,
		.ninsns = (unsigned short)r->ninsns,
		.asks_network = r->asks_network,
		.closes_uncounted = r->closes_uncounted,
	};
	if (filter_load(&filter, &listener_fd, err) < 0)
		return -err->code;

	const struct step_link report = { s->report_fd, "the supervisor", zygote_step_names };
	if (step_tell(&report, ZYGOTE_SEALED, NULL, 0, &listener_fd, listener_fd >= 0, err) < 0)
		return -err->code;
	cj_close(&s->report_fd);
	return 0;
}

int zygote_seal(const struct zygote_job *job, struct cj_error *err)
{
	struct sealing s = { .job = job,
			     .report_fd = job->fds[ZYGOTE_FD_REPORT],
			     .program_user_fd = -1,
			     .ruleset_fd = -1 };
	const char *step;
	int rc = become_user(&s, &step, err);
	if (rc == 0)
		rc = drop_rights(&s, &step, err);
	if (rc == 0) {
		/*
		 * Init accepts "ready" only from a child of its own (intake.c).  It becomes our
		 * parent when the intermediate process that forked us ends, which happens soon.
		 */
		while (getppid() != 1)
			(void)sched_yield(); /* cannot fail */
		register_rseq();             /* a caller's filter may refuse it */
		step = "filter";             /* last: the steps above use calls that it refuses */
		rc = load_filter(&s, err);
	}
	if (rc == 0)
		return 0;
	const struct step_link report = { s.report_fd, "the supervisor", zygote_step_names };
	(void)!cj_wrap(err, "%s", step);
	step_abort(&report, err);
	return rc;
}
