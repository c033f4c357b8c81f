/* SPDX-License-Identifier: Apache-2.0 */
/* Nested cgroups on this host's cgroupfs, where this user may make some. */
#include "runtime/kernel/cgroup/cgroup_tree.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"
#include "runtime/kernel/cgroup/cgroup_parent.h"
#include "tests/first_thread.h"
#include "tests/forked.h"
#include "tests/patience.h"

/* WRAP: system_file_write */

#define TAIL_MAX 512

static char top[CGROUP_PATH_MAX + 64]; /* "": none can be made here */
static const char *refused;            /* this file takes no write */

int __real_system_file_write(int dir_fd, const char *name, const char *text);
int __wrap_system_file_write(int dir_fd, const char *name, const char *text);
int __wrap_system_file_write(int dir_fd, const char *name, const char *text)
{
	if (refused && strcmp(name, refused) == 0)
		return -EACCES;
	return __real_system_file_write(dir_fd, name, text);
}

static int make_level(const char *tail)
{
	char path[sizeof(top) + TAIL_MAX];
	(void)snprintf(path, sizeof(path), "%s%s", top, tail);
	return mkdir(path, 0755);
}

static int begin(void **state)
{
	(void)state;
	struct cgroup_host host;
	cgroup_host_read(&host);
	refused = NULL;
	(void)snprintf(top, sizeof(top), "%s/cejail-test-%d-1", host.mount.point, (int)getpid());
	if (host.mount.point[0] == '\0' || make_level("") < 0)
		top[0] = '\0';
	return 0;
}

static int open_top(void)
{
	if (top[0] == '\0')
		skip();
	int fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static int remove_top(void)
{
	char parent[sizeof(top)];
	memcpy(parent, top, sizeof(top));
	char *slash = strrchr(parent, '/');
	*slash = '\0';
	auto_fd int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return cgroup_tree_remove(fd, slash + 1, 0);
}

static int end(void **state)
{
	(void)state;
	return top[0] == '\0' ? 0 : remove_top();
}

/* A process that waits in the cgroup top/tail. */
static pid_t spawn(const char *tail)
{
	char path[sizeof(top) + TAIL_MAX], text[16];
	pid_t pid = test_fork();
	assert_true(pid >= 0);
	if (pid == 0)
		(void)wait_for_ever(NULL);
	(void)snprintf(path, sizeof(path), "%s%s/cgroup.procs", top, tail);
	(void)snprintf(text, sizeof(text), "%d", (int)pid);
	assert_int_equal(__real_system_file_write(AT_FDCWD, path, text), 0);
	return pid;
}

static void reap(pid_t pid, int signal)
{
	int status = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), signal);
}

static void processes_of_every_level_are_listed_signalled_and_killed(void **state)
{
	(void)state;
	auto_fd int fd = open_top();
	assert_int_equal(make_level("/a"), 0);
	assert_int_equal(make_level("/a/b"), 0);
	for (unsigned is_refused = 0; is_refused < 2; is_refused++) {
		auto_arena struct arena a = { 0 };
		struct cj_error err = { 0 };
		pid_t *pids = NULL, inner = spawn("/a/b"), outer = spawn("");
		size_t count = 0;
		assert_int_equal(cgroup_tree_pids(fd, &a, &pids, &count, &err), 0);
		assert_int_equal(count, 2);
		assert_true((pids[0] == outer && pids[1] == inner));
		assert_true(cgroup_tree_event(fd, "populated"));
		assert_int_equal(remove_top(), -EBUSY);

		refused = is_refused ? "cgroup.kill" : NULL;
		assert_int_equal(cgroup_tree_kill(fd, (unsigned)patience_ms(5000), &err), 0);
		reap(inner, SIGKILL);
		reap(outer, SIGKILL);
		assert_false(cgroup_tree_event(fd, "populated"));
		assert_false(cgroup_tree_event(fd, "frozen"));
	}
	struct cj_error err = { 0 };
	pid_t pid = spawn("/a/b");
	assert_int_equal(cgroup_tree_signal(fd, SIGTERM, &err), 0);
	reap(pid, SIGTERM);
}

