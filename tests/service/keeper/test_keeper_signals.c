/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that wait for a program of a session. */
#include "runtime/service/keeper/keeper_signals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static uint64_t join(int first, int second)
{
	struct keeper_signals waiting = { 0 };
	keeper_signals_add(&waiting, keeper_signal_bit(first));
	keeper_signals_add(&waiting, keeper_signal_bit(second));
	return waiting.bits;
}

static void of_stop_and_cont_the_last_one_counts(void **state)
{
	(void)state;
	assert_int_equal(join(SIGSTOP, SIGCONT), keeper_signal_bit(SIGCONT));
	assert_int_equal(join(SIGCONT, SIGSTOP), keeper_signal_bit(SIGSTOP));
	assert_int_equal(join(SIGTERM, SIGCONT),
			 keeper_signal_bit(SIGTERM) | keeper_signal_bit(SIGCONT));
	assert_int_equal(join(SIGSTOP, SIGKILL),
			 keeper_signal_bit(SIGSTOP) | keeper_signal_bit(SIGKILL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_stop_and_cont_the_last_one_counts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
