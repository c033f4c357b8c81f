/* SPDX-License-Identifier: Apache-2.0 */
/* A burst, then a number per millisecond, at times that the test makes up. */
#include "runtime/kernel/seccomp/filter_parts.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void a_burst_is_free_and_then_there_is_a_pause(void **state)
{
	(void)state;
	struct rate r;
	rate_init(&r, 10, 500, 1000);
	for (int i = 0; i < 500; i++) {
		assert_true(rate_refill(&r, 1000));
		assert_int_equal(rate_paused_until_ms(&r), 0);
		rate_take(&r, 1);
	}
	assert_false(rate_refill(&r, 1000));
	assert_int_equal(rate_paused_until_ms(&r), 1000 + RATE_PAUSE_MS);
	assert_false(rate_refill(&r, 1000 + RATE_PAUSE_MS - 1));
	assert_true(rate_refill(&r, 1000 + RATE_PAUSE_MS));
	assert_int_equal(r.left, 10 * RATE_PAUSE_MS);
}

/* How many are done in `ms` by a flood that never waits, looking every `step` ms. */
static uint64_t flood(struct rate *r, uint64_t ms, uint64_t step)
{
	uint64_t done = 0;
	for (uint64_t now = r->since_ms, end = now + ms; now < end; now += step) {
		while (rate_refill(r, now)) {
			rate_take(r, 1);
			done++;
		}
	}
	return done;
}

static void a_flood_gets_the_burst_and_the_rate(void **state)
{
	(void)state;
	static const uint64_t steps[] = { 1, 3, 7, 10, 11, 50, 400, 5000 };
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct rate r;
		rate_init(&r, 10, 5000, 77);
		uint64_t done = flood(&r, 20000, steps[i]);
		assert_in_range(done, 20000, 5000 + 10 * 20000);
	}
	struct rate r;
	rate_init(&r, 10, 5000, 77);
	assert_in_range(flood(&r, 20000, 1), 5000 + 10 * 19900, 5000 + 10 * 20000);
}

static void idle_time_earns_no_more_than_a_burst(void **state)
{
	(void)state;
	struct rate r;
	rate_init(&r, 10, 5000, 0);
	rate_take(&r, 5000);
	assert_true(rate_refill(&r, UINT64_MAX / 2));
	assert_int_equal(r.left, 5000);
}

static void a_high_price_ends_in_a_pause_not_in_a_wrap(void **state)
{
	(void)state;
	struct rate r;
	rate_init(&r, 10, 50, 0);
	rate_take(&r, 45);
	assert_int_equal(r.left, 5);
	rate_take(&r, 10);
	assert_int_equal(r.left, 0);
	rate_take(&r, 10);
	assert_int_equal(r.left, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_burst_is_free_and_then_there_is_a_pause),
		cmocka_unit_test(a_flood_gets_the_burst_and_the_rate),
		cmocka_unit_test(idle_time_earns_no_more_than_a_burst),
		cmocka_unit_test(a_high_price_ends_in_a_pause_not_in_a_wrap),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
