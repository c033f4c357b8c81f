/* SPDX-License-Identifier: Apache-2.0 */
/* The cause of a refusal, from the facts of a host. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/kernel/ids/refusal.h"

static void each_host_has_the_cause_that_refuses_there(void **state)
{
	(void)state;
	static const struct {
		struct refusal_facts facts;
		enum refusal why;
	} rows[] = {
		/* the default list of Docker: clone3(2) */
		{ { .code = ENOSYS, .is_filtered = true }, REFUSAL_FILTER },
		{ { .code = ENOSYS, .is_filtered = true, .is_chroot = true }, REFUSAL_FILTER },
		{ { .code = EPERM, .is_filtered = true, .is_root = true }, REFUSAL_FILTER },
		/* Linux 5.10 */
		{ { .code = ENOSYS }, REFUSAL_KERNEL },
		{ { .code = ENOSYS, .is_root = true, .is_nested = true }, REFUSAL_KERNEL },
		{ { .code = ENOSPC, .is_off = true }, REFUSAL_OFF },
		{ { .code = ENOSPC, .is_off = true, .is_root = true }, REFUSAL_OFF },
		/* bwrap --disable-userns: the sysctl of this namespace has room */
		{ { .code = ENOSPC, .is_nested = true }, REFUSAL_SANDBOX },
		{ { .code = ENOSPC }, REFUSAL_TOO_MANY },
		{ { .code = EUSERS }, REFUSAL_TOO_MANY },
		{ { .code = EPERM, .is_off_for_users = true }, REFUSAL_FOR_USERS },
		{ { .code = EACCES, .has_apparmor_restriction = true }, REFUSAL_APPARMOR },
		/* neither of them concerns root */
		{ { .code = EPERM, .is_off_for_users = true, .is_root = true }, REFUSAL_UNKNOWN },
		{ { .code = EPERM, .has_apparmor_restriction = true, .is_root = true },
		  REFUSAL_UNKNOWN },
		{ { .code = EPERM, .is_chroot = true, .is_root = true }, REFUSAL_CHROOT },
		{ { .code = EPERM, .is_chroot = true, .is_filtered = true }, REFUSAL_CHROOT },
		{ { .code = EPERM, .lacks_ids = true, .is_root = true, .is_filtered = true },
		  REFUSAL_IDS },
		{ { .code = EPERM, .lacks_ids = true }, REFUSAL_UNKNOWN },
		{ { .code = EPERM }, REFUSAL_UNKNOWN },
		{ { .code = EAGAIN, .is_filtered = true, .is_chroot = true }, REFUSAL_UNKNOWN },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(refusal_classify(&rows[i].facts), rows[i].why);
}

static void a_hint_names_the_cause_and_never_replaces_an_earlier_one(void **state)
{
	(void)state;
	struct cj_error err = { .code = EAGAIN };
	assert_int_equal(refusal_hint(&err), -EAGAIN);
	assert_non_null(strstr(err.hint, "cejail doctor"));
	err = (struct cj_error){ .code = EPERM, .hint = "first" };
	assert_int_equal(refusal_hint(&err), -EPERM);
	assert_string_equal(err.hint, "first");
}

static void a_missing_call_names_this_kernel_and_the_minimum(void **state)
{
	(void)state;
	struct cj_error err = { .code = ENOSYS };
	assert_int_equal(refusal_hint(&err), -ENOSYS);
	if (refusal_is_filtered())
		skip(); /* then the filter is the cause */
	assert_memory_equal(err.hint, "Linux ", 6);
	assert_non_null(strstr(err.hint, "cejail needs Linux " KERNEL_MINIMUM " or later"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_host_has_the_cause_that_refuses_there),
		cmocka_unit_test(a_hint_names_the_cause_and_never_replaces_an_earlier_one),
		cmocka_unit_test(a_missing_call_names_this_kernel_and_the_minimum),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
