/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: prctl capset */
/*
 * Capability sets: resolved from names, and given to a child in a user namespace of its own, where
 * it has them all.
 */
#include "runtime/container/process/process_parts.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "tests/failing.h"
#include "tests/forked.h"

FAILS(int, capset, (cap_user_header_t header, const cap_user_data_t data), (header, data), -1,
      EPERM)

int __real_prctl(int option, unsigned long two, unsigned long three, unsigned long four,
		 unsigned long five);
int __wrap_prctl(int option, unsigned long two, unsigned long three, unsigned long four,
		 unsigned long five);
int __wrap_prctl(int option, unsigned long two, unsigned long three, unsigned long four,
		 unsigned long five)
{
	return is_next(EPERM) ? -1 : __real_prctl(option, two, three, four, five);
}

#define BIT(cap) (UINT64_C(1) << (cap))
#define TEXTS(list)                                                                                \
	{                                                                                          \
		.items = (list), .count = sizeof(list) / sizeof((list)[0]) - 1                     \
	}

static void only_names_of_the_manual_are_known(void **state)
{
	(void)state;
	assert_true(process_caps_bit("CAP_CHOWN") == BIT(CAP_CHOWN));
	assert_true(process_caps_bit("CAP_CHECKPOINT_RESTORE") == BIT(40));
	static const char *const wrong[] = {
		"",   "CAP_",  "cap_chown", "CHOWN",       "CAP_CHOWN ",         "CAP_chown",
		"0",  "CAP_0", "40",        "CAP_NOTHING", "CAP_CHOWN,CAP_KILL", "CAP_CHOWN=ep",
		"all"
	};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_true(process_caps_bit(wrong[i]) == 0);
}

static void what_is_not_asked_for_is_empty(void **state)
{
	struct arena arena = { 0 };
	struct strings warnings = { 0 };
	struct capabilities caps = { 1, 1, 1, 1, 1 };
	const struct oci_capabilities none = { 0 };
	(void)state;
	assert_int_equal(process_caps_resolve(&none, UINT64_MAX, &arena, &caps, &warnings), 0);
	assert_true(!caps.bounding && !caps.effective && !caps.inheritable && !caps.permitted &&
		    !caps.ambient);
	assert_int_equal(warnings.count, 0);
	arena_fini(&arena);
}

static void inheritable_and_ambient_stay_empty_beside_the_others(void **state)
{
	static const char *names[] = { "CAP_CHOWN", "CAP_KILL", NULL };
	const struct oci_capabilities wanted = { .bounding = TEXTS(names),
						 .effective = TEXTS(names),
						 .permitted = TEXTS(names) };
	struct arena arena = { 0 };
	struct strings warnings = { 0 };
	struct capabilities caps;
	(void)state;
	assert_int_equal(process_caps_resolve(&wanted, UINT64_MAX, &arena, &caps, &warnings), 0);
	assert_true(caps.permitted == (BIT(CAP_CHOWN) | BIT(CAP_KILL)));
	assert_true(caps.effective == caps.permitted && caps.bounding == caps.permitted);
	assert_true(caps.inheritable == 0 && caps.ambient == 0);
	arena_fini(&arena);
}

static void what_can_not_be_granted_is_left_out_with_a_warning(void **state)
{
	static const char *names[] = { "CAP_CHOWN", "CAP_MADE_UP", "CAP_KILL", NULL };
	static const char *kill[] = { "CAP_KILL", NULL };
	const struct oci_capabilities wanted = { .bounding = TEXTS(names),
						 .permitted = TEXTS(kill),
						 .effective = TEXTS(names),
						 .ambient = TEXTS(kill) };
	struct arena arena = { 0 };
	struct strings warnings = { 0 };
	struct capabilities caps;
	(void)state;
	assert_int_equal(process_caps_resolve(&wanted, BIT(CAP_KILL), &arena, &caps, &warnings), 0);
	assert_true(caps.bounding == BIT(CAP_KILL) && caps.effective == BIT(CAP_KILL));
	assert_true(caps.ambient == 0); /* it is not inheritable */
	assert_int_equal(warnings.count, 5);
	assert_non_null(strstr(warnings.items[0], "'CAP_CHOWN' is not available here"));
	assert_non_null(strstr(warnings.items[1], "'CAP_MADE_UP' is not known"));
	assert_non_null(strstr(warnings.items[4], "the ambient set goes without it"));
	arena_fini(&arena);
}

