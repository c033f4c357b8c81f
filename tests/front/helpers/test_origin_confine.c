/* SPDX-License-Identifier: Apache-2.0 */
/* origin_confine: what the helper of --upstream can still do, and what a lookup can. */
#include "runtime/front/helpers/upstream/origin.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "runtime/kernel/process/privileges.h"
#include "tests/forked.h"

static bool opens_socket(int family, int type)
{
	int fd = socket(family, type | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		(void)close(fd);
	return fd >= 0;
}

static bool maps_code(void)
{
	const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	return fd >= 0 && mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED;
}

static bool starts_thread(void)
{
	return syscall(SYS_clone, CLONE_THREAD | CLONE_SIGHAND | CLONE_VM, NULL, NULL, NULL, NULL) >
		   0 ||
	       errno != EPERM;
}

/* Bits: streams, datagrams, raw and Unix sockets, a thread, a file to write, code of a file. */
static int abilities(void)
{
	const bool has_code = maps_code();
	return (opens_socket(AF_INET, SOCK_STREAM) && opens_socket(AF_INET6, SOCK_STREAM)) |
	       (opens_socket(AF_INET, SOCK_DGRAM) || opens_socket(AF_INET6, SOCK_DGRAM)) << 1 |
	       (opens_socket(AF_INET, SOCK_RAW) || opens_socket(AF_UNIX, SOCK_STREAM)) << 2 |
	       starts_thread() << 3 | (open("/dev/null", O_WRONLY | O_CLOEXEC) >= 0) << 4 |
	       has_code << 5;
}

static void expect_abilities(bool is_lookup, int wanted)
{
	const struct origin_set set = { .count = 0 };
	struct cj_error err = { 0 };
	int status;
	const pid_t pid = test_fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int rc = is_lookup ? privileges_keep_only(0, &err) : 0;
		if (rc == 0)
			rc = is_lookup ? origin_confine_lookup(&err) : origin_confine(&set, &err);
		_exit(rc == 0 ? abilities() : 255);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), wanted);
}

static void the_helper_has_streams_alone(void **state)
{
	(void)state;
	expect_abilities(false, 1);
}

static void a_lookup_has_datagrams_too(void **state)
{
	(void)state;
	expect_abilities(true, 1 | 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_helper_has_streams_alone),
		cmocka_unit_test(a_lookup_has_datagrams_too),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
