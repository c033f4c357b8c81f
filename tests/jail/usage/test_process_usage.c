/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over processes: in a made-up /proc, and in that of a real pid namespace. */
#include "runtime/jail/usage/process_usage.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "runtime/base/scope.h"
#include "tests/forked.h"
#include "tests/temp_dir.h"

static void put(const char *pid, const char *file, const char *text)
{
	char path[128];
	(void)snprintf(path, sizeof(path), "%s/%s", temp_dir, pid);
	(void)mkdir(path, 0755); /* there from the file before */
	(void)snprintf(path, sizeof(path), "%s/%s/%s", temp_dir, pid, file);
	auto_file FILE *f = fopen(path, "we");
	if (!f || fputs(text, f) < 0)
		abort();
}

static void put_process(const char *pid, unsigned own, unsigned reaped, unsigned threads,
			unsigned kilobytes)
{
	char text[256];
	(void)snprintf(text, sizeof(text),
		       "%s (a) b) S 1 1 1 0 -1 4194304 0 0 0 0 %u 0 %u 0 20 0 %u 0 99 0 0\n", pid,
		       own, reaped, threads);
	put(pid, "stat", text);
	(void)snprintf(text, sizeof(text), "Name:\ta) b\nRssAnon:\t%u kB\nRssShmem:\t1 kB\n",
		       kilobytes);
	put(pid, "status", text);
}

static int open_base(void);

#define CLONE_CALL(flags) EXPANDED(SYS_clone) " " flags " 0x0 0x0 0x0 0x0 0x0 0x7ffe0 0x7f00\n"
#define EXPANDED(number)  QUOTED(number)
#define QUOTED(number)    #number
#define WAITS_IN_VFORK    CLONE_CALL("0x4111")

/* One side of a vfork(2): `flags` 64 is a process that has not called execve(2). */
static void put_vfork_side(const char *pid, char state, unsigned parent, unsigned flags,
			   unsigned kilobytes)
{
	char text[256];
	put(pid, "syscall", state == 'D' ? WAITS_IN_VFORK : "running\n");
	put_process(pid, 0, 0, 1, kilobytes - 1);
	(void)snprintf(text, sizeof(text),
		       "%s (v) %c %u 1 1 0 -1 %u 0 0 0 0 0 0 0 0 20 0 1 0 99 0 0\n", pid, state,
		       parent, flags);
	put(pid, "stat", text);
}

static uint64_t sampled_kilobytes(void)
{
	struct process_usage s;
	auto_fd int proc_fd = open_base();
	assert_true(process_usage_take(proc_fd, -1, NULL, &s));
	return s.memory_bytes / 1024;
}

