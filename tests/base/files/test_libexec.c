/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: libexec_find getppid */
/* libexec: what becomes of all that a helper may answer, and how one that stays begins.  A shell
 * plays it. */
#include "runtime/base/files/libexec.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cmocka.h>
#include <limits.h>

#include "netns/address/name_lookup.h"

static const char *helper_path;

int __wrap_libexec_find(const char *name, char *out, struct cj_error *err);
int __wrap_libexec_find(const char *name, char *out, struct cj_error *err)
{
	(void)name;
	if (!helper_path)
		return cj_fail(err, ENAMETOOLONG, "find the helper");
	(void)snprintf(out, PATH_MAX, "%s", helper_path);
	return 0;
}

static ssize_t run(const char *script, char *answer, size_t max, struct cj_error *err)
{
	const char *const args[] = { "-c", script, NULL };
	const struct libexec_call call = {
		.name = "helper",
		.what = "the helper",
		.args = args,
		.answer = answer,
		.answer_max = max,
	};
	*err = (struct cj_error){ 0 };
	helper_path = "/bin/sh";
	ssize_t size = libexec_run(&call, err);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* it is reaped */
	return size;
}

static void an_answer_up_to_the_limit_is_taken(void **state)
{
	(void)state;
	char answer[8] = { 0 };
	struct cj_error err;
	assert_int_equal(run("printf 12345678", answer, sizeof(answer), &err), 8);
	assert_memory_equal(answer, "12345678", 8);
	assert_int_equal(run("printf 12; sleep 0.05; printf 34", answer, sizeof(answer), &err), 4);
	assert_memory_equal(answer, "1234", 4);
	assert_int_equal(run("exit 0", answer, sizeof(answer), &err), 0);
}

static void a_longer_answer_is_refused_and_not_waited_for(void **state)
{
	(void)state;
	char answer[8] = "before";
	struct cj_error err;
	assert_int_equal(run("printf 123456789", answer, sizeof(answer), &err), -EPROTO);
	assert_int_equal(run("yes", answer, sizeof(answer), &err), -EPROTO);
	assert_string_equal(err.msg, "the helper ended early");
	assert_string_equal(answer, "before");
}

static void an_answer_with_a_failure_is_none(void **state)
{
	(void)state;
	char answer[8] = "before";
	struct cj_error err;
	assert_int_equal(run("printf 1234; exit 1", answer, sizeof(answer), &err), -EPROTO);
	assert_int_equal(run("printf 1234; kill -KILL $$", answer, sizeof(answer), &err), -EPROTO);
	assert_int_equal(run("printf 1234; kill -ALRM $$", answer, sizeof(answer), &err),
			 -ETIMEDOUT);
	assert_string_equal(err.msg, "the helper didn't answer in time");
	assert_string_equal(answer, "before");
}

static void without_the_helper_no_name_has_an_address(void **state)
{
	(void)state;
	static struct ip found[NAME_ADDRESSES_MAX];
	size_t count = 7;
	struct cj_error err;
	helper_path = NULL;
	assert_int_equal(name_ask("public.example", found, &count, &err), -ENAMETOOLONG);
	helper_path = "/nonexistent/name-helper";
	assert_int_equal(name_ask("public.example", found, &count, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "/nonexistent/name-helper"));
	helper_path = "/bin/false";
	assert_int_equal(name_ask("public.example", found, &count, &err), -EPROTO);
	assert_string_equal(err.msg, "the helper for names ended early");
	assert_int_equal(count, 7);
}

/* --- a helper that stays ---------------------------------------------------------------------- */

static bool has_lost_parent;

pid_t __real_getppid(void);
pid_t __wrap_getppid(void);
pid_t __wrap_getppid(void)
{
	return has_lost_parent ? 1 : __real_getppid();
}

/* Starts it with a socket and stderr; fills out with what it wrote to the socket.  Returns its
 * exit status, or why it could not be started. */
