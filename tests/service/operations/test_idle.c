/* SPDX-License-Identifier: Apache-2.0 */
/* When a service with --until-idle ends. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/service/server.h"

static void a_service_that_was_never_used_ends_after_the_patience(void **state)
{
	(void)state;
	struct idle idle = { 0 };

	assert_int_equal(idle_tick(&idle, false, 500), IDLE_PATIENCE_MS);
	assert_int_equal(idle_tick(&idle, false, 500 + IDLE_PATIENCE_MS - 1), 1);
	assert_int_equal(idle_tick(&idle, false, 500 + IDLE_PATIENCE_MS), 0);
	assert_int_equal(idle_tick(&idle, false, 500 + 9 * IDLE_PATIENCE_MS), 0);
}

static void each_use_begins_the_patience_again(void **state)
{
	(void)state;
	struct idle idle = { 0 };

	assert_int_equal(idle_tick(&idle, false, 500), IDLE_PATIENCE_MS);
	assert_int_equal(idle_tick(&idle, true, 500 + IDLE_PATIENCE_MS), IDLE_PATIENCE_MS);
	assert_int_equal(idle_tick(&idle, false, 501 + IDLE_PATIENCE_MS), IDLE_PATIENCE_MS - 1);
	assert_int_equal(idle_tick(&idle, false, 500 + 2 * IDLE_PATIENCE_MS), 0);
}

static void a_clock_that_begins_at_zero_is_no_special_case(void **state)
{
	(void)state;
	struct idle idle = { 0 };

	assert_int_equal(idle_tick(&idle, false, 0), IDLE_PATIENCE_MS);
	assert_int_equal(idle_tick(&idle, false, 1 + IDLE_PATIENCE_MS), 0);
}

static void runs_requests_and_sessions_are_uses_and_a_probe_is_none(void **state)
{
	(void)state;

	assert_false(idle_is_used(&(struct idle_uses){ 0 }));
	assert_false(idle_is_used(&(struct idle_uses){ .runs = 1, .own_runs = 1 }));
	assert_true(idle_is_used(&(struct idle_uses){ .runs = 2, .own_runs = 1 }));
	assert_true(idle_is_used(&(struct idle_uses){ .requests = 1 }));
	assert_true(idle_is_used(&(struct idle_uses){ .sessions = 1 }));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_service_that_was_never_used_ends_after_the_patience),
		cmocka_unit_test(each_use_begins_the_patience_again),
		cmocka_unit_test(a_clock_that_begins_at_zero_is_no_special_case),
		cmocka_unit_test(runs_requests_and_sessions_are_uses_and_a_probe_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
