/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: arena_alloc arena_array arena_strdup arena_strndup arena_printf strings_add calloc */
/* WRAP: sys_seccomp */
/* Compiling and watching a filter when there is no memory: whole or not at all. */
#include "tests/no_memory.h"

#include <fcntl.h>

#include "runtime/kernel/seccomp/policy.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/kernel/seccomp/filter.h"

NO_MEMORY(void *, calloc, (size_t count, size_t size), (count, size), NULL)

static int seccomp_code; /* what asking for sizes fails with; 0: it doesn't */

int __real_sys_seccomp(unsigned operation, unsigned flags, void *args);
int __wrap_sys_seccomp(unsigned operation, unsigned flags, void *args);
int __wrap_sys_seccomp(unsigned operation, unsigned flags, void *args)
{
	errno = seccomp_code;
	return seccomp_code != 0 ? -1 : __real_sys_seccomp(operation, flags, args);
}

/* Conditions, notified calls, a name that no kernel has. */
static const char policy_text[] =
    "{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": ["
    "{\"names\": [\"read\", \"no_such_call\"], \"action\": \"SCMP_ACT_ALLOW\"},"
    "{\"names\": [\"mount\"], \"action\": \"SCMP_ACT_ERRNO\"},"
    "{\"names\": [\"personality\"], \"action\": \"SCMP_ACT_ERRNO\", \"args\": "
    "[{\"index\": 0, \"value\": 8, \"op\": \"SCMP_CMP_NE\"}]},"
    "{\"names\": [\"ptrace\"], \"action\": \"SCMP_ACT_NOTIFY\"}]}";

static int compile(void *context, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	struct filter f = { 0 };
	return filter_compile(context, &a, &f, err);
}

static void a_filter_is_compiled_whole_or_not_at_all(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	const struct policy *policy = NULL;
	struct cj_error err = { 0 };
	if (policy_parse("p", policy_text, sizeof(policy_text) - 1, &a, &policy, &err) < 0)
		fail_msg("%s", err.msg);
	fail_each_allocation(compile, (void *)(uintptr_t)policy);
}

/* The listener is taken in any case. */
static int watch(void *context, struct cj_error *err)
{
	const struct filter *f = context;
	int listener_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct filter_watch *w = NULL;
	int rc = filter_watch_create(listener_fd, f, &w, err);
	filter_watch_destroy(&w);
	assert_int_equal(fcntl(listener_fd, F_GETFD), -1);
	return rc;
}

static void a_listener_is_watched_or_closed(void **state)
{
	(void)state;
	struct filter f = { 0 };
	filter_builtin(&f);
	fail_each_allocation(watch, &f);
}

static void a_kernel_without_notification_sizes_is_an_error(void **state)
{
	(void)state;
	struct filter f = { 0 };
	struct cj_error err = { 0 };
	seccomp_code = EINVAL;
	int rc = watch(&f, &err);
	seccomp_code = 0;
	assert_int_equal(rc, -EINVAL);
	assert_non_null(strstr(err.msg, "seccomp(2)"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_filter_is_compiled_whole_or_not_at_all),
		cmocka_unit_test(a_listener_is_watched_or_closed),
		cmocka_unit_test(a_kernel_without_notification_sizes_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
