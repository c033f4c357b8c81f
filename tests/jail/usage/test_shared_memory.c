/* SPDX-License-Identifier: Apache-2.0 */
/* What of its memory a process shares: in a made-up /proc. */
#include "runtime/jail/usage/process_usage.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "runtime/base/scope.h"
#include "tests/temp_dir.h"

#define MIB (1ull << 20)

static void put(pid_t pid, const char *file, const char *text)
{
	char path[128];
	(void)snprintf(path, sizeof(path), "%s/%d", temp_dir, (int)pid);
	(void)mkdir(path, 0755); /* there from the file before */
	(void)snprintf(path, sizeof(path), "%s/%d/%s", temp_dir, (int)pid, file);
	auto_file FILE *f = fopen(path, "we");
	if (!f || fputs(text, f) < 0)
		abort();
}

/* `flags` 64 is a process that has not called execve(2). */
static void put_stat(pid_t pid, char state, pid_t parent, unsigned flags, unsigned threads)
{
	char text[256];
	(void)snprintf(text, sizeof(text),
		       "%d (p) %c %d 1 1 0 -1 %u 0 0 0 0 0 0 0 0 20 0 %u 0 99 0 0\n", (int)pid,
		       state, (int)parent, flags, threads);
	put(pid, "stat", text);
}

/* A process that sleeps and has 100 MiB, of which 10 MiB are its part. */
static void put_sleeper(pid_t pid)
{
	put_stat(pid, 'S', 1, 0, 1);
	put(pid, "schedstat", "7900000 12 3\n");
	put(pid, "status", "Name:\tp\nRssAnon:\t 101400 kB\nRssShmem:\t 1000 kB\n");
	put(pid, "smaps_rollup", "Rss: 200000 kB\nPss_Anon: 10140 kB\nPss_Shmem: 100 kB\n");
}

/* Its thread's pending signals, and its own. */
static void put_pending(pid_t pid, const char *thread, const char *shared)
{
	char text[256];
	(void)snprintf(text, sizeof(text),
		       "Name:\tp\nRssAnon:\t 101400 kB\nRssShmem:\t 1000 kB\n"
		       "SigPnd:\t%s\nShdPnd:\t%s\n",
		       thread, shared);
	put(pid, "status", text);
}

static uint64_t taken(const pid_t *pids, size_t count, uint64_t enough_bytes)
{
	auto_fd int proc_fd = open(temp_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return process_usage_shared(proc_fd, pids, count, enough_bytes);
}

static uint64_t taken_of(pid_t pid)
{
	return taken(&pid, 1, UINT64_MAX);
}

static void a_process_that_sleeps_counts_with_its_part(void **state)
{
	(void)state;
	put_sleeper(2);
	assert_int_equal(taken_of(2), 90 * MIB);
	put_stat(2, 'S', 1, 64, 1);
	put_stat(1, 'S', 0, 0, 1);
	put_pending(1, "0000000000000000", "0000000000000000");
	assert_int_equal(taken_of(2), 90 * MIB); /* of fork(2) */
}

/* It could end or unmap pages while others are looked at. */
static void a_process_that_may_run_counts_with_all_that_it_maps(void **state)
{
	(void)state;
	static const char others[] = "RDTtZ";
	put_sleeper(2);
	for (const char *s = others; *s; s++) {
		put_stat(2, *s, 1, 0, 1);
		assert_int_equal(taken_of(2), 0);
	}
	put_stat(2, 'S', 1, 0, 2);
	assert_int_equal(taken_of(2), 0);
}

static void a_process_that_has_not_run_yet_is_idle(void **state)
{
	(void)state;
	put_sleeper(2);
	put_stat(2, 'R', 1, 0, 1);
	put(2, "schedstat", "0 0 0\n");
	assert_int_equal(taken_of(2), 90 * MIB);
}

/* At a run's end all processes of a jail are killed at once, and some wait for a CPU. */
static void a_process_that_is_killed_is_idle(void **state)
{
	(void)state;
	put_sleeper(2);
	put_stat(2, 'R', 1, 0, 1);
	put_pending(2, "0000000000000100", "0000000000000000");
	assert_int_equal(taken_of(2), 90 * MIB);
	put_pending(2, "0000000000000000", "0000000000000100");
	assert_int_equal(taken_of(2), 90 * MIB);
	put_pending(2, "fffffffffffffeff", "fffffffffffffeff");
	assert_int_equal(taken_of(2), 0);
}

static void a_child_of_vfork_is_not_taken_off_twice(void **state)
{
	(void)state;
	put_sleeper(3);
	put_stat(3, 'S', 2, 64, 1);
	put_stat(2, 'D', 1, 0, 1);
	assert_int_equal(taken_of(3), 0);
	put_stat(2, 'R', 1, 0, 1); /* it was in vfork(2) when the sum was taken */
	put_pending(2, "0000000000000000", "0000000000000100");
	assert_int_equal(taken_of(3), 0);
}

static void what_the_kernel_does_not_show_is_not_taken_off(void **state)
{
	(void)state;
	static const char *const files[] = { "stat", "schedstat", "status", "smaps_rollup" };
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		put_sleeper(2);
		put(2, files[i], "");
		assert_int_equal(taken_of(2), 0);
	}
	put_sleeper(2);
	put(2, "smaps_rollup", "Rss: 200000 kB\nPss: 1 kB\nPss_Anon: 1 kB\n");
	assert_int_equal(taken_of(2), 0);
	put(2, "smaps_rollup", "Pss_Anon: 200000 kB\nPss_Shmem: 0 kB\n");
	assert_int_equal(taken_of(2), 0);
}

static void no_more_is_read_than_is_needed_or_allowed(void **state)
{
	(void)state;
	pid_t pids[40];
	for (int i = 0; i < 40; i++) {
		pids[i] = 2 + i;
		put_sleeper(pids[i]);
	}
	assert_int_equal(taken(pids, 40, 100 * MIB), 180 * MIB);
	assert_int_equal(taken(pids, 40, UINT64_MAX),
			 (SHARED_READ_MAX / MIB + 99) / 100 * 90 * MIB);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, temp_dir_make, temp_dir_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_process_that_sleeps_counts_with_its_part),
		TEST(a_process_that_may_run_counts_with_all_that_it_maps),
		TEST(a_process_that_has_not_run_yet_is_idle),
		TEST(a_process_that_is_killed_is_idle),
		TEST(a_child_of_vfork_is_not_taken_off_twice),
		TEST(what_the_kernel_does_not_show_is_not_taken_off),
		TEST(no_more_is_read_than_is_needed_or_allowed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
