/* SPDX-License-Identifier: Apache-2.0 */
/* Resource limits: set in a child each time, because they cannot be taken back. */
#include "runtime/jail/init/init.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "profiles/plan/plan.h"
#include "tests/forked.h"
#include "tests/sanitizer.h"

/* WRAP: prlimit setrlimit system_file_read */

static int fails_at = -1; /* the call that sets a limit and fails, from 0 */
static const char *core_pattern;
static rlim_t data_of_caller;

int __real_setrlimit(__rlimit_resource_t resource, const struct rlimit *limit);
int __wrap_setrlimit(__rlimit_resource_t resource, const struct rlimit *limit);
int __wrap_setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
	if (fails_at-- == 0) {
		errno = EPERM;
		return -1;
	}
	return __real_setrlimit(resource, limit);
}

int __real_prlimit(pid_t pid, __rlimit_resource_t resource, const struct rlimit *limit,
		   struct rlimit *before);
int __wrap_prlimit(pid_t pid, __rlimit_resource_t resource, const struct rlimit *limit,
		   struct rlimit *before);
int __wrap_prlimit(pid_t pid, __rlimit_resource_t resource, const struct rlimit *limit,
		   struct rlimit *before)
{
	if (fails_at-- == 0) {
		errno = EPERM;
		return -1;
	}
	return __real_prlimit(pid, resource, limit, before);
}

ssize_t __wrap_system_file_read(int dir_fd, const char *name, char *buf, size_t size);
ssize_t __wrap_system_file_read(int dir_fd, const char *name, char *buf, size_t size)
{
	(void)dir_fd;
	if (!core_pattern || strcmp(name, "/proc/sys/kernel/core_pattern") != 0)
		return -ENOENT;
	return snprintf(buf, size, "%s\n", core_pattern);
}

static const struct limits_spec usual = {
	.memory_bytes = 512u << 20,
	.pids = 64,
	.nofile = 200,
	.disk_bytes = 64u << 20,
	.cpu_ms = 2500,
};