static void exit_first_thread(int unused)
{
	(void)unused;
	end_first_thread();
}

/* cgroup.kill alone leaves it alive. */
static void a_process_without_its_first_thread_is_killed(void **state)
{
	(void)state;
	auto_fd int fd = open_top();
	struct cj_error err = { 0 };
	assert_int_equal(make_level("/a"), 0);
	assert_true(signal(SIGUSR1, exit_first_thread) != SIG_ERR); /* children inherit it */
	pid_t pid = spawn("/a");
	assert_int_equal(kill(pid, SIGUSR1), 0);
	await_zombie(pid);
	assert_int_equal(cgroup_tree_kill(fd, (unsigned)patience_ms(5000), &err), 0);
	reap(pid, SIGKILL);
	assert_false(cgroup_tree_event(fd, "frozen"));
}

#define LEVELS 200

/* The container decides how deep; two cgroups beside each level are visited, too. */
static void any_depth_is_walked_with_one_descriptor(void **state)
{
	(void)state;
	auto_fd int fd = open_top();
	char tail[TAIL_MAX] = "";
	for (int i = 0; i < LEVELS; i++) {
		(void)snprintf(tail + strlen(tail), sizeof(tail) - strlen(tail), "/n");
		assert_int_equal(make_level(tail), 0);
	}
	assert_int_equal(make_level("/n/n/a"), 0);
	assert_int_equal(make_level("/n/z"), 0);
	const pid_t made[] = { spawn(tail), spawn("/n/n/a"), spawn("/n/z"), spawn("") };
	const size_t nmade = sizeof(made) / sizeof(made[0]);

	auto_arena struct arena a = { 0 };
	struct cj_error err = { 0 };
	pid_t *pids = NULL;
	size_t count = 0;
	struct rlimit saved, few;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &saved), 0);
	few = saved;
	few.rlim_cur = 40;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	int rc = cgroup_tree_pids(fd, &a, &pids, &count, &err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &saved), 0);
	assert_int_equal(rc, 0);
	assert_int_equal(count, nmade);
	assert_int_equal(pids[0], made[nmade - 1]);
	assert_int_equal(cgroup_tree_signal(fd, SIGTERM, &err), 0);
	for (size_t i = 0; i < nmade; i++)
		reap(made[i], SIGTERM);
}

static void a_frozen_cgroup_thaws(void **state)
{
	(void)state;
	struct cj_error err = { 0 };
	auto_fd int fd = open_top();
	pid_t pid = spawn("");
	assert_int_equal(cgroup_tree_freeze(fd, true, (unsigned)patience_ms(60000)), 0);
	assert_true(cgroup_tree_event(fd, "frozen"));
	assert_int_equal(cgroup_tree_freeze(fd, false, (unsigned)patience_ms(60000)), 0);
	assert_false(cgroup_tree_event(fd, "frozen"));
	assert_int_equal(cgroup_tree_kill(fd, (unsigned)patience_ms(5000), &err), 0);
	reap(pid, SIGKILL);
}

static void a_tree_that_is_gone_is_no_error(void **state)
{
	(void)state;
	auto_fd int fd = open_top();
	assert_int_equal(make_level("/a"), 0);
	assert_int_equal(make_level("/a/b"), 0);
	assert_int_equal(make_level("/c"), 0);
	assert_int_equal(remove_top(), 0);
	assert_int_equal(remove_top(), 0);
	struct cj_error err = { 0 };
	assert_int_equal(cgroup_tree_kill(fd, (unsigned)patience_ms(5000), &err), 0);
	assert_false(cgroup_tree_event(fd, "populated"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(processes_of_every_level_are_listed_signalled_and_killed),
		TEST(a_process_without_its_first_thread_is_killed),
		TEST(any_depth_is_walked_with_one_descriptor),
		TEST(a_frozen_cgroup_thaws),
		TEST(a_tree_that_is_gone_is_no_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
