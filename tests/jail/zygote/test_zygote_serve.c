/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: zygote_check_memory libexec_find step_pair sys_waitpid fork */
/*
 * A zygote keeps nothing of a request, serves only while it can be forked, and ends with those who
 * use it.
 */
#include "tests/service/queue/zygotes.h"

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>

#include "tests/forked.h"
#include "tests/patience.h"

static unsigned step_ms; /* in place of STEP_TIMEOUT_MS; 0: that much */

int __real_step_pair(int out_fds[2], unsigned timeout_ms, struct cj_error *err);
int __wrap_step_pair(int out_fds[2], unsigned timeout_ms, struct cj_error *err);
int __wrap_step_pair(int out_fds[2], unsigned timeout_ms, struct cj_error *err)
{
	return __real_step_pair(out_fds, step_ms > 0 ? step_ms : timeout_ms, err);
}

/* The zygote whose intermediate processes end late, as on a busy machine; 0: none does. */
static pid_t zygote_with_late_children;

pid_t __real_sys_waitpid(pid_t pid, int *out_status, int options);
pid_t __wrap_sys_waitpid(pid_t pid, int *out_status, int options);
pid_t __wrap_sys_waitpid(pid_t pid, int *out_status, int options)
{
	pid_t ended = __real_sys_waitpid(pid, out_status, options);
	if (zygote_with_late_children > 0 && getpid() != zygote_with_late_children)
		(void)usleep(200000);
	return ended;
}

static void delay_children(void)
{
	zygote_with_late_children = getpid();
}

static unsigned forks_that_fail; /* the next ones; counted in memory that a zygote's C2 shares */

pid_t __real_fork(void);
pid_t __wrap_fork(void);
pid_t __wrap_fork(void)
{
	if (forks_that_fail == 0)
		return __real_fork();
	forks_that_fail--;
	errno = EAGAIN;
	return -1;
}

static void delay_children_and_fail_the_first_fork(void)
{
	delay_children();
	forks_that_fail = 2; /* the trial, too */
}

static void do_nothing(void)
{
}

/* --- what it holds: it forgets a request after the jail has got its program ---------------- */

/* What is listed in /proc/PID/fd; -1: this user may not look, for the zygote can't be traced. */
static int count_descriptors(pid_t pid)
{
	char path[64];
	(void)snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	auto_dir DIR *dir = opendir(path);
	if (!dir)
		return -1;
	int count = -2; /* "." and ".." */
	while (readdir(dir))
		count++;
	return count;
}

/* The bytes in its list of children; -1: no such list (CONFIG_PROC_CHILDREN). */
static int count_children(pid_t pid)
{
	char path[96], text[64];
	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -1 : (int)read(fd, text, sizeof(text));
}

static void assert_comes_to(int (*count)(pid_t pid), pid_t pid, int wanted)
{
	int found = count(pid);
	for (int i = 0; i < patience_ms(6000) && found > wanted; i++) {
		(void)usleep(10000);
		found = count(pid);
	}
	if (found >= 0)
		assert_int_equal(found, wanted);
}

static void print_descriptors(void)
{
	char text[4] = "";
	int count = 0;
	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	(void)!write(STDOUT_FILENO, text, (size_t)snprintf(text, sizeof(text), "%d", count));
}

static void a_zygote_keeps_no_descriptor_of_a_request(void **state)
{
	(void)state;
	struct run r;
	run_own_init(&r, NULL, print_descriptors);
	for (int i = 0; i < 3; i++) {
		run_jail(&r);
		/* nor has the program one of the zygote's: its streams, its socket for calls */
		assert_output(&r, 0, "4");
		outcome_fini(&r.out);
		outcome_init(&r.out, "zygote", OUTPUT);
	}
	assert_comes_to(count_descriptors, r.zygote.pid, 4);
	run_fini(&r);
}

/* Jails that end before they get a program. */
static void warm_and_end(struct run *r, int count)
{
	for (int i = 0; i < count; i++) {
		assert_int_equal(warm(r), 0);
		jail_destroy(&r->jail);
	}
}

static void a_zygote_has_no_children_left(void **state)
{
	(void)state;
	struct run r;
	run_own_init(&r, NULL, do_nothing);
	warm_and_end(&r, 3);
	assert_comes_to(count_children, r.zygote.pid, 0);
	run_fini(&r);
}

