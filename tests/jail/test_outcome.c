/* SPDX-License-Identifier: Apache-2.0 */
/* The first terminal event wins, every word has a name, every status an exit code. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <signal.h>

#include "runtime/jail/outcome.h"

#define auto_outcome __attribute__((cleanup(outcome_fini)))

static void a_new_outcome_has_no_status(void **state)
{
	(void)state;
	auto_outcome struct outcome o;
	outcome_init(&o, "id-1", 10);
	assert_string_equal(o.id, "id-1");
	assert_false(o.has_status);
	assert_int_equal(o.exit_code, -1);
	assert_int_equal(o.output[0].cap, 10);
	assert_int_equal(o.output[1].cap, 10);
	assert_true(o.started_epoch_ms > 0);
	for (size_t i = 0; i < LAYER_COUNT; i++)
		assert_int_equal(o.layers[i], LAYER_ABSENT);
}

static void the_first_terminal_event_wins(void **state)
{
	(void)state;
	for (enum status first = 0; first < STATUS_COUNT; first++) {
		for (enum status second = 0; second < STATUS_COUNT; second++) {
			auto_outcome struct outcome o;
			outcome_init(&o, "", 0);
			outcome_decide(&o, first);
			outcome_decide(&o, second);
			assert_int_equal(o.status, first);
		}
	}
}

static void an_outcome_without_a_status_is_a_failure_of_cejail(void **state)
{
	(void)state;
	auto_outcome struct outcome o;
	outcome_init(&o, "", 0);
	assert_int_equal(outcome_exit_status(&o), 125);
}

static void every_status_has_its_exit_code(void **state)
{
	(void)state;
	static const struct {
		struct outcome outcome;
		int expected;
	} rows[] = {
		{ { .status = STATUS_EXITED, .exit_code = 0 }, 0 },
		{ { .status = STATUS_EXITED, .exit_code = 1 }, 1 },
		{ { .status = STATUS_EXITED, .exit_code = 255 }, 255 },
		{ { .status = STATUS_EXITED, .exec_errno = ENOENT }, 127 },
		{ { .status = STATUS_EXITED, .exec_errno = EACCES }, 126 },
		{ { .status = STATUS_EXITED, .exec_errno = ENOEXEC }, 126 },
		{ { .status = STATUS_EXITED, .exec_errno = ENOTDIR }, 126 },
		{ { .status = STATUS_SIGNALED, .signal = SIGSEGV }, 139 },
		{ { .status = STATUS_SIGNALED, .signal = SIGKILL }, 137 },
		{ { .status = STATUS_SIGNALED, .signal = 64 }, 192 },
		{ { .status = STATUS_TIMEOUT }, 124 },
		{ { .status = STATUS_CPU_LIMIT, .signal = SIGXCPU }, 124 },
		{ { .status = STATUS_OOM, .signal = SIGKILL }, 137 },
		{ { .status = STATUS_OUTPUT_LIMIT }, 137 },
		{ { .status = STATUS_CANCELLED, .cancel_signal = SIGINT }, 130 },
		{ { .status = STATUS_CANCELLED, .cancel_signal = SIGTERM }, 143 },
		{ { .status = STATUS_CANCELLED, .cancel_signal = SIGHUP }, 129 },
		{ { .status = STATUS_CANCELLED, .cancel_signal = SIGPIPE }, 141 },
		{ { .status = STATUS_CANCELLED }, 141 },
		{ { .status = STATUS_SETUP_ERROR, .exit_code = 3 }, 125 },
	};
	bool seen[STATUS_COUNT] = { false };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct outcome o = rows[i].outcome;
		o.has_status = true;
		seen[o.status] = true;
		assert_int_equal(outcome_exit_status(&o), rows[i].expected);
	}
	for (size_t i = 0; i < STATUS_COUNT; i++)
		assert_true(seen[i]);
}

static void assert_words(const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		assert_non_null(words[i]);
		for (const char *c = words[i]; *c; c++)
			assert_true((*c >= 'a' && *c <= 'z') || *c == '_');
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(words[i], words[k]);
	}
}

static void every_name_in_the_result_exists_once(void **state)
{
	(void)state;
	assert_words(status_names, STATUS_COUNT);
	assert_words(limit_names, LIMIT_COUNT);
	assert_words(limit_enforcer_names, LIMIT_ENFORCER_COUNT);
	assert_words(layer_names, LAYER_COUNT);
	assert_words(layer_state_names, LAYER_STATE_COUNT);
	for (size_t i = 0; i < LIMIT_COUNT; i++)
		assert_non_null(limit_units[i]);
}

static void warnings_are_kept_in_order_and_outlive_their_text(void **state)
{
	(void)state;
	auto_outcome struct outcome o;
	char word[] = "first";
	outcome_init(&o, "", 0);
	outcome_warn(&o, "the %s", word);
	memset(word, 'x', sizeof(word) - 1);
	outcome_warn(&o, "the %d%s", 2, "nd");
	assert_int_equal(o.warnings.count, 2);
	assert_string_equal(o.warnings.items[0], "the first");
	assert_string_equal(o.warnings.items[1], "the 2nd");
}

static void an_id_that_is_too_long_is_cut_not_written_past(void **state)
{
	(void)state;
	auto_outcome struct outcome o;
	outcome_init(&o, "0123456789012345678901234567890123456789", 0);
	assert_int_equal(strlen(o.id), PLAN_ID_MAX - 1);
}

static void fini_leaves_the_null_value(void **state)
{
	(void)state;
	struct outcome o;
	outcome_init(&o, "x", 100);
	assert_int_equal(capture_add(&o.output[0], "abc", 3), 0);
	outcome_warn(&o, "w");
	outcome_fini(&o);
	assert_null(o.output[0].head);
	assert_int_equal(o.warnings.count, 0);
	outcome_fini(&o); /* twice is once */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_outcome_has_no_status),
		cmocka_unit_test(the_first_terminal_event_wins),
		cmocka_unit_test(an_outcome_without_a_status_is_a_failure_of_cejail),
		cmocka_unit_test(every_status_has_its_exit_code),
		cmocka_unit_test(every_name_in_the_result_exists_once),
		cmocka_unit_test(warnings_are_kept_in_order_and_outlive_their_text),
		cmocka_unit_test(an_id_that_is_too_long_is_cut_not_written_past),
		cmocka_unit_test(fini_leaves_the_null_value),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
