/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/container/container/container.h"

static void names_and_numbers_are_signals(void **state)
{
	static const struct {
		const char *text;
		int number;
	} cases[] = {
		{ "9", SIGKILL },       { "15", SIGTERM },
		{ "64", 64 },           { "0", 0 },
		{ "KILL", SIGKILL },    { "SIGKILL", SIGKILL },
		{ "sigkill", SIGKILL }, { "Term", SIGTERM },
		{ "WINCH", SIGWINCH },  { "RTMIN", 34 },
		{ "RTMIN+3", 37 },      { "SIGRTMAX-1", 63 },
		{ "RTMAX", 64 },
	};
	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cj_error err = { 0 };
		int number = -1;
		assert_int_equal(container_signal_parse(cases[i].text, &number, &err), 0);
		assert_int_equal(number, cases[i].number);
	}
}

static void nothing_else_is_a_signal(void **state)
{
	static const char *const texts[] = { "",        "00x",    "-9",         "+9",
					     "65",      "9 ",     "9x",         "SIG",
					     "SIG9",    "NONE",   "RTMIN-1",    "RTMIN+31",
					     "RTMAX+1", "RTMIN+", "99999999999" };
	(void)state;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct cj_error err = { 0 };
		int number = -1;
		assert_int_equal(container_signal_parse(texts[i], &number, &err), -EINVAL);
		assert_int_equal(number, -1);
		assert_non_null(strstr(err.msg, "unknown signal"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_numbers_are_signals),
		cmocka_unit_test(nothing_else_is_a_signal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
