/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: libexec_find */
/* libexec_run: what becomes of all that a helper may answer.  A shell plays it. */
#include "runtime/base/files/libexec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <errno.h>
#include <limits.h>

#include "netns/address/name_lookup.h"
#include "tests/forked.h"

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

/* A fork of the test becomes the program; returns its exit status, and what it wrote to 3. */
static int become(const char *path, const char *script, pid_t parent, char *out, size_t max)
{
	const char *const argv[] = { path, "-c", script, NULL };
	char *const environment[] = { (char *)"GIVEN=yes", NULL };
	int ends[2], status = 0;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	pid_t pid = test_fork();
	if (pid == 0) {
		struct cj_error err = { 0 };
		int fds[] = { ends[1], STDERR_FILENO };
		const struct libexec_program program = { path, argv, environment, fds, 2, parent };
		(void)libexec_become(&program, &err);
		(void)dprintf(fds[0], "%s (%s)", err.msg, err.hint);
		_exit(9);
	}
	close(ends[1]);
	ssize_t size = recv(ends[0], out, max - 1, MSG_WAITALL);
	out[size > 0 ? size : 0] = '\0';
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status);
}

static void a_helper_that_stays_has_its_own_descriptors_environment_and_session(void **state)
{
	(void)state;
	char out[4096];
	static const char script[] =
	    "read -r pid rest </proc/self/stat; set -- $rest; [ \"$5\" = $$ ] && echo session >&3;"
	    "cd /proc/$$/fd; echo * >&3; readlink 0 >&3; echo $GIVEN $HOME $SECRET. >&3";
	assert_int_equal(setenv("SECRET", "kept", 1), 0);
	assert_int_equal(dup2(STDERR_FILENO, 77), 77);
	assert_int_equal(become("/bin/sh", script, getpid(), out, sizeof(out)), 0);
	/* 5 is the directory that is being read */
	assert_string_equal(out, "session\n0 1 2 3 4 5\n/dev/null\nyes .\n");
	close(77);
}

static void a_helper_that_cannot_stay_says_why(void **state)
{
	(void)state;
	char out[4096];
	assert_int_equal(become("/nonexistent/helper", "", getpid(), out, sizeof(out)), 9);
	assert_string_equal(out, "execute '/nonexistent/helper': No such file or directory "
				 "(install cejail anew: this is a part of it)");
	assert_int_equal(become("/bin/sh", "", getpid() + 1, out, sizeof(out)), 9);
	assert_non_null(strstr(out, "find the parent alive"));
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
		cmocka_unit_test(a_helper_that_cannot_stay_says_why),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
