/* SPDX-License-Identifier: Apache-2.0 */
/* uplink_exit: what a helper said last. */
#include "netns/uplink/uplink_parts.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>

#include <cmocka.h>

static void expect(const char *said, int code, int status, const char *formatted)
{
	struct uplink_exit w = { .code = code, .status = status };
	char out[400];
	uplink_exit_add_output(&w, said, strlen(said));
	uplink_exit_format(&w, out, sizeof(out));
	assert_string_equal(out, formatted);
}

static void the_last_useful_line_is_kept(void **state)
{
	(void)state;
	expect("", CLD_EXITED, 1, "exit status 1");
	expect("\n\n", CLD_KILLED, SIGKILL, "signal 9");
	expect("one\ntwo", CLD_EXITED, 0, "exit status 0: 'two'");
	expect("one\ntwo\n\n\n", CLD_EXITED, 127, "exit status 127: 'two'");
}

static void useless_lines_of_a_helper_are_skipped(void **state)
{
	(void)state;
	expect("Failed to send 36 bytes to syslog\nno tun\nFailed to send 45 bytes to syslog\n",
	       CLD_EXITED, 1, "exit status 1: 'no tun'");
	expect("Failed to send 36 bytes to syslog\n", CLD_EXITED, 1, "exit status 1");
	expect("child failed(1)\nWARNING: Support for seccomp is experimental\n", CLD_EXITED, 1,
	       "exit status 1: 'child failed(1)'");
}

static void untrusted_output_is_escaped_and_truncated(void **state)
{
	struct uplink_exit w = { .code = CLD_EXITED };
	char out[400];
	(void)state;
	expect("\033[2Jx\r", CLD_EXITED, 0, "exit status 0: '\\x1b[2Jx\\x0d'");
	for (int i = 0; i < 1000; i++)
		uplink_exit_add_output(&w, "\377\0\n'", 1);
	uplink_exit_format(&w, out, sizeof(out));
	assert_in_range(strlen(out), 100, 300);
}

static void the_oldest_query_is_replaced_first(void **state)
{
	struct uplink_exit w = { 0 };
	char many[2 * UPLINK_EXIT_TAIL_MAX];
	(void)state;
	memset(many, 'a', sizeof(many));
	uplink_exit_add_output(&w, many, sizeof(many));
	assert_int_equal(w.size, UPLINK_EXIT_TAIL_MAX);
	uplink_exit_add_output(&w, "end", 3);
	assert_int_equal(w.size, UPLINK_EXIT_TAIL_MAX);
	assert_memory_equal(w.tail + UPLINK_EXIT_TAIL_MAX - 4, "aend", 4);
}

static void a_false_length_is_detected(void **state)
{
	struct uplink_exit w = { .code = CLD_EXITED, .size = SIZE_MAX };
	char out[400];
	(void)state;
	memset(w.tail, 'b', sizeof(w.tail));
	uplink_exit_format(&w, out, sizeof(out));
	assert_in_range(strlen(out), 100, 300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_useful_line_is_kept),
		cmocka_unit_test(useless_lines_of_a_helper_are_skipped),
		cmocka_unit_test(untrusted_output_is_escaped_and_truncated),
		cmocka_unit_test(the_oldest_query_is_replaced_first),
		cmocka_unit_test(a_false_length_is_detected),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