static void a_jail_that_ends_as_soon_as_it_waits_leaves_the_zygote(void **state)
{
	(void)state;
	struct run r;
	run_own_init(&r, delay_children, do_nothing);
	warm_and_end(&r, 2);
	run_jail(&r);
	run_fini(&r);
}

static void a_jail_that_gets_no_fork_leaves_the_zygote(void **state)
{
	(void)state;
	struct run r;
	run_own_init(&r, delay_children_and_fail_the_first_fork, do_nothing);
	assert_int_equal(warm(&r), -EAGAIN);
	assert_said(&r, "fork into the jail");
	jail_destroy(&r.jail);
	run_jail(&r);
	run_fini(&r);
}

/* --- whom it serves --------------------------------------------------------------------- */

static void *sleep_long(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static void start_thread(void)
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, sleep_long, NULL) != 0)
		_exit(103);
}

static void an_interpreter_with_two_threads_is_no_zygote(void **state)
{
	(void)state;
	struct run r;
	run_init(&r, NULL, "");
	spawn_own(&r, start_thread, do_nothing);
	assert_int_equal(zygote_await_ready(&r.zygote, ready_ms(), &r.err), -EBUSY);
	assert_said(&r, "the interpreter has 2 threads, so it can't be forked");
	r.err = (struct cj_error){ 0 };
	assert_int_equal(warm(&r), -EPIPE); /* it has ended */
	run_fini(&r);
}

