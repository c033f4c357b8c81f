/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seals a copy of the zygote; runs in a process of the jail that is not sealed yet.
 *
 * The copy has the zygote's ids and, in the jail's outer user namespace, every capability.  It goes
 * down seals[] as init went down init_stages[], with the same functions.  Only trusted code has run
 * in it.
 */
#include "runtime/jail/zygote/zygote_inside.h"

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/child.h"
#include "runtime/base/scope.h"
#include "runtime/kernel/process/landlock.h"
#include "runtime/jail/init/limits.h"
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
	int kept[CHILD_FDS_MAX] = { job->fds[ZYGOTE_FD_LINK], job->fds[ZYGOTE_FD_REPORT],
				    job->fds[ZYGOTE_FD_NAMESPACES + ZYGOTE_PROGRAM_USER],
				    job->fds[ZYGOTE_FD_RULESET] };
	for (int i = 0; i < 3; i++)
		if (dup2(job->fds[ZYGOTE_FD_STDIN + i], i) < 0)
			return cj_fail(err, errno, "give the interpreter its standard streams");
	if (child_keep_only(kept, job->request.has_ruleset ? 4 : 3, err) < 0)
		return -err->code;
	if (fcntl(kept[0], F_SETFD, 0) < 0) /* as a launcher's that was executed */
		return cj_fail(err, errno, "give the interpreter its socket");
	s->report_fd = kept[1];
	s->program_user_fd = kept[2];
	s->ruleset_fd = kept[3];
	return 0;
}

static int start_session(struct sealing *s, struct cj_error *err)
{
	(void)s;
	umask(022);
	return child_start_session(err);
}

static int become_user(struct sealing *s, struct cj_error *err)
{
	const struct zygote_request *r = &s->job->request;
	if (privileges_become(r->uid, r->gid, r->may_setgroups, err) < 0)
		return -err->code;
	return privileges_join_keyring(err); /* counts as a key of the jail's user */
}

static int enter_user_namespace(struct sealing *s, struct cj_error *err)
{
	if (setns(s->program_user_fd, CLONE_NEWUSER) < 0)
		return cj_fail(err, errno, "enter the program's user namespace");
	cj_close(&s->program_user_fd);
	return 0;
}

static int limit(struct sealing *s, struct cj_error *err)
{
	const struct zygote_request *r = &s->job->request;
	return limits_apply(&r->limits, r->pids_by_rlimit, err);
}

static int set_no_new_privileges(struct sealing *s, struct cj_error *err)
{
	(void)s;
	return privileges_no_new(err);
}

/* Init made the ruleset for itself, so it is the same. */
static int restrict_files(struct sealing *s, struct cj_error *err)
{
	if (s->ruleset_fd < 0)
		return 0;
	int rc = landlock_restrict(s->ruleset_fd, err);
	cj_close(&s->ruleset_fd);
	return rc;
}

/*
 * Before execve(2) init's children are undumpable like it; a launcher is not, and reads its own
 * /proc/self.  Nothing untrusted is in the jail yet.  The memory still belongs to the user
 * namespace of the zygote, so no process inside gains a right over it by capabilities.
 */
static int drop_privileges(struct sealing *s, struct cj_error *err)
{
	(void)s;
	if (privileges_drop(err) < 0)
		return -err->code;
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return cj_fail(err, errno, "become dumpable");
	return 0;
}

static int change_directory(struct sealing *s, struct cj_error *err)
{
	if (chdir(s->job->workdir) < 0)
		return cj_fail(err, errno, "start in directory '%s'", s->job->workdir);
	return 0;
}

/* Init accepts "ready" only from a child of its own (intake.c).  It becomes our parent when the
 * intermediate process that forked us ends, which is about to happen. */
static int await_init(struct sealing *s, struct cj_error *err)
{
	(void)s, (void)err;
	while (getppid() != 1)
		(void)sched_yield(); /* cannot fail */
	return 0;
}

/* The smallest area that the kernel takes: rseq(2).  A later C library says fewer bytes. */
#define RSEQ_BYTES_MIN 32

/*
 * The kernel drops the registration in a clone with CLONE_VM, and the C library would read the
 * zygote's processor number for ever.  If the kernel refuses a new one, this writes the value that
 * makes the library call getcpu(2) each time.
 */
static int register_rseq(struct sealing *s, struct cj_error *err)
{
	(void)s, (void)err;
	if (__rseq_size == 0)
		return 0; /* the C library has not registered one */
	struct rseq *area = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
	unsigned size = __rseq_size < RSEQ_BYTES_MIN ? RSEQ_BYTES_MIN : __rseq_size;
	area->cpu_id_start = 0;
	area->cpu_id = (uint32_t)RSEQ_CPU_ID_UNINITIALIZED;
	if (syscall(SYS_rseq, area, size, 0, RSEQ_SIG) < 0)
		area->cpu_id = (uint32_t)RSEQ_CPU_ID_REGISTRATION_FAILED;
	return 0;
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

static const struct {
	const char *name;
	int (*apply)(struct sealing *s, struct cj_error *err);
} seals[] = {
	/* name, apply, and why it stands here; init_stages[] has the order of most */
	{ "descriptors", take_descriptors },
	/* first: the zygote's own are gone */
	{ "session", start_session },
	/* no process group of the zygote, no terminal */
	{ "ids", become_user },
	/* before the program's user namespace, in which no other id is mapped */
	{ "user namespace", enter_user_namespace },
	/* no row below needs a capability over the namespaces */
	{ "rlimits", limit },
	/* hard limits can only be lowered: setrlimit(2) */
	{ "no new privileges", set_no_new_privileges },
	/* landlock(7) and seccomp(2) require it */
	{ "landlock", restrict_files },
	/* a second layer, after the mounts */
	{ "capabilities", drop_privileges },
	/* no row below needs one */
	{ "working directory", change_directory },
	/* with the rights of the program */
	{ "parent", await_init },
	/* late: the other process ends meanwhile */
	{ "rseq", register_rseq },
	/* a caller's filter may refuse it */
	{ "filter", load_filter },
	/* last: the rows above use calls that it refuses */
};

int zygote_seal(const struct zygote_job *job, struct cj_error *err)
{
	struct sealing s = { .job = job,
			     .report_fd = job->fds[ZYGOTE_FD_REPORT],
			     .program_user_fd = -1,
			     .ruleset_fd = -1 };
	for (size_t i = 0; i < sizeof(seals) / sizeof(seals[0]); i++) {
		if (seals[i].apply(&s, err) == 0)
			continue;
		const struct step_link report = { s.report_fd, "the supervisor",
						  zygote_step_names };
		(void)!cj_wrap(err, "%s", seals[i].name);
		step_abort(&report, err);
		return -err->code;
	}
	return 0;
}
