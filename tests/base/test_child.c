/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: self_status_masks */
/* What a forked child gives up: each test forks one, and its exit status says what it found. */
#include "runtime/base/child.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "runtime/base/scope.h"
#include "runtime/base/self_status.h"
#include "tests/forked.h"

/* The exit status of a forked child that runs `life`; 0: all was as it should be. */
static int run_child(int (*life)(int fd), int fd)
{
	int wait_status;
	pid_t pid = test_fork();
	if (pid == 0)
		_exit(life(fd));
	assert_int_equal(waitpid(pid, &wait_status, 0), pid);
	return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static bool is_same_file(int a, int b)
{
	struct stat one, other;
	return fstat(a, &one) == 0 && fstat(b, &other) == 0 && one.st_ino == other.st_ino;
}

/* --- descriptors ---------------------------------------------------------------------- */

static int keep_two(int fd)
{
	struct cj_error err = { 0 };
	int fds[] = { fcntl(fd, F_DUPFD, 40), fcntl(fd, F_DUPFD, 20) };
	if (child_keep_only(fds, 2, &err) < 0 || fds[0] != 3 || fds[1] != 4)
		return 1;
	for (int i = 5; i < 64; i++)
		if (is_open(i))
			return 2;
	if (!is_open(0) || !is_open(1) || !is_open(2))
		return 3;
	return (fcntl(3, F_GETFD) & FD_CLOEXEC) && (fcntl(4, F_GETFD) & FD_CLOEXEC) ? 0 : 4;
}

static void only_the_named_descriptors_and_the_streams_stay_open(void **state)
{
	(void)state;
	assert_int_equal(run_child(keep_two, 1), 0);
}

static int keep_crossed(int fd)
{
	struct cj_error err = { 0 };
	int high = fcntl(fd, F_DUPFD, 30), null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (dup2(high, 4) < 0 || dup2(null_fd, 3) < 0)
		return 1;
	int fds[] = { 4, 3 };
	if (child_keep_only(fds, 2, &err) < 0)
		return 2;
	struct stat st;
	if (fstat(3, &st) < 0 || !S_ISFIFO(st.st_mode))
		return 3;
	return fstat(4, &st) == 0 && S_ISCHR(st.st_mode) ? 0 : 4;
}

static void descriptors_may_swap_their_numbers(void **state)
{
	(void)state;
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(run_child(keep_crossed, ends[0]), 0);
	cj_close(&ends[0]);
	cj_close(&ends[1]);
}

static int keep_a_closed_one(int fd)
{
	(void)fd;
	struct cj_error err = { 0 };
	int fds[] = { 1, 999 };
	if (child_keep_only(fds, 2, &err) != -EBADF || !strstr(err.msg, "999"))
		return 1;
	return fds[0] == 1 && fds[1] == 999 && is_open(1) ? 0 : 2;
}

static void a_failure_leaves_the_descriptors_as_they_were(void **state)
{
	(void)state;
	assert_int_equal(run_child(keep_a_closed_one, -1), 0);
}

static int null_streams(int fd)
{
	(void)fd;
	struct cj_error err = { 0 };
	if (child_keep_only(NULL, 0, &err) < 0 || child_null_streams(&err) < 0)
		return 1;
	int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null_fd != CHILD_FIRST_FD)
		return 2; /* something else stayed open, or is missing */
	return is_same_file(0, null_fd) && is_same_file(1, null_fd) && is_same_file(2, null_fd) ? 0
												: 3;
}

static void the_streams_become_dev_null_and_nothing_else_is_open(void **state)
{
	(void)state;
	assert_int_equal(run_child(null_streams, -1), 0);
}

static int null_a_closed_stream(int fd)
{
	(void)fd;
	struct cj_error err = { 0 };
	(void)close(0);
	if (child_null_streams(&err) < 0)
		return 1;
	return is_open(0) && is_same_file(0, 1) && is_same_file(1, 2) ? 0 : 2;
}

