/* SPDX-License-Identifier: Apache-2.0 */
/* clock: moments, and the time until them. */
#include "runtime/base/clock.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void no_moment_is_not_the_earlier_one(void **state)
{
	(void)state;
	assert_int_equal(clock_earlier(0, 0), 0);
	assert_int_equal(clock_earlier(7, 0), 7);
	assert_int_equal(clock_earlier(0, 7), 7);
	assert_int_equal(clock_earlier(7, 9), 7);
	assert_int_equal(clock_earlier(9, 7), 7);
}

static void the_time_until_a_moment_suits_poll(void **state)
{
	(void)state;
	assert_int_equal(clock_ms_until(0), -1);
	assert_int_equal(clock_ms_until(1), 0);
	assert_int_equal(clock_ms_until(clock_ms()), 0);
	int left_ms = clock_ms_until(clock_ms() + 1000000);
	assert_true(left_ms > 0 && left_ms <= 1000000);
	assert_int_equal(clock_ms_until(UINT64_MAX), INT_MAX);
}

static void times_are_rfc_3339(void **state)
{
	char text[CLOCK_TEXT_MAX];
	(void)state;

	clock_text(0, text);
	assert_string_equal(text, "1970-01-01T00:00:00.000Z");
	clock_text(1763874000123, text);
	assert_string_equal(text, "2025-11-23T05:00:00.123Z");
	clock_text(-1, text);
	assert_string_equal(text, "1969-12-31T23:59:59.999Z");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_moment_is_not_the_earlier_one),
		cmocka_unit_test(the_time_until_a_moment_suits_poll),
		cmocka_unit_test(times_are_rfc_3339),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
