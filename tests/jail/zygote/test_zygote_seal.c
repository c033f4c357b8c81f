/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: zygote_check_memory */
/* WRAP: libexec_find setns chdir privileges_become privileges_join_keyring limits_apply */
/* WRAP: privileges_no_new landlock_restrict privileges_drop filter_load zygote_request_read */
/*
 * A fork of a zygote that can't be sealed ends, and the supervisor says why.  One that says it is
 * sealed and is not is refused.
 */
#include "tests/service/queue/zygotes.h"

#include <poll.h>

#include "runtime/base/files/system_file.h"
#include "runtime/kernel/process/landlock.h"
#include "runtime/jail/init/init.h"
#include "runtime/jail/zygote/zygote_protocol.h"
#include "runtime/kernel/process/privileges.h"
#include "tests/patience.h"

/* Set in the zygote only: what fails in its children, or does nothing and says it has succeeded. */
static const char *failing = "", *skipped = "";

static bool fails(const char *function)
{
	return strcmp(failing, function) == 0;
}

#define BREAKS(function, parameters, arguments)                                                    \
	int __real_##function parameters;                                                          \
	int __wrap_##function parameters;                                                          \
	int __wrap_##function parameters                                                           \
	{                                                                                          \
		if (fails(#function))                                                              \
			return cj_fail(err, EIO, "made to fail");                                  \
		return strcmp(skipped, #function) == 0 ? 0 : __real_##function arguments;          \
	}
BREAKS(privileges_become, (uid_t uid, gid_t gid, bool may, struct cj_error *err),
       (uid, gid, may, err))
BREAKS(privileges_join_keyring, (struct cj_error * err), (err))
BREAKS(limits_apply, (const struct limits_spec *l, bool p, struct cj_error *err), (l, p, err))
BREAKS(privileges_no_new, (struct cj_error * err), (err))
BREAKS(landlock_restrict, (int fd, struct cj_error *err), (fd, err))
BREAKS(privileges_drop, (int proc_fd, struct cj_error *err), (proc_fd, err))
BREAKS(filter_load, (const struct filter *f, int *out_fd, struct cj_error *err), (f, out_fd, err))

int __real_setns(int fd, int type);
int __wrap_setns(int fd, int type);
int __wrap_setns(int fd, int type)
{
	static const struct {
		const char *name;
		int type;
	} of[] = { { "setns user", CLONE_NEWUSER }, { "setns mount", CLONE_NEWNS },
		   { "setns net", CLONE_NEWNET },   { "setns ipc", CLONE_NEWIPC },
		   { "setns uts", CLONE_NEWUTS },   { "setns cgroup", CLONE_NEWCGROUP },
		   { "setns pid", CLONE_NEWPID } };
	if (type == CLONE_NEWIPC && fails("kill"))
		(void)raise(SIGKILL);
	errno = EIO;
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++)
		if (type == of[i].type && fails(of[i].name))
			return -1;
	if (type == CLONE_NEWUSER && getsid(0) == getpid() && fails("setns program"))
		return -1;
	return __real_setns(fd, type);
}

int __real_chdir(const char *path);
int __wrap_chdir(const char *path);
int __wrap_chdir(const char *path)
{
	errno = EIO;
	return fails("chdir") ? -1 : __real_chdir(path);
}

int __real_zygote_request_read(const struct step_msg *msg, struct zygote_job *out,
			       struct cj_error *err);
int __wrap_zygote_request_read(const struct step_msg *msg, struct zygote_job *out,
			       struct cj_error *err);
int __wrap_zygote_request_read(const struct step_msg *msg, struct zygote_job *out,
			       struct cj_error *err)
{
	if (fails("zygote_request_read"))
		return cj_fail(err, EIO, "made to fail");
	int rc = __real_zygote_request_read(msg, out, err);
	if (strcmp(skipped, "cgroup") == 0)
		out->fds[ZYGOTE_FD_CGROUP] = -1;
	return rc;
}

static const char *wanted_failing = "", *wanted_skipped = "";

static void break_zygote(void)
{
	failing = wanted_failing;
	skipped = wanted_skipped;
}

static void do_nothing(void)
{
}

/* If the jail's end met an intermediate process, the zygote would end, too: zygote_enter.c. */
static void await_intermediates(pid_t zygote_pid)
{
	char path[64], pids[SYSTEM_FILE_SMALL];
	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", zygote_pid, zygote_pid);
	for (int i = 0;
	     i < patience_ms(10000) && system_file_read(AT_FDCWD, path, pids, sizeof(pids)) > 0;
	     i++)
		(void)poll(NULL, 0, 1);
}

/* One jail after another: a failure leaves the zygote able to serve. */
static void try_broken(const char *to_fail, const char *to_skip, int code, const char *said)
{
	struct run r;
	run_init(&r, NULL, "");
	wanted_failing = to_fail;
	wanted_skipped = to_skip;
	spawn_own(&r, break_zygote, do_nothing);
	assert_int_equal(zygote_await_ready(&r.zygote, ready_ms(), &r.err), 0);
	for (int i = 0; i < 2; i++) {
		r.err = (struct cj_error){ 0 };
		int rc = warm(&r);
		if (rc != -code)
			print_error("%s%s: %d, '%s'\n", to_fail, to_skip, rc, r.err.msg);
		assert_int_equal(rc, -code);
		assert_said(&r, said);
		assert_said(&r, "program: interpreter '/bin/sh'");
		await_intermediates(r.zygote.pid);
		jail_destroy(&r.jail);
	}
	run_fini(&r);
}

static void a_step_that_fails_ends_the_fork_and_is_reported(void **state)
{
	(void)state;
	static const struct {
		const char *function, *said;
	} cases[] = {
		{ "zygote_request_read", "made to fail" },
		{ "setns user", "enter the jail's user namespace" },
		{ "setns mount", "enter the jail's mount namespace" },
		{ "setns net", "enter the jail's network namespace" },
		{ "setns ipc", "enter the jail's ipc namespace" },
		{ "setns uts", "enter the jail's uts namespace" },
		{ "setns cgroup", "enter the jail's cgroup namespace" },
		{ "setns pid", "enter the jail's pid namespace" },
		{ "privileges_become", "ids: made to fail" },
		{ "setns program", "user namespace: enter the program's user namespace" },
		{ "privileges_join_keyring", "ids: made to fail" },
		{ "limits_apply", "rlimits: made to fail" },
		{ "privileges_no_new", "no new privileges: made to fail" },
		{ "privileges_drop", "capabilities: made to fail" },
		{ "chdir", "working directory: start in directory '/box'" },
		{ "filter_load", "filter: made to fail" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		try_broken(cases[i].function, "", EIO, cases[i].said);
	if (landlock_abi() > 0)
		try_broken("landlock_restrict", "", EIO, "landlock: made to fail");
}

/* An intermediate process that another one could outlive, in the zygote's memory. */
static void a_zygote_ends_when_a_part_of_its_memory_is_killed(void **state)
{
	(void)state;
	struct run r;
	run_init(&r, NULL, "");
	wanted_failing = "kill";
	wanted_skipped = "";
	spawn_own(&r, break_zygote, do_nothing);
	assert_int_equal(zygote_await_ready(&r.zygote, ready_ms(), &r.err), 0);
	assert_int_equal(warm(&r), -EPIPE);
	assert_said(&r, "the zygote ended before 'sealed'");
	siginfo_t info = { 0 };
	assert_int_equal(waitid(P_PIDFD, (id_t)r.zygote.pidfd, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(info.si_status, EXIT_FAILURE);
	run_fini(&r);
}

static void a_fork_that_is_not_sealed_is_refused(void **state)
{
	(void)state;
	try_broken("", "privileges_drop", EPERM, "no 'CapPrm:\t0000000000000000' in its status");
	try_broken("", "filter_load", EPERM, "is not sealed: no 'Seccomp:\t2' in its status");
	struct run r;
	run_init(&r, NULL, "");
	prepare(&r);
	bool has_cgroup = r.jail->cgroup.dir_fd >= 0;
	run_fini(&r);
	if (has_cgroup)
		try_broken("", "cgroup", EPERM, "is not in the jail's cgroup");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_that_fails_ends_the_fork_and_is_reported),
		cmocka_unit_test(a_zygote_ends_when_a_part_of_its_memory_is_killed),
		cmocka_unit_test(a_fork_that_is_not_sealed_is_refused),
	};
	return RUN_TESTS_OF_JAILS(tests);
}
