/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: prctl capget capset */
/* WRAP: sys_keyctl_join_session_keyring self_status_masks */
/*
 * Giving up privileges: each call fails once, and each may lie that it went well; neither goes
 * unnoticed, and at the end nothing is left.
 */
#include "runtime/kernel/process/privileges.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cmocka.h>
#include <sched.h>
#include <sys/capability.h>
#include <sys/prctl.h>

#include "runtime/base/self_status.h"
#include "tests/failing.h"
#include "tests/forked.h"

/* Shared with the child that tries. */
static struct tried {
	int calls, rc;
	struct cj_error err;
} * tried;

static const char *lies; /* the call that does nothing and says it did */

static bool is_lying(const char *name)
{
	return is_armed && lies && strcmp(lies, name) == 0;
}

#define WRAP(type, name, parameters, arguments, failure, success)                                  \
	type __real_##name parameters;                                                             \
	type __wrap_##name parameters;                                                             \
	type __wrap_##name parameters                                                              \
	{                                                                                          \
		if (is_next(EPERM))                                                                \
			return failure;                                                            \
		return is_lying(#name) ? success : __real_##name arguments;                        \
	}

WRAP(int, capset, (cap_user_header_t header, const cap_user_data_t data), (header, data), -1, 0)
WRAP(int, capget, (cap_user_header_t header, cap_user_data_t data), (header, data), -1,
     __real_capget(header, data))

int __real_prctl(int option, ...);
int __wrap_prctl(int option, ...);
int __wrap_prctl(int option, ...)
{
	va_list ap;
	va_start(ap, option);
	unsigned long value = va_arg(ap, unsigned long);
	va_end(ap);
	if (is_next(EPERM))
		return -1;
	bool lies_now = option == PR_CAPBSET_DROP     ? is_lying("PR_CAPBSET_DROP")
			: option == PR_SET_SECUREBITS ? is_lying("PR_SET_SECUREBITS")
						      : false;
	return lies_now ? 0 : __real_prctl(option, value, 0UL, 0UL, 0UL);
}

static bool has_no_proc;
static const char *left; /* the set in which the status still shows a capability */

bool __real_self_status_masks(int proc_fd, struct self_mask *masks, size_t count);
bool __wrap_self_status_masks(int proc_fd, struct self_mask *masks, size_t count);
bool __wrap_self_status_masks(int proc_fd, struct self_mask *masks, size_t count)
{
	if (has_no_proc || !__real_self_status_masks(proc_fd, masks, count))
		return false;
	for (size_t i = 0; i < count && left; i++)
		masks[i].value |= strcmp(masks[i].name, left) == 0;
	return true;
}

static int keyring_code; /* the errno of a session keyring; 0: there is one */

long __wrap_sys_keyctl_join_session_keyring(void);
long __wrap_sys_keyctl_join_session_keyring(void)
{
	errno = keyring_code;
	return keyring_code ? -1 : 4711;
}

/* Root of a user namespace of its own: it has all capabilities to lose. */
static void try_in_child(int (*give_up)(struct cj_error *err))
{
	tried->calls = 0;
	tried->rc = 1; /* not tried */
	tried->err = (struct cj_error){ 0 };
	pid_t pid = test_fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (unshare(CLONE_NEWUSER) < 0)
			_exit(1);
		is_armed = true;
		tried->rc = give_up(&tried->err);
		is_armed = false;
		_exit(0);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (tried->rc == 1) {
		print_message("skipped: this host allows no user namespaces\n");
		skip();
	}
}

static void every_call_that_fails_is_noticed(int (*give_up)(struct cj_error *err), int at_least)
{
	fail_at = 0;
	try_in_child(give_up);
	if (tried->rc != 0)
		fail_msg("%s", tried->err.msg);
	int needed = tried->calls;
	assert_true(needed >= at_least);
	for (fail_at = 1; fail_at <= needed; fail_at++) {
		try_in_child(give_up);
		if (tried->rc != -EPERM)
			print_error("call %d of %d went unnoticed\n", fail_at, needed);
		assert_int_equal(tried->rc, -EPERM);
		assert_string_not_equal(tried->err.msg, "");
	}
	fail_at = 0;
}

static int drop(struct cj_error *err)
{
	return privileges_drop(-1, err);
}

static void each_failure_to_give_up_a_privilege_is_an_error(void **state)
{
	(void)state;
	every_call_that_fails_is_noticed(drop, 40);
	has_no_proc = true; /* then the bounding set is asked for bit by bit */
	every_call_that_fails_is_noticed(drop, 80);
	has_no_proc = false;
}

static void new_privileges_are_refused_or_it_fails(void **state)
{
	(void)state;
	every_call_that_fails_is_noticed(privileges_no_new, 1);
}

static void a_privilege_that_is_still_there_after_a_successful_call_is_an_error(void **state)
{
	(void)state;
	static const struct {
		const char *call, *message;
	} rows[] = {
		{ "PR_CAPBSET_DROP", "verify the bounding set of capabilities" },
		{ "PR_SET_SECUREBITS", "verify the securebits" },
		{ "capset", "verify the capabilities" },
	};
	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		const size_t row = i / 2;
		lies = rows[row].call;
		has_no_proc = i % 2 == 1;
		try_in_child(drop);
		has_no_proc = false;
		lies = NULL;
		assert_int_equal(tried->rc, -EPERM);
		assert_non_null(strstr(tried->err.msg, rows[row].message));
	}
}

