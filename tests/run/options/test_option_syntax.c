/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/run/options/option_syntax.h"

static void a_name_ends_at_the_equals_sign(void **state)
{
	struct long_option o = { 0 };
	(void)state;

	assert_true(option_split("--memory=64M=x", &o));
	assert_int_equal(o.name_size, strlen("memory"));
	assert_true(option_has_name(&o, "memory"));
	assert_string_equal(o.value, "64M=x");

	assert_true(option_split("--memory", &o));
	assert_true(option_has_name(&o, "memory"));
	assert_null(o.value);

	assert_true(option_split("--memory=", &o));
	assert_string_equal(o.value, "");
}

static void only_two_dashes_and_a_name_are_a_long_option(void **state)
{
	static const char *const others[] = { "", "-", "--", "-m", "memory" };
	struct long_option o;
	(void)state;

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(option_split(others[i], &o));
}

static void a_name_is_never_abbreviated(void **state)
{
	struct long_option o = { 0 };
	(void)state;

	assert_true(option_split("--mem=1", &o));
	assert_false(option_has_name(&o, "memory"));
	assert_true(option_split("--memory-max=1", &o));
	assert_false(option_has_name(&o, "memory"));
}

static void an_attached_value_leaves_the_next_argument(void **state)
{
	static const char *const args[] = { "--next", NULL };
	const char *const *next = args;
	const char *value = NULL;
	struct cj_error err = { 0 };
	(void)state;

	assert_int_equal(option_take_value("1", &next, "--pids", "N", "run", &value, &err), 0);
	assert_string_equal(value, "1");
	assert_ptr_equal(next, args);

	assert_int_equal(option_take_value(NULL, &next, "--pids", "N", "run", &value, &err), 0);
	assert_string_equal(value, "--next");
	assert_ptr_equal(next, args + 1);
}

static void a_missing_value_names_the_option_and_the_help(void **state)
{
	static const char *const args[] = { NULL };
	const char *const *next = args;
	const char *value = NULL;
	struct cj_error err = { 0 };
	(void)state;

	assert_true(option_take_value(NULL, &next, "--pids", "N", "run", &value, &err) < 0);
	assert_string_equal(err.msg, "option '--pids' needs a value (N)");
	assert_string_equal(err.hint, "see 'cejail run --help'");
	assert_null(value);
}

static void an_unknown_option_has_the_nearest_name_or_the_help_as_hint(void **state)
{
	struct cj_error err = { 0 };
	(void)state;

	assert_true(option_reject_unknown("--memroy", "memory", "run", &err) < 0);
	assert_string_equal(err.msg, "unknown option '--memroy'");
	assert_string_equal(err.hint, "did you mean '--memory'?");

	err = (struct cj_error){ 0 };
	assert_true(option_reject_unknown("--xyzzy", NULL, "serve", &err) < 0);
	assert_string_equal(err.hint, "see 'cejail serve --help'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_ends_at_the_equals_sign),
		cmocka_unit_test(only_two_dashes_and_a_name_are_a_long_option),
		cmocka_unit_test(a_name_is_never_abbreviated),
		cmocka_unit_test(an_attached_value_leaves_the_next_argument),
		cmocka_unit_test(a_missing_value_names_the_option_and_the_help),
		cmocka_unit_test(an_unknown_option_has_the_nearest_name_or_the_help_as_hint),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
