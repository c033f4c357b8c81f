/* SPDX-License-Identifier: Apache-2.0 */
/* log: whole lines, one write each, untrusted bytes escaped. */
/* WRAP: write */
#include "runtime/base/log.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static char written[2 * PIPE_BUF];
static size_t written_size;
static int writes;

ssize_t __real_write(int fd, const void *bytes, size_t size);
ssize_t __wrap_write(int fd, const void *bytes, size_t size);
ssize_t __wrap_write(int fd, const void *bytes, size_t size)
{
	if (fd != STDERR_FILENO)
		return __real_write(fd, bytes, size);
	assert_true(size < sizeof(written));
	memcpy(written, bytes, size);
	written[size] = '\0';
	written_size = size;
	writes++;
	errno = EPIPE; /* whatever becomes of it, the caller's errno stays */
	return -1;
}

static int forget(void **state)
{
	(void)state;
	written[0] = '\0';
	written_size = 0;
	writes = 0;
	log_set_level(LOG_NORMAL);
	return 0;
}

static void expect_line(const char *line)
{
	assert_int_equal(writes, line[0] ? 1 : 0);
	assert_string_equal(written, line);
}

static void an_error_is_one_line_with_its_hint(void **state)
{
	struct cj_error err = { 0 };

	(void)!cj_fail(&err, EPERM, "create user namespace");
	log_error(&err);
	expect_line("cejail: create user namespace: Operation not permitted\n");

	(void)forget(state);
	(void)cj_hint(&err, "run cejail doctor");
	log_error(&err);
	expect_line("cejail: create user namespace: Operation not permitted (run cejail doctor)\n");
}

static void a_file_name_can_not_forge_a_line(void **state)
{
	(void)state;

	log_warning("skipped '%s'", "a\ncejail: all is well\x1b[1A\xff");
	expect_line("cejail: warning: skipped 'a\\x0acejail: all is well\\x1b[1A\\xff'\n");
}

static void quiet_leaves_only_errors(void **state)
{
	struct cj_error err = { 0 };

	log_set_level(LOG_QUIET);
	log_warning("w");
	log_note("n");
	log_debug("d");
	expect_line("");
	(void)!cj_reject(&err, "e");
	log_error(&err);
	expect_line("cejail: e\n");
	(void)state;
}

static void details_come_only_when_asked_for(void **state)
{
	(void)state;

	log_debug("id %d", 7);
	expect_line("");
	log_note("note");
	expect_line("cejail: note\n");

	(void)forget(state);
	log_set_level(LOG_VERBOSE);
	log_debug("id %d", 7);
	expect_line("cejail: id 7\n");
}

static void a_long_line_is_cut_and_still_a_line(void **state)
{
	char text[3 * PIPE_BUF];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	log_note("%s", text);
	assert_int_equal(writes, 1);
	assert_true(written_size <= PIPE_BUF);
	assert_string_equal(written + written_size - 6, "x ...\n");

	(void)forget(state);
	memset(text, '\x1b', sizeof(text) - 1); /* four times as long when escaped */
	log_note("%s", text);
	assert_int_equal(writes, 1);
	assert_true(written_size <= PIPE_BUF && written_size > PIPE_BUF - 16);
	assert_string_equal(written + written_size - 9, "\\x1b ...\n");
}

static void the_callers_errno_stays(void **state)
{
	(void)state;

	errno = ENOENT;
	log_note("note");
	assert_int_equal(errno, ENOENT);
}

static void an_unfinished_line_of_others_is_ended_once(void **state)
{
	log_on_fresh_line();
	log_debug("not shown");
	expect_line("");
	log_note("one");
	expect_line("\ncejail: one\n");

	(void)forget(state);
	log_note("two");
	expect_line("cejail: two\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(an_error_is_one_line_with_its_hint, forget),
		cmocka_unit_test_setup(a_file_name_can_not_forge_a_line, forget),
		cmocka_unit_test_setup(quiet_leaves_only_errors, forget),
		cmocka_unit_test_setup(details_come_only_when_asked_for, forget),
		cmocka_unit_test_setup(a_long_line_is_cut_and_still_a_line, forget),
		cmocka_unit_test_setup(the_callers_errno_stays, forget),
		cmocka_unit_test_setup(an_unfinished_line_of_others_is_ended_once, forget),
	};

	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