static void share_memory(void)
{
	if (mmap(NULL, 4096, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
		_exit(104);
}

static void share_a_writable_file(void)
{
	int fd = memfd_create("shared", 0);
	if (ftruncate(fd, 4096) < 0 || mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
		_exit(104);
}

static void map_a_file_to_read(void)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	if (mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
		_exit(104);
}

static void an_interpreter_that_shares_memory_is_no_zygote(void **state)
{
	(void)state;
	static void (*const mappings[])(void) = { map_a_file_to_read, share_memory,
						  share_a_writable_file };
	for (size_t i = 0; i < 3; i++) {
		struct run r;
		run_init(&r, NULL, "");
		spawn_own(&r, mappings[i], do_nothing);
		assert_int_equal(zygote_await_ready(&r.zygote, ready_ms(), &r.err),
				 i == 0 ? 0 : -EBUSY);
		if (i > 0)
			assert_said(&r, "the interpreter would share memory with its forks");
		run_fini(&r);
	}
}

static void requests_of_another_shape_change_nothing(void **state)
{
	(void)state;
	struct run r;
	run_own_init(&r, NULL, do_nothing);
	char junk[9000] = { 0 };
	for (size_t size = 1; size < sizeof(junk); size += 1000)
		assert_int_equal(send(r.zygote.sock_fd, junk, size, 0), (ssize_t)size);
	run_jail(&r);
	assert_int_equal(r.out.exit_code, 0);
	run_fini(&r);
}

static void a_jail_that_was_not_prepared_for_it_is_refused(void **state)
{
	(void)state;
	struct run r;
	run_own_init(&r, NULL, do_nothing);
	r.plan.uses_zygote = false;
	assert_int_equal(warm(&r), -EINVAL);
	assert_said(&r, "the jail was not prepared for a zygote");
	run_fini(&r);
}

static void a_jail_whose_init_has_ended_is_refused(void **state)
{
	(void)state;
	struct run r;
	run_own_init(&r, NULL, do_nothing);
	prepare(&r);
	assert_int_equal(kill(r.jail->init_pid, SIGKILL), 0);
	struct pollfd end = { .fd = r.jail->init_pidfd, .events = POLLIN };
	assert_int_equal(poll(&end, 1, patience_ms(60000)), 1);
	assert_int_equal(jail_warm(r.jail, r.zygote.sock_fd, &r.launcher, &r.err), -EPIPE);
	jail_destroy(&r.jail);
	run_jail(&r); /* the zygote is as it was */
	run_fini(&r);
}

static void a_zygote_that_has_ended_is_an_error_at_once(void **state)
{
	(void)state;
	struct run r;
	run_own_init(&r, NULL, do_nothing);
	cj_end_child(&r.zygote.pidfd);
	assert_int_equal(warm(&r), -EPIPE);
	assert_said(&r, "the zygote ended before");
	run_fini(&r);
}

static void a_zygote_that_stops_times_out(void **state)
{
	(void)state;
	struct run r;
	run_own_init(&r, NULL, do_nothing);
	assert_int_equal(kill(r.zygote.pid, SIGSTOP), 0);
	prepare(&r);
	step_ms = 2000;
	assert_int_equal(jail_warm(r.jail, r.zygote.sock_fd, &r.launcher, &r.err), -ETIMEDOUT);
	step_ms = 0;
	assert_said(&r, "wait for the zygote to reach 'sealed'");
	run_fini(&r);
}

static void a_jail_with_room_for_one_process_has_none_for_a_fork(void **state)
{
	(void)state;
	struct run r;
	run_own_init(&r, NULL, do_nothing);
	prepare(&r);
	bool has_cgroup = r.jail->cgroup.enforced[CGROUP_PIDS];
	jail_destroy(&r.jail);
	r.plan.limits.pids = 1;
	if (has_cgroup)
		assert_int_equal(warm(&r), -EAGAIN);
	run_fini(&r);
}

/* --- when it ends ----------------------------------------------------------------------- */

static int status_of(struct run *r)
{
	siginfo_t info = { 0 };
	assert_int_equal(waitid(P_PIDFD, (id_t)r->zygote.pidfd, &info, WEXITED), 0);
	return info.si_status;
}

static void a_zygote_ends_when_its_socket_is_closed(void **state)
{
	(void)state;
	struct run r;
	run_init(&r, NULL, "echo on");
	spawn(&r);
	assert_int_equal(warm(&r), 0);
	cj_close(&r.zygote.sock_fd);
	assert_int_equal(status_of(&r), 0);
	finish(&r, 0); /* its jails go on */
	assert_output(&r, 0, "on\n");
	run_fini(&r);
}

static void a_zygote_dies_with_its_parent(void **state)
{
	(void)state;
	struct run r;
	int ends[2];
	run_init(&r, NULL, "");
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid_t parent = test_fork();
	assert_true(parent >= 0);
	if (parent == 0) {
		spawn(&r);
		(void)!write(ends[1], &r.zygote.pid, sizeof(r.zygote.pid));
		for (;;)
			pause();
	}
	pid_t zygote;
	assert_int_equal(read(ends[0], &zygote, sizeof(zygote)), sizeof(zygote));
	auto_fd int pidfd = sys_pidfd_open(zygote);
	assert_true(pidfd >= 0);
	assert_int_equal(kill(parent, SIGKILL), 0);
	assert_int_equal(waitpid(parent, NULL, 0), parent);
	struct pollfd end = { .fd = pidfd, .events = POLLIN };
	assert_int_equal(poll(&end, 1, patience_ms(60000)), 1);
	cj_close(&pidfd);
	close(ends[0]);
	close(ends[1]);
	run_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_zygote_keeps_no_descriptor_of_a_request),
		cmocka_unit_test(a_zygote_has_no_children_left),
		cmocka_unit_test(a_jail_that_ends_as_soon_as_it_waits_leaves_the_zygote),
		cmocka_unit_test(a_jail_that_gets_no_fork_leaves_the_zygote),
		cmocka_unit_test(an_interpreter_with_two_threads_is_no_zygote),
		cmocka_unit_test(an_interpreter_that_shares_memory_is_no_zygote),
		cmocka_unit_test(requests_of_another_shape_change_nothing),
		cmocka_unit_test(a_jail_that_was_not_prepared_for_it_is_refused),
		cmocka_unit_test(a_jail_whose_init_has_ended_is_refused),
		cmocka_unit_test(a_zygote_that_has_ended_is_an_error_at_once),
		cmocka_unit_test(a_zygote_that_stops_times_out),
		cmocka_unit_test(a_jail_with_room_for_one_process_has_none_for_a_fork),
		cmocka_unit_test(a_zygote_ends_when_its_socket_is_closed),
		cmocka_unit_test(a_zygote_dies_with_its_parent),
	};
	return RUN_TESTS_OF_JAILS(tests);
}
