/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/container/notify/notify_relay.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static bool says_ready(const char *text)
{
	return notify_relay_is_ready(text, strlen(text));
}

static void a_line_of_any_message_says_that_the_program_is_ready(void **state)
{
	(void)state;
	assert_true(says_ready("READY=1"));
	assert_true(says_ready("READY=1\n"));
	assert_true(says_ready("\n\nREADY=1"));
	assert_true(says_ready("STATUS=x\nREADY=1\nMAINPID=1"));
	assert_true(says_ready("READY=0\nREADY=1\nREADY=1"));
}

static void no_other_line_does(void **state)
{
	(void)state;
	static const char *const others[] = {
		"",         "\n",        "READY=",    "READY=0",     "READY=10",
		"READY=1 ", " READY=1",  "ready=1",   "READY=1\r\n", "XREADY=1",
		"READY",    "MAINPID=1", "READY=\n1", "READY\n=1",   "STATUS=READY=1",
	};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(says_ready(others[i]));
	assert_false(notify_relay_is_ready("READY=1\0", 8));
	assert_false(notify_relay_is_ready("READY=1\n\0", 9));
	assert_false(notify_relay_is_ready("\0\nREADY=1", 9));
	assert_false(notify_relay_is_ready("READY=12", 6));
}

static void a_message_that_is_too_long_says_nothing(void **state)
{
	(void)state;
	static char text[NOTIFY_RELAY_TEXT_MAX + 1];
	memset(text, '\n', sizeof(text));
	memcpy(text, "READY=1", 7);
	assert_true(notify_relay_is_ready(text, NOTIFY_RELAY_TEXT_MAX));
	assert_false(notify_relay_is_ready(text, NOTIFY_RELAY_TEXT_MAX + 1));
}

static void what_is_sent_has_the_main_process_if_there_is_one(void **state)
{
	(void)state;
	char out[NOTIFY_RELAY_SENT_MAX];
	assert_int_equal(notify_relay_format(0, out), strlen("READY=1"));
	assert_string_equal(out, "READY=1");
	assert_int_equal(notify_relay_format(INT32_MAX, out),
			 strlen("READY=1\nMAINPID=2147483647"));
	assert_string_equal(out, "READY=1\nMAINPID=2147483647");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_of_any_message_says_that_the_program_is_ready),
		cmocka_unit_test(no_other_line_does),
		cmocka_unit_test(a_message_that_is_too_long_says_nothing),
		cmocka_unit_test(what_is_sent_has_the_main_process_if_there_is_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