/* In a child with all capabilities.  Returns its status; 255: no user namespace here. */
static int in_child(int (*trial)(void))
{
	int status;
	pid_t pid = test_fork();
	if (pid == 0)
		_exit(unshare(CLONE_NEWUSER) < 0 ? 255 : trial());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static const struct capabilities wanted_caps = {
	.bounding = BIT(CAP_CHOWN) | BIT(CAP_KILL) | BIT(CAP_NET_RAW),
	.effective = BIT(CAP_CHOWN),
	.permitted = BIT(CAP_CHOWN) | BIT(CAP_KILL),
	.inheritable = BIT(CAP_KILL),
	.ambient = BIT(CAP_KILL),
};

static bool has(uint64_t set, int cap)
{
	return set >> cap & 1;
}

static int get_them(void)
{
	struct cj_error err = { 0 };
	if (capabilities_bound(wanted_caps.bounding, -1, &err) < 0 ||
	    capabilities_apply(&wanted_caps, BIT(CAP_SYS_ADMIN), &err) < 0)
		return 1;

	cap_t now = cap_get_proc();
	for (int cap = 0; cap <= CAP_LAST_CAP; cap++) {
		cap_flag_value_t effective, permitted, inheritable;
		(void)cap_get_flag(now, cap, CAP_EFFECTIVE, &effective);
		(void)cap_get_flag(now, cap, CAP_PERMITTED, &permitted);
		(void)cap_get_flag(now, cap, CAP_INHERITABLE, &inheritable);
		if (cap_get_bound(cap) != has(wanted_caps.bounding, cap) ||
		    cap_get_ambient(cap) != has(wanted_caps.ambient, cap) ||
		    effective != has(wanted_caps.effective, cap) ||
		    permitted != (has(wanted_caps.permitted, cap) || cap == CAP_SYS_ADMIN) ||
		    inheritable != has(wanted_caps.inheritable, cap))
			return 2 + cap;
	}
	(void)cap_free(now);
	if (capabilities_is_effective(CAP_SYS_ADMIN))
		return 100;
	if (capabilities_raise(&wanted_caps, BIT(CAP_SYS_ADMIN), &err) < 0 ||
	    !capabilities_is_effective(CAP_SYS_ADMIN) || !capabilities_is_effective(CAP_CHOWN))
		return 101;
	return 0;
}

static void the_kernel_gets_the_five_sets(void **state)
{
	(void)state;
	int status = in_child(get_them);
	if (status == 255)
		skip();
	assert_int_equal(status, 0);
}

static int fail_one(void)
{
	struct cj_error err = { 0 };
	calls_here = 0;
	is_armed = true;
	int rc = capabilities_bound(wanted_caps.bounding, -1, &err);
	if (rc == 0)
		rc = capabilities_apply(&wanted_caps, 0, &err);
	is_armed = false;
	if (rc == 0)
		return calls_here < fail_at ? 0 : 2;
	return rc == -EPERM && err.msg[0] ? 1 : 3;
}

/* Each call fails once: an error each time, and never a word of success. */
static void no_failure_goes_unnoticed(void **state)
{
	int status = 1;
	(void)state;
	for (fail_at = 1; status == 1 && fail_at < 1000; fail_at++)
		status = in_child(fail_one);
	if (status == 255)
		skip();
	assert_int_equal(status, 0);
}

static int exceed(void)
{
	struct cj_error err = { 0 };
	const struct capabilities none = { 0 };
	if (capabilities_apply(&none, 0, &err) < 0)
		return 1;
	return capabilities_apply(&wanted_caps, 0, &err) == -EPERM ? 0 : 2;
}

static void nobody_gets_more_than_it_has(void **state)
{
	(void)state;
	int status = in_child(exceed);
	if (status == 255)
		skip();
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_names_of_the_manual_are_known),
		cmocka_unit_test(what_is_not_asked_for_is_empty),
		cmocka_unit_test(inheritable_and_ambient_stay_empty_beside_the_others),
		cmocka_unit_test(what_can_not_be_granted_is_left_out_with_a_warning),
		cmocka_unit_test(the_kernel_gets_the_five_sets),
		cmocka_unit_test(no_failure_goes_unnoticed),
		cmocka_unit_test(nobody_gets_more_than_it_has),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