static void a_capability_in_any_set_of_the_status_is_an_error(void **state)
{
	(void)state;
	static const char *const sets[] = { "CapEff", "CapPrm", "CapInh", "CapAmb", "CapBnd" };
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		left = sets[i];
		try_in_child(drop);
		left = NULL;
		assert_int_equal(tried->rc, -EPERM);
		assert_non_null(strstr(tried->err.msg, "verify the "));
	}
}

/* The user namespace is made, and has no ids: what is asked for next is refused by the kernel. */
static int become_somebody(struct cj_error *err)
{
	return privileges_become(4711, 4711, false, err);
}

static void an_id_that_is_not_mapped_is_named(void **state)
{
	(void)state;
	try_in_child(become_somebody);
	assert_int_equal(tried->rc, -EINVAL);
	assert_string_equal(tried->err.msg, "become group 4711: Invalid argument");
}

static void a_full_quota_of_keys_is_an_error_with_a_remedy(void **state)
{
	(void)state;
	struct cj_error err = { 0 };
	keyring_code = EDQUOT;
	assert_int_equal(privileges_join_keyring(&err), -EDQUOT);
	assert_non_null(strstr(err.hint, "kernel.keys.maxkeys"));
	keyring_code = ENOSYS; /* a kernel without keyrings */
	assert_int_equal(privileges_join_keyring(&err), 0);
	err = (struct cj_error){ 0 };
	keyring_code = EACCES;
	assert_int_equal(privileges_join_keyring(&err), -EACCES);
	assert_string_equal(err.hint, "");
	keyring_code = 0;
	assert_int_equal(privileges_join_keyring(&err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_failure_to_give_up_a_privilege_is_an_error),
		cmocka_unit_test(new_privileges_are_refused_or_it_fails),
		cmocka_unit_test(
		    a_privilege_that_is_still_there_after_a_successful_call_is_an_error),
		cmocka_unit_test(a_capability_in_any_set_of_the_status_is_an_error),
		cmocka_unit_test(an_id_that_is_not_mapped_is_named),
		cmocka_unit_test(a_full_quota_of_keys_is_an_error_with_a_remedy),
	};
	tried =
	    mmap(NULL, sizeof(*tried), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (tried == MAP_FAILED)
		return 1;
	calls = &tried->calls;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
