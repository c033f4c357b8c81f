/* SPDX-License-Identifier: Apache-2.0 */
/* The descendants of a process, with processes of this test in the host's /proc. */
#include "runtime/kernel/process/process_tree.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tests/forked.h"

/* A child that has a child; both live until they are killed. */
struct family {
	int proc_fd, ends[2];
	pid_t child, grandchild;
};

static int set_up(void **state)
{
	static struct family f;
	assert_int_equal(pipe2(f.ends, O_CLOEXEC), 0);
	f.proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f.child = test_fork();
	if (f.child == 0) {
		pid_t grandchild = test_fork();
		if (grandchild > 0 && write(f.ends[1], &grandchild, sizeof(grandchild)) < 0)
			_exit(1);
		for (;;)
			(void)pause();
	}
	assert_int_equal(read(f.ends[0], &f.grandchild, sizeof(pid_t)), sizeof(pid_t));
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	struct family *f = *state;
	(void)kill(f->child, SIGKILL);
	(void)kill(f->grandchild, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0) /* the grandchild becomes ours: set_up() of the group */
		;
	(void)close(f->proc_fd);
	(void)close(f->ends[0]);
	(void)close(f->ends[1]);
	return 0;
}

static int become_subreaper(void **state)
{
	(void)state;
	return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

static bool has(const struct process_tree *tree, pid_t pid)
{
	for (size_t i = 0; i < tree->count; i++)
		if (tree->pids[i] == pid)
			return true;
	return false;
}

static void descendants_are_listed_and_the_root_is_not(void **state)
{
	const struct family *f = *state;
	struct process_tree tree;
	assert_true(process_tree_list(f->proc_fd, getpid(), &tree));
	assert_int_equal(tree.count, 2);
	assert_true(has(&tree, f->child) && has(&tree, f->grandchild));
	assert_true(process_tree_list(f->proc_fd, f->child, &tree));
	assert_int_equal(tree.count, 1);
	assert_true(process_tree_list(f->proc_fd, f->grandchild, &tree));
	assert_int_equal(tree.count, 0);
}

static void a_process_is_ending_once_it_was_killed(void **state)
{
	const struct family *f = *state;
	siginfo_t info;
	assert_false(process_tree_is_ending(f->proc_fd, f->child));
	(void)kill(f->child, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)f->child, &info, WEXITED | WNOWAIT), 0);
	assert_true(process_tree_is_ending(f->proc_fd, f->child));
}

static void a_process_is_below_its_ancestors_and_nobody_else(void **state)
{
	const struct family *f = *state;
	assert_int_equal(process_tree_parent(f->proc_fd, f->grandchild), f->child);
	assert_true(process_tree_is_below(f->proc_fd, f->grandchild, getpid()));
	assert_true(process_tree_is_below(f->proc_fd, f->grandchild, f->child));
	assert_false(process_tree_is_below(f->proc_fd, f->child, f->grandchild));
	assert_false(process_tree_is_below(f->proc_fd, f->child, f->child));
	assert_false(process_tree_is_below(f->proc_fd, getpid(), f->child));
	assert_false(process_tree_is_below(f->proc_fd, 0, getpid()));
	assert_false(process_tree_is_below(f->proc_fd, f->child, 0));
}

static void a_signal_reaches_only_what_descends_from_the_root(void **state)
{
	const struct family *f = *state;
	int status;
	assert_int_equal(process_tree_signal(f->proc_fd, f->child, f->grandchild, SIGKILL), -ESRCH);
	assert_int_equal(process_tree_signal(f->proc_fd, getpid(), f->child, SIGKILL), -ESRCH);
	assert_int_equal(process_tree_signal(f->proc_fd, f->child, getpid(), SIGTERM), 0);
	assert_int_equal(waitpid(f->child, &status, 0), f->child);
	assert_int_equal(WTERMSIG(status), SIGTERM);
}

static void an_orphan_stays_below_the_subreaper_and_a_kill_finds_all(void **state)
{
	const struct family *f = *state;
	assert_int_equal(kill(f->child, SIGKILL), 0);
	assert_int_equal(waitpid(f->child, NULL, 0), f->child);
	assert_true(process_tree_is_below(f->proc_fd, f->grandchild, getpid()));
	assert_int_equal(process_tree_kill(f->proc_fd, getpid()), 1);
	int status;
	assert_int_equal(waitpid(f->grandchild, &status, 0), f->grandchild);
	assert_int_equal(WTERMSIG(status), SIGKILL);
	assert_int_equal(process_tree_kill(f->proc_fd, getpid()), 0);
}

static void a_zombie_is_listed_and_not_killed(void **state)
{
	const struct family *f = *state;
	struct process_tree tree;
	siginfo_t info;
	assert_int_equal(kill(f->child, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)f->child, &info, WEXITED | WNOWAIT), 0);
	assert_true(process_tree_list(f->proc_fd, getpid(), &tree));
	assert_true(has(&tree, f->child));
	assert_int_equal(process_tree_kill(f->proc_fd, getpid()), 1); /* the grandchild */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(descendants_are_listed_and_the_root_is_not, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_process_is_ending_once_it_was_killed, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_process_is_below_its_ancestors_and_nobody_else,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_signal_reaches_only_what_descends_from_the_root,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
		    an_orphan_stays_below_the_subreaper_and_a_kill_finds_all, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_zombie_is_listed_and_not_killed, set_up,
						tear_down),
	};
	return cmocka_run_group_tests(tests, become_subreaper, NULL);
}