static int start(const char *path, const char *script, char *out, size_t max, struct cj_error *err)
{
	const char *const args[] = { "-c", script, NULL };
	char *const environment[] = { (char *)"GIVEN=yes", NULL };
	int ends[2], status = 0, pidfd = -1;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	const int fds[] = { ends[1], STDERR_FILENO };
	const struct libexec_program program = { "helper", args, environment, fds, 2, false };
	*err = (struct cj_error){ 0 };
	helper_path = path;
	pid_t pid = libexec_start(&program, &pidfd, err);
	assert_int_equal(fds[0], ends[1]);
	close(ends[1]);
	ssize_t size = recv(ends[0], out, max - 1, MSG_WAITALL);
	out[size > 0 ? size : 0] = '\0';
	close(ends[0]);
	if (pid < 0) {
		assert_int_equal(pidfd, -1);
		assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* none is left */
		return pid;
	}
	assert_true(fcntl(pidfd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(pidfd);
	return WEXITSTATUS(status);
}

static void a_helper_that_stays_has_its_own_descriptors_environment_and_session(void **state)
{
	(void)state;
	char out[4096];
	struct cj_error err;
	static const char script[] =
	    "read -r pid rest </proc/self/stat; set -- $rest; [ \"$5\" = $$ ] && echo session >&3;"
	    "cd /proc/$$/fd; echo * >&3; readlink 0 >&3; echo $GIVEN $HOME $SECRET. >&3";
	assert_int_equal(setenv("SECRET", "kept", 1), 0);
	assert_int_equal(dup2(STDERR_FILENO, 77), 77);
	assert_int_equal(start("/bin/sh", script, out, sizeof(out), &err), 0);
	/* 5 is the directory that is being read */
	assert_string_equal(out, "session\n0 1 2 3 4 5\n/dev/null\nyes .\n");
	close(77);
}

static void a_helper_that_cannot_be_started_says_why(void **state)
{
	(void)state;
	char out[64];
	struct cj_error err;
	assert_int_equal(start("/nonexistent/helper", "", out, sizeof(out), &err), -ENOENT);
	assert_string_equal(err.msg, "execute '/nonexistent/helper': No such file or directory");
	assert_string_equal(err.hint, "install cejail anew: this is a part of it");
	assert_int_equal(start("/dev/null", "", out, sizeof(out), &err), -EACCES);
	has_lost_parent = true;
	assert_int_equal(start("/bin/sh", "", out, sizeof(out), &err), -EPIPE);
	has_lost_parent = false;
	assert_non_null(strstr(err.msg, "find the parent alive"));
	assert_int_equal(start(NULL, "", out, sizeof(out), &err), -ENAMETOOLONG);
	assert_int_equal(start("/bin/sh", "exit 7", out, sizeof(out), &err), 7);
}

static unsigned handled;

static void handle(int signal)
{
	(void)signal;
	handled++;
}

/* The new process shares the caller's memory until it is the program. */
static void the_start_of_a_helper_changes_nothing_of_the_caller(void **state)
{
	(void)state;
	char out[4096];
	struct cj_error err;
	sigset_t blocked, now;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	assert_int_equal(sigprocmask(SIG_SETMASK, &blocked, NULL), 0);
	assert_true(signal(SIGUSR2, handle) != SIG_ERR);
	assert_int_equal(start("/bin/sh", "exec cat /proc/self/status >&3", out, sizeof(out), &err),
			 0);
	static const char *const none[] = { "SigBlk:", "SigIgn:", "SigCgt:" };
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		const char *line = strstr(out, none[i]);
		assert_non_null(line);
		/* glibc lets nobody change its own two, 32 and 33 */
		assert_int_equal(strtoull(line + 7, NULL, 16) & ~(UINT64_C(3) << 31), 0);
	}
	assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &now), 0);
	assert_true(sigismember(&now, SIGUSR1) && !sigismember(&now, SIGUSR2));
	assert_int_equal(raise(SIGUSR2), 0);
	assert_int_equal(handled, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_up_to_the_limit_is_taken),
		cmocka_unit_test(a_longer_answer_is_refused_and_not_waited_for),
		cmocka_unit_test(an_answer_with_a_failure_is_none),
		cmocka_unit_test(without_the_helper_no_name_has_an_address),
		cmocka_unit_test(
		    a_helper_that_stays_has_its_own_descriptors_environment_and_session),
		cmocka_unit_test(a_helper_that_cannot_be_started_says_why),
		cmocka_unit_test(the_start_of_a_helper_changes_nothing_of_the_caller),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