static void a_closed_stream_is_open_afterwards(void **state)
{
	(void)state;
	assert_int_equal(run_child(null_a_closed_stream, -1), 0);
}

/* --- signals --------------------------------------------------------------------------- */

static bool has_no_proc;

bool __real_self_status_masks(int proc_fd, struct self_mask *masks, size_t count);
bool __wrap_self_status_masks(int proc_fd, struct self_mask *masks, size_t count);
bool __wrap_self_status_masks(int proc_fd, struct self_mask *masks, size_t count)
{
	return !has_no_proc && __real_self_status_masks(proc_fd, masks, count);
}

static void handle(int signal)
{
	(void)signal;
}

static bool is_default(int signal)
{
	struct sigaction now;
	return sigaction(signal, NULL, &now) == 0 && now.sa_handler == SIG_DFL;
}

static int reset_signals(int fd)
{
	(void)fd;
	struct cj_error err = { 0 };
	sigset_t all;
	sigfillset(&all);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGHUP, handle);
	(void)signal(SIGRTMAX, SIG_IGN);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	child_default_signals();
	if (!is_default(SIGHUP) || !is_default(SIGRTMAX))
		return 3;
	if (child_unblock_signals(&err) < 0)
		return 1;
	(void)raise(SIGPIPE);
	return 2; /* it was ignored, or is blocked */
}

static void an_ignored_and_blocked_signal_ends_the_child_again(void **state)
{
	(void)state;
	for (int round = 0; round < 2; round++) {
		has_no_proc = round == 1;
		assert_int_equal(run_child(reset_signals, -1), 128 + SIGPIPE);
	}
	has_no_proc = false;
}

/* --- the parent ------------------------------------------------------------------------ */

static int ask_to_die(int fd)
{
	struct cj_error err = { 0 };
	int signal = 0;
	if (child_die_with_parent(fd, &err) < 0)
		return err.code == EPIPE ? 42 : 1;
	return prctl(PR_GET_PDEATHSIG, &signal) == 0 && signal == SIGKILL ? 0 : 2;
}

static void the_kernel_is_asked_to_kill_the_child_with_its_parent(void **state)
{
	(void)state;
	int ends[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(run_child(ask_to_die, ends[0]), 0);
	assert_int_equal(run_child(ask_to_die, -1), 0);
	cj_close(&ends[1]);
	assert_int_equal(run_child(ask_to_die, ends[0]), 42); /* the parent's end is closed */
	cj_close(&ends[0]);
}

static int leave_the_terminal(int fd)
{
	(void)fd;
	struct cj_error err = { 0 };
	if (child_start_session(&err) < 0 || getsid(0) != getpid())
		return 1;
	/* A leader of a group can't start another session. */
	return child_start_session(&err) == -EPERM ? 0 : 2;
}

static void the_child_leads_a_session_of_its_own(void **state)
{
	(void)state;
	assert_int_equal(run_child(leave_the_terminal, -1), 0);
}

static int hide(int fd)
{
	(void)fd;
	struct cj_error err = { 0 };
	if (child_become_undumpable(&err) < 0)
		return 1;
	return prctl(PR_GET_DUMPABLE) == 0 ? 0 : 2;
}

static void the_child_can_not_be_traced_by_its_user(void **state)
{
	(void)state;
	assert_int_equal(run_child(hide, -1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_named_descriptors_and_the_streams_stay_open),
		cmocka_unit_test(descriptors_may_swap_their_numbers),
		cmocka_unit_test(a_failure_leaves_the_descriptors_as_they_were),
		cmocka_unit_test(the_streams_become_dev_null_and_nothing_else_is_open),
		cmocka_unit_test(a_closed_stream_is_open_afterwards),
		cmocka_unit_test(an_ignored_and_blocked_signal_ends_the_child_again),
		cmocka_unit_test(the_kernel_is_asked_to_kill_the_child_with_its_parent),
		cmocka_unit_test(the_child_leads_a_session_of_its_own),
		cmocka_unit_test(the_child_can_not_be_traced_by_its_user),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