static int open_base(void)
{
	return open(temp_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void all_processes_but_init_are_counted(void **state)
{
	(void)state;
	struct process_usage s;
	long ticks = sysconf(_SC_CLK_TCK);
	put_process("1", 50, (unsigned)ticks, 1, 9000);
	put_process("2", (unsigned)ticks, 0, 3, 100);
	put_process("17", 0, (unsigned)ticks * 2, 1, 200);
	put("self", "stat", "x");
	put("2x", "stat", "x");
	auto_fd int proc_fd = open_base();
	assert_true(process_usage_take(proc_fd, -1, NULL, &s));
	assert_int_equal(s.processes, 4);
	assert_int_equal(process_usage_cpu_us(&s) / 1000, 4000); /* init's own time is ours */
	assert_int_equal(s.memory_bytes, 302 * 1024);
	assert_true(s.has_memory);
}

static void a_zombie_counts_as_a_process_without_memory(void **state)
{
	(void)state;
	struct process_usage s;
	put_process("1", 0, 0, 1, 0);
	put_process("5", 0, 0, 0, 0);
	put("5", "status", "Name:\tz\nState:\tZ (zombie)\n");
	auto_fd int proc_fd = open_base();
	assert_true(process_usage_take(proc_fd, -1, NULL, &s));
	assert_int_equal(s.processes, 1);
	assert_int_equal(s.memory_bytes, 0);
	assert_false(s.has_memory);

	struct process_usage peak = { .has_memory = true };
	process_usage_raise(&peak, &s);
	assert_true(peak.has_memory); /* from the sample before */
}

static void a_process_that_vanishes_is_passed_over(void **state)
{
	(void)state;
	struct process_usage s;
	put_process("1", 0, 0, 1, 0);
	put("6", "status", "RssAnon:\t5 kB\n"); /* its stat is gone */
	auto_fd int proc_fd = open_base();
	assert_true(process_usage_take(proc_fd, -1, NULL, &s));
	assert_int_equal(s.processes, 0);
}

static void a_link_in_place_of_a_file_is_not_followed(void **state)
{
	(void)state;
	struct process_usage s;
	char from[128], to[128];
	put_process("1", 0, 0, 1, 0);
	put_process("7", 100, 0, 1, 100);
	(void)snprintf(from, sizeof(from), "%s/7/stat", temp_dir);
	(void)snprintf(to, sizeof(to), "%s/7/real", temp_dir);
	assert_int_equal(rename(from, to), 0);
	assert_int_equal(symlink(to, from), 0);
	auto_fd int proc_fd = open_base();
	assert_true(process_usage_take(proc_fd, -1, NULL, &s));
	assert_int_equal(s.processes, 0);
}

static void what_vfork_shares_is_counted_once(void **state)
{
	(void)state;
	put_process("1", 0, 0, 1, 0);
	put_vfork_side("2", 'D', 1, 0, 500);
	put_vfork_side("3", 'S', 2, 64, 500);
	assert_int_equal(sampled_kilobytes(), 500);
	put_vfork_side("3", 'D', 2, 64, 500); /* it calls vfork(2) itself */
	put_vfork_side("4", 'R', 3, 64, 500);
	assert_int_equal(sampled_kilobytes(), 500);
}

static uint64_t doubtful_kilobytes(void)
{
	struct process_usage s;
	auto_fd int proc_fd = open_base();
	assert_true(process_usage_take(proc_fd, -1, NULL, &s));
	return s.doubtful_bytes / 1024;
}

static void a_process_that_only_looks_like_a_vfork_child_is_counted(void **state)
{
	(void)state;
	put_process("1", 0, 0, 1, 0);
	put_vfork_side("2", 'D', 1, 0, 100);
	put_vfork_side("3", 'S', 2, 64, 100);
	put_vfork_side("4", 'S', 2, 64, 700); /* of fork(2) */
	assert_int_equal(sampled_kilobytes(), 800);
	assert_int_equal(doubtful_kilobytes(), 100);
	put_vfork_side("2", 'S', 1, 0, 100); /* a parent whose first thread does not wait */
	assert_int_equal(sampled_kilobytes(), 900);
	assert_int_equal(doubtful_kilobytes(), 200);
	put_vfork_side("2", 'D', 1, 0, 100);
	put_vfork_side("3", 'S', 2, 0, 100); /* they have called execve(2) */
	put_vfork_side("4", 'S', 2, 0, 700);
	assert_int_equal(sampled_kilobytes(), 900);
	assert_int_equal(doubtful_kilobytes(), 0);
}

static void a_parent_that_waits_for_a_copy_of_its_memory_hides_nothing(void **state)
{
	(void)state;
	put_process("1", 0, 0, 1, 0);
	put_vfork_side("2", 'D', 1, 0, 500);
	put_vfork_side("3", 'S', 2, 64, 500);
	const char *const others[] = { CLONE_CALL("0x4011"), CLONE_CALL("0x14f00"), "running\n",
				       "" };
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		put("2", "syscall", others[i]);
		assert_int_equal(sampled_kilobytes(), 1000);
		assert_int_equal(doubtful_kilobytes(), 500);
	}
	put("2", "syscall", WAITS_IN_VFORK);
	assert_int_equal(sampled_kilobytes(), 500);
}

static void an_empty_proc_is_a_jail_that_is_gone(void **state)
{
	(void)state;
	struct process_usage s;
	auto_fd int proc_fd = open_base();
	assert_false(process_usage_take(proc_fd, -1, NULL, &s));
	assert_int_equal(s.processes, 0);
	assert_false(process_usage_take(-1, -1, NULL, &s));
}

static void end_process(const char *pid)
{
	char path[128];
	(void)snprintf(path, sizeof(path), "%s/%s/stat", temp_dir, pid);
	assert_int_equal(unlink(path), 0);
}

/* No sum has the time of a child whose parent ignores SIGCHLD. */
static void what_was_seen_of_the_disowned_stays_counted(void **state)
{
	(void)state;
	struct process_usage s;
	unsigned second = (unsigned)sysconf(_SC_CLK_TCK);
	struct sampler *past = sampler_create();
	auto_fd int proc_fd = open_base();
	assert_non_null(past);
	put_process("1", 0, 0, 1, 0);
	put_process("2", second, 0, 1, 0);
	put_process("3", second, 0, 1, 0);
	assert_true(process_usage_take(proc_fd, -1, past, &s));
	assert_int_equal(process_usage_cpu_us(&s) / 1000, 2000);

	put_process("3", 2 * second, 0, 1, 0);
	end_process("2");
	put_process("4", second, 0, 1, 0);
	assert_true(process_usage_take(proc_fd, -1, past, &s));
	assert_int_equal(process_usage_cpu_us(&s) / 1000, 4000);

	end_process("3");
	put_process("4", second, 0, 1, 0);
	assert_true(process_usage_take(proc_fd, -1, past, &s));
	assert_int_equal(process_usage_cpu_us(&s) / 1000, 4000);

	put_process("4", second, 9 * second, 1, 0); /* it reaped, but not what was gone before */
	assert_true(process_usage_take(proc_fd, -1, past, &s));
	assert_int_equal(process_usage_cpu_us(&s) / 1000, 11000);
	free(past);
}

static void a_tick_that_is_not_full_yet_counts_with_a_sampler(void **state)
{
	(void)state;
	struct process_usage s;
	struct sampler *past = sampler_create();
	auto_fd int proc_fd = open_base();
	assert_non_null(past);
	put_process("1", 0, 0, 1, 0);
	put_process("2", 0, 0, 1, 0);
	put("2", "schedstat", "7900000 12 3\n");
	assert_true(process_usage_take(proc_fd, -1, past, &s));
	assert_int_equal(process_usage_cpu_us(&s), 7900);
	free(past);
}

static void an_unreadable_process_is_reported(void **state)
{
	(void)state;
	struct process_usage s;
	struct rlimit old, few;
	char groups[40000] = "Groups:\t";
	auto_fd int proc_fd = open_base();
	put_process("1", 0, 0, 1, 0);
	put_process("2", 0, 0, 1, 10);
	assert_true(process_usage_take(proc_fd, -1, NULL, &s));

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few =
	    (struct rlimit){ (rlim_t)proc_fd + 2, old.rlim_max }; /* the directory, no file in it */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	bool is_whole = process_usage_take(proc_fd, -1, NULL, &s);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_false(is_whole);

	memset(groups + strlen(groups), '1', sizeof(groups) - 20);
	put("2", "status", groups);
	assert_false(process_usage_take(proc_fd, -1, NULL, &s));
	groups[20000] = '\0';
	put("2", "status", groups);
	assert_true(process_usage_take(proc_fd, -1, NULL, &s));
}

static void a_call_can_be_repeated(void **state)
{
	(void)state;
	struct process_usage a, b;
	put_process("1", 0, 0, 1, 0);
	put_process("2", 0, 0, 2, 10);
	auto_fd int proc_fd = open_base();
	assert_true(process_usage_take(proc_fd, -1, NULL, &a));
	assert_true(process_usage_take(proc_fd, -1, NULL, &b));
	assert_memory_equal(&a, &b, sizeof(a));
}

static void no_more_than_the_cap_is_read(void **state)
{
	(void)state;
	struct process_usage s;
	for (unsigned i = 1; i <= 4200; i++) {
		char pid[16];
		(void)snprintf(pid, sizeof(pid), "%u", i);
		put_process(pid, 0, 0, 1, 0);
	}
	auto_fd int proc_fd = open_base();
	assert_true(process_usage_take(proc_fd, -1, NULL, &s));
	assert_true(s.processes >= 4095 && s.processes <= 4096);
}

/* --- a real one ------------------------------------------------------------------ */

#define MEGABYTES 32

/* Pid 1 of a namespace of its own, with its /proc, a tmpfs, and one child that uses memory. */
static int live_in_namespace(const char *dir, int ready_fd)
{
	char proc[128], scratch[128];
	(void)snprintf(proc, sizeof(proc), "%s/proc", dir);
	(void)snprintf(scratch, sizeof(scratch), "%s/scratch", dir);
	if (mkdir(proc, 0755) < 0 || mkdir(scratch, 0755) < 0 ||
	    mount("proc", proc, "proc", 0, NULL) < 0 ||
	    mount("scratch", scratch, "tmpfs", 0, "size=8M") < 0)
		return 77;
	int scratch_fd = open(scratch, O_RDONLY | O_DIRECTORY);
	int file_fd = openat(scratch_fd, "file", O_RDWR | O_CREAT, 0600);
	if (posix_fallocate(file_fd, 0, 1 << 20) != 0)
		return 1;
	/* After a failed test it must not keep the test's output open. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (test_fork() == 0) {
		char *memory = mmap(NULL, MEGABYTES << 20, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memset(memory, 1, MEGABYTES << 20);
		(void)!write(ready_fd, "", 1);
		for (;;)
			(void)pause();
	}
	for (;;)
		(void)pause();
}

/* Of this test, which the processes of the jail are copies of: much, with a sanitizer. */
static uint64_t own_memory_bytes(void)
{
	struct rusage usage;
	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	return (uint64_t)usage.ru_maxrss << 10;
}

static void a_real_jail_is_measured_until_it_ends(void **state)
{
	(void)state;
	int ready[2];
	char byte, path[128];
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid_t outer = test_fork();
	if (outer == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		if (unshare(CLONE_NEWNS | CLONE_NEWPID) < 0 ||
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
			_exit(77);
		pid_t init = test_fork();
		if (init == 0)
			_exit(live_in_namespace(temp_dir, ready[1]));
		(void)close(ready[1]);
		int status;
		(void)waitpid(init, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 0);
	}
	(void)close(ready[1]);
	if (read(ready[0], &byte, 1) != 1) {
		print_message("namespaces and mounts are not for this user\n");
		(void)waitpid(outer, NULL, 0);
		(void)close(ready[0]);
		skip();
	}
	(void)close(ready[0]);

	struct process_usage s;
	(void)snprintf(path, sizeof(path), "/proc/%d/root%s/proc", (int)outer, temp_dir);
	auto_fd int proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)snprintf(path, sizeof(path), "/proc/%d/root%s/scratch", (int)outer, temp_dir);
	auto_fd int box_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(proc_fd >= 0 && box_fd >= 0);
	assert_true(process_usage_take(proc_fd, box_fd, NULL, &s));
	assert_int_equal(s.processes, 1);
	assert_true(s.memory_bytes >= (MEGABYTES + 1) << 20);
	assert_true(s.memory_bytes < own_memory_bytes() + ((MEGABYTES + 64) << 20));

	process_usage_kill(proc_fd); /* init, too: its end is everybody's */
	assert_int_equal(waitpid(outer, NULL, 0), outer);
	assert_false(process_usage_take(proc_fd, box_fd, NULL, &s));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, temp_dir_make, temp_dir_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_processes_but_init_are_counted),
		TEST(a_zombie_counts_as_a_process_without_memory),
		TEST(a_process_that_vanishes_is_passed_over),
		TEST(a_link_in_place_of_a_file_is_not_followed),
		TEST(what_vfork_shares_is_counted_once),
		TEST(a_process_that_only_looks_like_a_vfork_child_is_counted),
		TEST(a_parent_that_waits_for_a_copy_of_its_memory_hides_nothing),
		TEST(an_empty_proc_is_a_jail_that_is_gone),
		TEST(what_was_seen_of_the_disowned_stays_counted),
		TEST(a_tick_that_is_not_full_yet_counts_with_a_sampler),
		TEST(an_unreadable_process_is_reported),
		TEST(a_call_can_be_repeated),
		TEST(no_more_than_the_cap_is_read),
		TEST(a_real_jail_is_measured_until_it_ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
