/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linux.seccomp in force: a child loads what was compiled and makes calls.  getpid(2) ignores its
 * arguments, so any condition can be tried on it.
 */
#include "runtime/container/process/process_parts.h"

#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>
#include <seccomp.h>

#include "runtime/base/sys.h"
#include "tests/forked.h"

static const char *getpid_name[] = { "getpid", NULL };
static const char *both_names[] = { "no_such_call", "getpid", NULL };
#define TEXTS(list)                                                                                \
	{                                                                                          \
		.items = (list), .count = sizeof(list) / sizeof((list)[0]) - 1                     \
	}
#define ARGS(list)  .args = (list), .nargs = sizeof(list) / sizeof((list)[0])
#define RULES(list) .rules = (list), .nrules = sizeof(list) / sizeof((list)[0])

/* What a call came to: an errno, 0, or 1000 plus the signal that ended the child. */
static int try_call(const struct oci_seccomp *seccomp, uint64_t one, uint64_t two)
{
	struct arena arena = { 0 };
	struct sock_fprog program = { 0 };
	struct cj_error err = { 0 };
	int status;

	if (process_filter_compile(seccomp, &arena, &program, &err) < 0)
		fail_msg("%s", err.msg);
	pid_t pid = test_fork();
	if (pid == 0) {
		(void)signal(SIGSYS, SIG_DFL); /* cmocka has a handler */
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		    sys_seccomp(SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
			_exit(255);
		errno = 0;
		long rc = syscall(SYS_getpid, one, two);
		/* Not _exit(2): a sanitizer's looks for leaks, under this filter. */
		(void)syscall(SYS_exit_group, rc < 0 ? errno : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	arena_fini(&arena);
	return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void refuses(const struct oci_seccomp *seccomp, const char *message)
{
	struct arena arena = { 0 };
	struct sock_fprog program = { 0 };
	struct cj_error err = { 0 };
	int rc = process_filter_compile(seccomp, &arena, &program, &err);

	arena_fini(&arena);
	assert_int_equal(rc, -EINVAL);
	assert_non_null(strstr(err.msg, message));
}

static void each_action_does_what_it_says(void **state)
{
	static const struct {
		enum policy_action action;
		struct oci_u64 number;
		int result;
	} rows[] = {
		{ POLICY_KILL_THREAD, { 0 }, 1000 + SIGSYS },
		{ POLICY_KILL_PROCESS, { 0 }, 1000 + SIGSYS },
		{ POLICY_TRAP, { 0 }, 1000 + SIGSYS },
		{ POLICY_ERRNO, { 0 }, EPERM },
		{ POLICY_ERRNO, { true, 77 }, 77 },
		{ POLICY_ERRNO, { true, 0 }, 0 },
		{ POLICY_TRACE, { true, 5 }, ENOSYS }, /* there is no tracer */
		{ POLICY_LOG, { 0 }, 0 },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct oci_seccomp_rule rule = { .names = TEXTS(getpid_name),
						       .action = rows[i].action,
						       .errno_ret = rows[i].number };
		const struct oci_seccomp seccomp = { .is_given = true,
						     .default_action = POLICY_ALLOW,
						     .rules = &rule,
						     .nrules = 1 };
		assert_int_equal(try_call(&seccomp, 0, 0), rows[i].result);
	}
}

static void the_default_has_its_errno(void **state)
{
	static const char *allowed[] = { "exit_group", NULL };
	const struct oci_seccomp_rule rule = { .names = TEXTS(allowed), .action = POLICY_ALLOW };
	struct oci_seccomp seccomp = {
		.is_given = true, .default_action = POLICY_ERRNO, .rules = &rule, .nrules = 1
	};
	(void)state;
	assert_int_equal(try_call(&seccomp, 0, 0), EPERM);
	seccomp.default_errno_ret = (struct oci_u64){ true, ENOSYS };
	assert_int_equal(try_call(&seccomp, 0, 0), ENOSYS);
}

static void each_operator_decides(void **state)
{
	static const struct {
		struct policy_arg arg;
		uint64_t matches, differs;
	} rows[] = {
		{ { 0, POLICY_NE, 5, 0 }, 6, 5 },
		{ { 0, POLICY_LT, 5, 0 }, 4, 5 },
		{ { 0, POLICY_LE, 5, 0 }, 5, 6 },
		{ { 0, POLICY_EQ, 5, 0 }, 5, 6 },
		{ { 0, POLICY_GE, 5, 0 }, 5, 4 },
		{ { 0, POLICY_GT, 5, 0 }, 6, 5 },
		{ { 0, POLICY_MASKED_EQ, 0xf0, 0x30 }, 0x3f, 0x40 },
		/* all 64 bits count */
		{ { 0, POLICY_EQ, UINT64_C(1) << 40, 0 }, UINT64_C(1) << 40, 0 },
		{ { 0, POLICY_GT, UINT64_C(1) << 40, 0 }, UINT64_C(1) << 41, 7 },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct oci_seccomp_rule rule = { .names = TEXTS(getpid_name),
						       .action = POLICY_ERRNO,
						       .errno_ret = { true, 77 },
						       .args = &rows[i].arg,
						       .nargs = 1 };
		const struct oci_seccomp seccomp = { .is_given = true,
						     .default_action = POLICY_ALLOW,
						     .rules = &rule,
						     .nrules = 1 };
		assert_int_equal(try_call(&seccomp, rows[i].matches, 0), 77);
		assert_int_equal(try_call(&seccomp, rows[i].differs, 0), 0);
	}
}

static void all_conditions_of_a_rule_must_be_true(void **state)
{
	static const struct policy_arg args[] = { { 0, POLICY_EQ, 1, 0 }, { 1, POLICY_EQ, 2, 0 } };
	const struct oci_seccomp_rule rule = { .names = TEXTS(getpid_name),
					       .action = POLICY_ERRNO,
					       .errno_ret = { true, 77 },
					       ARGS(args) };
	const struct oci_seccomp seccomp = {
		.is_given = true, .default_action = POLICY_ALLOW, .rules = &rule, .nrules = 1
	};
	(void)state;
	assert_int_equal(try_call(&seccomp, 1, 2), 77);
	assert_int_equal(try_call(&seccomp, 1, 3), 0);
	assert_int_equal(try_call(&seccomp, 3, 2), 0);
}

/* More than a rule of libseccomp can hold. */
static void conditions_of_a_rule_with_two_on_one_argument_are_alternatives(void **state)
{
	static const struct policy_arg args[] = {
		{ 0, POLICY_EQ, 1, 0 }, { 0, POLICY_EQ, 2, 0 }, { 1, POLICY_EQ, 5, 0 },
		{ 0, POLICY_EQ, 3, 0 }, { 0, POLICY_EQ, 4, 0 }, { 0, POLICY_GT, 9, 0 },
		{ 0, POLICY_EQ, 2, 0 }, { 0, POLICY_EQ, 7, 0 },
	};
	const struct oci_seccomp_rule rule = { .names = TEXTS(getpid_name),
					       .action = POLICY_ERRNO,
					       .errno_ret = { true, 77 },
					       ARGS(args) };
	const struct oci_seccomp seccomp = {
		.is_given = true, .default_action = POLICY_ALLOW, .rules = &rule, .nrules = 1
	};
	(void)state;
	for (uint64_t one = 0; one < 12; one++) {
		bool matches = (one >= 1 && one <= 4) || one == 7 || one > 9;
		assert_int_equal(try_call(&seccomp, one, 0), matches ? 77 : 0);
	}
	assert_int_equal(try_call(&seccomp, 5, 5), 77);
}

static void rules_for_one_call_are_alternatives(void **state)
{
	static const struct policy_arg one[] = { { 0, POLICY_EQ, 1, 0 } };
	static const struct policy_arg two[] = { { 0, POLICY_EQ, 2, 0 } };
	const struct oci_seccomp_rule rules[] = {
		{ .names = TEXTS(getpid_name),
		  .action = POLICY_ERRNO,
		  .errno_ret = { true, 71 },
		  ARGS(one) },
		{ .names = TEXTS(getpid_name),
		  .action = POLICY_ERRNO,
		  .errno_ret = { true, 72 },
		  ARGS(two) },
		{ .names = TEXTS(getpid_name),
		  .action = POLICY_ERRNO,
		  .errno_ret = { true, 72 },
		  ARGS(two) }, /* again */
	};
	const struct oci_seccomp seccomp = { .is_given = true,
					     .default_action = POLICY_ALLOW,
					     RULES(rules) };
	(void)state;
	assert_int_equal(try_call(&seccomp, 1, 0), 71);
	assert_int_equal(try_call(&seccomp, 2, 0), 72);
	assert_int_equal(try_call(&seccomp, 3, 0), 0);
}

static void an_unknown_name_is_skipped(void **state)
{
	const struct oci_seccomp_rule rule = { .names = TEXTS(both_names),
					       .action = POLICY_ERRNO,
					       .errno_ret = { true, 77 } };
	const struct oci_seccomp seccomp = {
		.is_given = true, .default_action = POLICY_ALLOW, .rules = &rule, .nrules = 1
	};
	(void)state;
	assert_int_equal(try_call(&seccomp, 0, 0), 77);
}

static void a_rule_that_repeats_the_default_changes_nothing(void **state)
{
	static const struct policy_arg one[] = { { 0, POLICY_EQ, 1, 0 } };
	const struct oci_seccomp_rule rules[] = {
		{ .names = TEXTS(getpid_name), .action = POLICY_ALLOW },
		{ .names = TEXTS(getpid_name),
		  .action = POLICY_ERRNO,
		  .errno_ret = { true, 71 },
		  ARGS(one) },
	};
	const struct oci_seccomp seccomp = { .is_given = true,
					     .default_action = POLICY_ALLOW,
					     RULES(rules) };
	(void)state;
	assert_int_equal(try_call(&seccomp, 1, 0), 71);
	assert_int_equal(try_call(&seccomp, 2, 0), 0);
}

static void architectures_are_added(void **state)
{
	static const uint32_t archs[] = { SCMP_ARCH_X86_64, SCMP_ARCH_X86, SCMP_ARCH_X32,
					  SCMP_ARCH_X86 };
	const struct oci_seccomp_rule rule = { .names = TEXTS(getpid_name),
					       .action = POLICY_ERRNO,
					       .errno_ret = { true, 77 } };
	const struct oci_seccomp seccomp = { .is_given = true,
					     .default_action = POLICY_ALLOW,
					     .architectures = archs,
					     .narchitectures = 4,
					     .rules = &rule,
					     .nrules = 1 };
	(void)state;
	assert_int_equal(try_call(&seccomp, 0, 0), 77);
}

static void a_rule_that_libseccomp_would_ignore_is_refused(void **state)
{
	static const struct policy_arg one[] = { { 0, POLICY_EQ, 1, 0 } };
	struct oci_seccomp_rule rules[] = {
		{ .names = TEXTS(getpid_name), .action = POLICY_KILL_PROCESS, ARGS(one) },
		{ .names = TEXTS(both_names), .action = POLICY_ALLOW },
	};
	const struct oci_seccomp seccomp = { .is_given = true,
					     .default_action = POLICY_ERRNO,
					     RULES(rules) };
	(void)state;
	refuses(&seccomp, "'getpid' has a rule without args");
}

static void of_two_rules_without_conditions_the_stricter_counts(void **state)
{
	static const char *exit_name[] = { "exit_group", NULL };
	const struct oci_seccomp_rule allowed = { .names = TEXTS(getpid_name),
						  .action = POLICY_ALLOW };
	const struct oci_seccomp_rule refused = { .names = TEXTS(both_names),
						  .action = POLICY_ERRNO,
						  .errno_ret = { true, 77 } };
	struct oci_seccomp_rule rules[] = { allowed,
					    refused,
					    { .names = TEXTS(exit_name), .action = POLICY_ALLOW } };
	struct oci_seccomp seccomp = { .is_given = true,
				       .default_action = POLICY_LOG,
				       RULES(rules) };
	(void)state;
	assert_int_equal(try_call(&seccomp, 0, 0), 77);
	seccomp.default_action = POLICY_ERRNO; /* as the refusing rule has it */
	seccomp.default_errno_ret = (struct oci_u64){ true, 77 };
	assert_int_equal(try_call(&seccomp, 0, 0), 77);

	rules[0] = refused;
	rules[1] = allowed;
	assert_int_equal(try_call(&seccomp, 0, 0), 77);
	seccomp.default_action = POLICY_LOG;
	seccomp.default_errno_ret.is_set = false;
	assert_int_equal(try_call(&seccomp, 0, 0), 77);
}

static void an_errno_for_an_action_without_one_is_refused(void **state)
{
	const struct oci_seccomp_rule rule = { .names = TEXTS(getpid_name),
					       .action = POLICY_ALLOW,
					       .errno_ret = { true, 1 } };
	struct oci_seccomp seccomp = { .default_action = POLICY_ERRNO,
				       .rules = &rule,
				       .nrules = 1 };
	(void)state;
	refuses(&seccomp, "errnoRet is for SCMP_ACT_ERRNO");
	seccomp = (struct oci_seccomp){ .default_action = POLICY_ALLOW,
					.default_errno_ret = { true, 38 } };
	refuses(&seccomp, "defaultErrnoRet is for SCMP_ACT_ERRNO");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_action_does_what_it_says),
		cmocka_unit_test(the_default_has_its_errno),
		cmocka_unit_test(each_operator_decides),
		cmocka_unit_test(all_conditions_of_a_rule_must_be_true),
		cmocka_unit_test(conditions_of_a_rule_with_two_on_one_argument_are_alternatives),
		cmocka_unit_test(rules_for_one_call_are_alternatives),
		cmocka_unit_test(an_unknown_name_is_skipped),
		cmocka_unit_test(a_rule_that_repeats_the_default_changes_nothing),
		cmocka_unit_test(architectures_are_added),
		cmocka_unit_test(a_rule_that_libseccomp_would_ignore_is_refused),
		cmocka_unit_test(of_two_rules_without_conditions_the_stricter_counts),
		cmocka_unit_test(an_errno_for_an_action_without_one_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
