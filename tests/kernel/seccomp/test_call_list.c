/* SPDX-License-Identifier: Apache-2.0 */
/* A list of calls, in force in a child. */
#include "runtime/kernel/seccomp/call_list.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "tests/forked.h"

#define X32_BIT 0x40000000l

static const unsigned allowed[] = { SYS_exit_group, SYS_getpid };

/* clang-format off */
static const struct call_rule rules[] = {
	{ SYS_umask, { { CALL_LOW(0), 0x30, 0x10, false }, { CALL_HIGH(1), UINT32_MAX, 7, false } } },
	{ SYS_umask, { { CALL_LOW(0), UINT32_MAX, 5, false } } },
	{ SYS_close, { { CALL_LOW(0), UINT32_MAX, 5, true } } },
};
/* clang-format on */

static const struct call_list list = { allowed, sizeof(allowed) / sizeof(allowed[0]), rules,
				       sizeof(rules) / sizeof(rules[0]) };

static bool is_allowed(long number, uint64_t one, uint64_t two)
{
	errno = 0;
	(void)syscall(number, one, two);
	return errno != EPERM;
}

/* Makes a call in a child with the list: 0 if it is allowed, 1 if not, else the signal. */
static int try_call(long number, uint64_t one, uint64_t two)
{
	int status = 0;
	pid_t pid = test_fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct cj_error err = { 0 };
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		    call_list_load(&list, "the test", &err) < 0)
			_exit(2);
		syscall(SYS_exit_group, is_allowed(number, one, two) ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

static void a_call_is_allowed_by_its_number_or_by_all_checks_of_a_rule(void **state)
{
	const uint64_t high = UINT64_C(1) << 32;
	(void)state;
	assert_int_equal(try_call(SYS_getpid, 0, 0), 0);
	assert_int_equal(try_call(SYS_getppid, 0, 0), 1);
	assert_int_equal(try_call(SYS_umask, 0x1f, 7 * high), 0);
	assert_int_equal(try_call(SYS_umask, 0x2f, 7 * high), 1);
	assert_int_equal(try_call(SYS_umask, 0x1f, 7), 1);
	assert_int_equal(try_call(SYS_umask, high | 5, 0), 0); /* the kernel reads the low half */
	assert_int_equal(try_call(SYS_close, 6, 0), 0);
	assert_int_equal(try_call(SYS_close, UINT32_MAX, 0), 0);
	assert_int_equal(try_call(SYS_close, 5, 0), 1);
	assert_int_equal(try_call(SYS_close, high | 5, 0), 1);
}

static void what_no_rule_can_check_is_refused(void **state)
{
	(void)state;
	assert_int_equal(try_call(5000, 0, 0), 1);
#ifdef __x86_64__
	assert_int_equal(try_call(SYS_getpid | X32_BIT, 0, 0), SIGSYS);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_is_allowed_by_its_number_or_by_all_checks_of_a_rule),
		cmocka_unit_test(what_no_rule_can_check_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