static int in_child(int (*body)(void))
{
	pid_t pid = test_fork();
	if (pid == 0)
		_exit(body());
	int status = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool is(__rlimit_resource_t resource, rlim_t value)
{
	struct rlimit limit;
	return getrlimit(resource, &limit) == 0 && limit.rlim_cur == value &&
	       limit.rlim_max == value;
}

static int apply_usual(void)
{
	struct cj_error err;
	struct rlimit stack_before, stack;
	if (getrlimit(RLIMIT_STACK, &stack_before) < 0 || limits_apply(&usual, true, &err) < 0 ||
	    getrlimit(RLIMIT_STACK, &stack) < 0)
		return 1;
	if (!is(RLIMIT_NOFILE, 200) || !is(RLIMIT_FSIZE, (64u << 20) + 4096))
		return 2;
	if (!is(RLIMIT_CPU, 4)) /* 2.5 s, rounded up, and one */
		return 3;
	if (!is(RLIMIT_NPROC, 65))
		return 4;
	if (!is(RLIMIT_CORE, 1) || !is(RLIMIT_NICE, 0) || !is(RLIMIT_RTPRIO, 0))
		return 5;
	return stack.rlim_cur == stack_before.rlim_cur ? 0 : 6;
}

static void every_limit_is_set_soft_and_hard(void **state)
{
	(void)state;
	assert_int_equal(in_child(apply_usual), 0);
}

static int apply_with_cgroup(void)
{
	struct cj_error err;
	struct rlimit data, nproc, cpu, after;
	struct limits_spec spec = usual;
	spec.cpu_ms = 0;
	if (getrlimit(RLIMIT_DATA, &data) < 0 || getrlimit(RLIMIT_NPROC, &nproc) < 0 ||
	    getrlimit(RLIMIT_CPU, &cpu) < 0 || limits_apply(&spec, false, &err) < 0)
		return 1;
	if (getrlimit(RLIMIT_DATA, &after) < 0 || after.rlim_cur != data.rlim_cur)
		return 2;
	if (getrlimit(RLIMIT_NPROC, &after) < 0 || after.rlim_cur != nproc.rlim_cur)
		return 3;
	return getrlimit(RLIMIT_CPU, &after) == 0 && after.rlim_cur == cpu.rlim_cur ? 0 : 4;
}

static void a_limit_that_the_cgroup_enforces_is_not_set_as_rlimit(void **state)
{
	(void)state;
	assert_int_equal(in_child(apply_with_cgroup), 0);
}

static int apply_below_hard(void)
{
	struct cj_error err;
	const struct rlimit low = { 1024, 1024 };
	if (setrlimit(RLIMIT_MEMLOCK, &low) < 0 || setrlimit(RLIMIT_SIGPENDING, &low) < 0 ||
	    setrlimit(RLIMIT_FSIZE, &low) < 0)
		return 1;
	if (limits_apply(&usual, true, &err) < 0)
		return 2;
	return is(RLIMIT_MEMLOCK, 1024) && is(RLIMIT_SIGPENDING, 1024) && is(RLIMIT_FSIZE, 1024)
		   ? 0
		   : 3;
}

static void a_stricter_hard_limit_of_the_caller_stays(void **state)
{
	(void)state;
	assert_int_equal(in_child(apply_below_hard), 0);
}

static int apply_nofile_above_hard(void)
{
	struct cj_error err = { 0 };
	const struct rlimit low = { 100, 100 };
	if (setrlimit(RLIMIT_NOFILE, &low) < 0)
		return 1;
	if (limits_apply(&usual, true, &err) != -EINVAL)
		return 2;
	return strstr(err.msg, "200") && strstr(err.msg, "100") && strstr(err.hint, "--nofile") ? 0
												: 3;
}

static void more_files_than_the_hard_limit_is_an_error_with_a_remedy(void **state)
{
	(void)state;
	assert_int_equal(in_child(apply_nofile_above_hard), 0);
}

static int apply_without_core(void)
{
	struct cj_error err = { 0 };
	const struct rlimit none = { 0, 0 };
	if (setrlimit(RLIMIT_CORE, &none) < 0)
		return 1;
	int rc = limits_apply(&usual, true, &err);
	if (rc == 0)
		return is(RLIMIT_CORE, 0) ? 0 : 2;
	return strstr(err.msg, "core_pattern") && strstr(err.hint, "ulimit -Hc 1") ? 100 : 3;
}

static void a_core_limit_of_0_is_refused_only_where_a_handler_would_run(void **state)
{
	(void)state;
	core_pattern = "core.%p";
	assert_int_equal(in_child(apply_without_core), 0);
	core_pattern = "|/usr/lib/systemd/systemd-coredump %P";
	assert_int_equal(in_child(apply_without_core), 100);
	core_pattern = NULL; /* not to be read: expect the worse */
	assert_int_equal(in_child(apply_without_core), 100);
}

static int apply_tiny_cpu(void)
{
	struct cj_error err;
	struct limits_spec spec = usual;
	spec.cpu_ms = 1;
	if (limits_apply(&spec, true, &err) < 0)
		return 1;
	return is(RLIMIT_CPU, 2) ? 0 : 2;
}

static void the_rlimit_of_cpu_time_is_above_the_supervisors_limit(void **state)
{
	(void)state;
	assert_int_equal(in_child(apply_tiny_cpu), 0);
}

/* As AddressSanitizer does at its start. */
static int apply_and_reserve(void)
{
	struct cj_error err;
	struct rlimit data;
	struct limits_spec spec = usual;
	spec.memory_bytes = 64u << 20;
	if (limits_apply(&spec, true, &err) < 0 || getrlimit(RLIMIT_DATA, &data) < 0)
		return 1;
	if (data.rlim_cur != RLIM_INFINITY)
		return data.rlim_cur == data_of_caller ? 77 : 2;
	void *memory = mmap(NULL, 14ul << 40, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return memory == MAP_FAILED ? 3 : 0;
}

__attribute__((unused)) static void
address_space_can_be_reserved_beyond_the_memory_limit(void **state)
{
	(void)state;
	struct rlimit data;
	assert_int_equal(getrlimit(RLIMIT_DATA, &data), 0);
	data_of_caller = data.rlim_cur;
	int rc = in_child(apply_and_reserve);
	if (rc == 77) {
		print_message("this place limits the address space itself\n");
		skip();
	}
	assert_int_equal(rc, 0);
}

static int fail_to_lower(void)
{
	struct cj_error err = { 0 };
	const struct rlimit low = { 512, 1024 };
	if (setrlimit(RLIMIT_FSIZE, &low) < 0)
		return 1;
	fails_at = 2; /* the third call takes the second back, if that was root's */
	return limits_apply(&usual, true, &err) == -EPERM && strstr(err.msg, "file size") ? 0 : 2;
}

static void a_stricter_limit_that_cannot_be_restored_is_named(void **state)
{
	(void)state;
	assert_int_equal(in_child(fail_to_lower), 0);
}

static void a_limit_that_cannot_be_set_is_named(void **state)
{
	(void)state;
	static const char *const names[] = { "open files", "file size", "CPU time" };
	for (int row = 0; row < 3; row++) {
		struct cj_error err = { 0 };
		fails_at = row;
		/* Rows before the failing one were applied: in a child, then. */
		pid_t pid = test_fork();
		if (pid == 0)
			_exit(limits_apply(&usual, true, &err) == -EPERM &&
				      strstr(err.msg, names[row])
				  ? 0
				  : 1);
		int status = 0;
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	fails_at = -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_limit_is_set_soft_and_hard),
		cmocka_unit_test(a_limit_that_the_cgroup_enforces_is_not_set_as_rlimit),
		cmocka_unit_test(a_stricter_hard_limit_of_the_caller_stays),
		cmocka_unit_test(more_files_than_the_hard_limit_is_an_error_with_a_remedy),
		cmocka_unit_test(a_core_limit_of_0_is_refused_only_where_a_handler_would_run),
		cmocka_unit_test(the_rlimit_of_cpu_time_is_above_the_supervisors_limit),
#if !HAS_SANITIZER /* it reserves address space itself */
		cmocka_unit_test(address_space_can_be_reserved_beyond_the_memory_limit),
#endif
		cmocka_unit_test(a_stricter_limit_that_cannot_be_restored_is_named),
		cmocka_unit_test(a_limit_that_cannot_be_set_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
