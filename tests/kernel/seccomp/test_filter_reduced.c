/* SPDX-License-Identifier: Apache-2.0 */
/* The second filter of a jail without namespaces, in force in a child. */
#include "runtime/kernel/seccomp/filter.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "tests/forked.h"

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			_exit(__LINE__ % 250 + 2);                                                 \
	} while (0)

static void in_child(void (*act)(void))
{
	int status = 0;
	pid_t pid = test_fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct cj_error err = { 0 };
		CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
		CHECK(filter_load_reduced(&err) == 0);
		act();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static bool is_refused(int code, long number, long a, long b, long c, long d)
{
	errno = 0;
	return syscall(number, a, b, c, d, 0L, 0L) == -1 && errno == code;
}

static void try_refused(void)
{
	const long here = AT_FDCWD, path = (long)"/proc/self", parent = getppid();
	for (long family = 0; family < 46; family++)
		for (long type = 0; type < 16; type++)
			CHECK(is_refused(EACCES, SYS_socket, family, type, 0, 0));
	for (long type = 0; type < 16; type++)
		if (type != SOCK_STREAM && type != SOCK_SEQPACKET) {
			CHECK(is_refused(EACCES, SYS_socketpair, AF_UNIX, type, 0, 0));
			CHECK(
			    is_refused(EACCES, SYS_socketpair, AF_UNIX, type | SOCK_CLOEXEC, 0, 0));
		}
	CHECK(is_refused(EACCES, SYS_socketpair, AF_INET, SOCK_STREAM, 0, 0));
	CHECK(is_refused(EPERM, SYS_fchmodat, here, path, 0700, 0));
	CHECK(is_refused(EPERM, 452, here, path, 0700, 0)); /* fchmodat2 */
	CHECK(is_refused(EPERM, SYS_fchownat, here, path, -1, -1));
	CHECK(is_refused(EPERM, SYS_setxattr, path, path, path, 1));
	CHECK(is_refused(EPERM, SYS_utimensat, here, path, 0, 0));
	CHECK(is_refused(EPERM, SYS_utimensat, here, 0x7e0000000000, 0, 0)); /* its low half is 0 */
	CHECK(is_refused(EPERM, SYS_inotify_init1, 0, 0, 0, 0));
	CHECK(is_refused(ENOSYS, -1, 0, 0, 0, 0)); /* as a tracer leaves a call that it skips */
	for (long call = SYS_shmget; call <= SYS_shmctl; call++)
		CHECK(is_refused(ENOSYS, call, 0, 4096, 0600, 0));
	CHECK(is_refused(ENOSYS, SYS_semget, 0, 1, 0600, 0));
	CHECK(is_refused(ENOSYS, SYS_msgget, 0, 0600, 0, 0));
	CHECK(is_refused(ENOSYS, SYS_mq_open, path, 0, 0, 0));
	CHECK(is_refused(EPERM, SYS_prlimit64, parent, RLIMIT_CORE, 0, 0));
	CHECK(is_refused(EPERM, SYS_setpriority, PRIO_PROCESS, parent, 0, 0));
	CHECK(is_refused(EPERM, SYS_setpriority, PRIO_USER, 0, 0, 0));
	CHECK(is_refused(EPERM, SYS_sched_setaffinity, parent, 0, 0, 0));
	CHECK(is_refused(EPERM, SYS_sched_setscheduler, parent, 0, 0, 0));
	CHECK(is_refused(EPERM, SYS_sched_setparam, parent, 0, 0, 0));
	CHECK(is_refused(EPERM, SYS_ioprio_set, 1, parent, 0, 0));
	CHECK(is_refused(EPERM, SYS_ioprio_set, 3, 0, 0, 0));
}

static void what_only_namespaces_make_harmless_is_refused(void **state)
{
	(void)state;
	in_child(try_refused);
}

static void try_allowed(void)
{
	int ends[2], fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct rlimit limit;
	cpu_set_t set;
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends) == 0);
	CHECK(memfd_create("x", MFD_CLOEXEC) >= 0); /* the other filter decides */
	CHECK(fd >= 0 && getpid() > 1);
	int file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	CHECK(file >= 0 && fchmod(file, 0700) == 0 && futimens(file, NULL) == 0);
	CHECK(getrlimit(RLIMIT_CORE, &limit) == 0 && setrlimit(RLIMIT_CORE, &limit) == 0);
	CHECK(sched_getaffinity(0, sizeof(set), &set) == 0);
	CHECK(sched_setaffinity(0, sizeof(set), &set) == 0);
	CHECK(setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0)) == 0);
}

static void what_concerns_the_caller_alone_is_allowed(void **state)
{
	(void)state;
	in_child(try_allowed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_only_namespaces_make_harmless_is_refused),
		cmocka_unit_test(what_concerns_the_caller_alone_is_allowed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
