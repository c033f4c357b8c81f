/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of variables in docker's format. */
#include "profiles/plan/env_file.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/base/scope.h"

static const char *const callers[] = { "HOME=/home/me", "HOMES=x", "EMPTY=", NULL };

static void assert_lines(const char *text, size_t size, const char *const *wanted)
{
	auto_arena struct arena a = { 0 };
	struct env_line *lines = NULL;
	struct cj_error err = { 0 };
	size_t count = 0;

	assert_int_equal(env_file_parse(text, size, callers, &a, &lines, &count, &err), 0);
	for (size_t i = 0; i < count; i++) {
		assert_non_null(wanted[i]);
		assert_string_equal(lines[i].text, wanted[i]);
	}
	assert_null(wanted[count]);
}

#define LINES(text, ...)                                                                           \
	assert_lines((text), sizeof(text) - 1, (const char *const[]){ __VA_ARGS__, NULL })

static void a_line_is_a_variable_as_it_stands(void **state)
{
	(void)state;
	LINES("A=1\nB=two words\n", "A=1", "B=two words");
	LINES("A=\"x\"\nB=a=b \nC=", "A=\"x\"", "B=a=b ", "C=");
	LINES("  A=1\n\tB=2\r\n", "A=1", "B=2");
}

static void comments_and_empty_lines_are_no_variables(void **state)
{
	static const char *const none[] = { NULL };
	(void)state;
	LINES("# x=1\n\n  # y\n \t\nA=#1\n", "A=#1");
	assert_lines("", 0, none);
	assert_lines("\n\n\r\n#", 5, none);
}

static void a_name_alone_is_the_callers_own(void **state)
{
	(void)state;
	LINES("HOME\nEMPTY\n", "HOME=/home/me", "EMPTY=");
}

static void assert_refused(const char *text, size_t size, const char *message)
{
	auto_arena struct arena a = { 0 };
	struct env_line *lines = NULL;
	struct cj_error err = { 0 };
	size_t count = 7;

	assert_int_equal(env_file_parse(text, size, callers, &a, &lines, &count, &err), -EINVAL);
	assert_string_equal(err.msg, message);
	assert_int_equal(count, 7);
}

static void a_mistake_is_refused_with_its_line(void **state)
{
	(void)state;
	assert_refused("A=1\n\nNOWHERE\n", 13,
		       "line 3: 'NOWHERE' has no value, and is not set here");
	assert_refused("A=1\nB=\0x\n", 9, "line 2: a NUL byte");
	assert_refused("HOM\n", 4, "line 1: 'HOM' has no value, and is not set here");
}

static void each_line_has_its_number(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct env_line *lines = NULL;
	struct cj_error err = { 0 };
	size_t count = 0;

	assert_int_equal(env_file_parse("#\nA=1\n\nB=2", 10, NULL, &a, &lines, &count, &err), 0);
	assert_int_equal(count, 2);
	assert_int_equal(lines[0].number, 2);
	assert_int_equal(lines[1].number, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_a_variable_as_it_stands),
		cmocka_unit_test(comments_and_empty_lines_are_no_variables),
		cmocka_unit_test(a_name_alone_is_the_callers_own),
		cmocka_unit_test(a_mistake_is_refused_with_its_line),
		cmocka_unit_test(each_line_has_its_number),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
