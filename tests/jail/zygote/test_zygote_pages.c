/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: syscall */
/* A copy of the zygote gets at once what the trial has used. */
#include "runtime/jail/zygote/zygote_inside.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/forked.h"

#define PAGES 200
#define FEW   (PAGES / 4)

static bool is_old_kernel; /* process_madvise(2) takes no advice from the process itself */
static bool takes_part;    /* the call takes only the first of its ranges */

long __real_syscall(long nr, long a, long b, long c, long d, long e);
long __wrap_syscall(long nr, long a, long b, long c, long d, long e);
long __wrap_syscall(long nr, long a, long b, long c, long d, long e)
{
	if (nr == SYS_process_madvise && is_old_kernel) {
		errno = EINVAL;
		return -1;
	}
	return __real_syscall(nr, a, b, nr == SYS_process_madvise && takes_part ? 1 : c, d, e);
}

static char *memory; /* pages that the zygote has written */

static int set_up(void **state)
{
	const size_t size = PAGES * (size_t)getpagesize();
	(void)state;
	/* a zygote has its own socket there */
	assert_int_equal(dup2(STDERR_FILENO, ZYGOTE_SOCK_FD), ZYGOTE_SOCK_FD);
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(memory != MAP_FAILED);
	(void)madvise(memory, size, MADV_NOHUGEPAGE);
	memset(memory, 1, size);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return munmap(memory, PAGES * (size_t)getpagesize());
}

static long faults(void)
{
	struct rusage usage;
	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_minflt;
}

/* The page faults of writing to each page. */
static long write_all(void)
{
	long before = faults();
	for (size_t i = 0; i < PAGES; i++)
		((volatile char *)memory)[i * (size_t)getpagesize()] = 2;
	return faults() - before;
}

static void run_trial(bool gets_ready)
{
	pid_t pid = zygote_pages_try(fork);
	assert_true(pid >= 0);
	if (pid > 0)
		return;
	(void)write_all();
	if (gets_ready && write(ZYGOTE_SOCK_FD, ".", 1) == 1)
		(void)pause();
	_exit(0);
}

/* Those of a copy, up to 255. */
static int faults_of_copy(void)
{
	int status = 0;
	pid_t pid = test_fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		zygote_pages_fetch();
		bool kept = memory[0] == 1;
		long count = write_all();
		_exit(!kept || count > 255 ? 255 : (int)count);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* First: what a trial has told stays. */
static void a_trial_that_ends_early_has_told_nothing(void **state)
{
	(void)state;
	run_trial(false);
	assert_in_range(faults_of_copy(), PAGES, 254);
}

static void a_copy_writes_to_the_pages_of_the_trial_without_faults(void **state)
{
	(void)state;
	run_trial(true);
	assert_in_range(faults_of_copy(), 0, FEW);
	assert_int_equal(memory[0], 1); /* the zygote's own */
}

static void a_copy_gets_the_pages_one_by_one_from_an_older_kernel(void **state)
{
	(void)state;
	is_old_kernel = true;
	assert_in_range(faults_of_copy(), 0, FEW);
	is_old_kernel = false;
	takes_part = true;
	assert_in_range(faults_of_copy(), 0, FEW);
	takes_part = false;
}

/* The zygote is killed while it looks at the trial, which has made the other end of its pipe. */
static void a_trial_ends_with_the_zygote(void **state)
{
	int ends[2], status;
	char byte;
	(void)state;
	assert_int_equal(pipe(ends), 0);
	pid_t zygote = test_fork();
	assert_true(zygote >= 0);
	if (zygote == 0) {
		(void)close(ends[0]);
		if (zygote_pages_try(fork) == 0) {
			(void)!write(ends[1], "t", 1);
			for (;;)
				(void)pause();
		}
		_exit(0);
	}
	(void)close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1); /* from the trial */
	assert_int_equal(kill(zygote, SIGKILL), 0);
	assert_int_equal(waitpid(zygote, &status, 0), zygote);
	assert_int_equal(read(ends[0], &byte, 1),
			 0); /* no trial has the pipe; test_fork()'s alarm limits it */
	(void)close(ends[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_trial_that_ends_early_has_told_nothing),
		cmocka_unit_test(a_trial_ends_with_the_zygote),
		cmocka_unit_test(a_copy_writes_to_the_pages_of_the_trial_without_faults),
		cmocka_unit_test(a_copy_gets_the_pages_one_by_one_from_an_older_kernel),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
