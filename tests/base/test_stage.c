/* SPDX-License-Identifier: Apache-2.0 */
/* The stage loop: whichever row fails, all rows before it are left and the message names it. */
#include "runtime/base/stage.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct jail {
	int held[3];
	int fails_at, is_skipped;
	char order[16];
};

static int take(struct jail *j, int row, struct cj_error *err)
{
	if (j->fails_at == row)
		return cj_fail(err, EIO, "take %d", row);
	j->held[row]++;
	return 0;
}

static void give(struct jail *j, int row)
{
	if (j->held[row] == 0)
		return;
	j->held[row]--;
	size_t used = strlen(j->order);
	j->order[used] = (char)('a' + row);
}

static int enter_a(struct jail *j, struct cj_error *err)
{
	return take(j, 0, err);
}
static int enter_b(struct jail *j, struct cj_error *err)
{
	return take(j, 1, err);
}
static int enter_c(struct jail *j, struct cj_error *err)
{
	return take(j, 2, err);
}
static void leave_a(struct jail *j)
{
	give(j, 0);
}
static void leave_b(struct jail *j)
{
	give(j, 1);
}
static void leave_c(struct jail *j)
{
	give(j, 2);
}
static bool wants_b(const struct jail *j)
{
	return !j->is_skipped;
}

static const struct stage table[] = {
	{ "row a", NULL, enter_a, leave_a },
	{ "row b", wants_b, enter_b, leave_b },
	{ "row c", NULL, enter_c, leave_c },
};
static const char *const names[] = { "row a", "row b", "row c" };

static void every_failing_stage_leaves_nothing(void **state)
{
	(void)state;
	for (int row = 0; row < 3; row++) {
		struct jail j = { .fails_at = row };
		struct cj_error err = { 0 };
		assert_int_equal(stages_enter(&j, table, 3, &err), -EIO);
		for (int i = 0; i < 3; i++)
			assert_int_equal(j.held[i], 0);
		assert_string_equal(err.stage, names[row]);
		assert_ptr_equal(strstr(err.msg, names[row]), err.msg);
	}
}

static void stages_are_left_in_the_opposite_order(void **state)
{
	(void)state;
	struct jail j = { .fails_at = -1 };
	struct cj_error err = { 0 };
	assert_int_equal(stages_enter(&j, table, 3, &err), 0);
	stages_leave(&j, table, 3);
	assert_string_equal(j.order, "cba");
}

static void an_unwanted_stage_is_neither_entered_nor_left(void **state)
{
	(void)state;
	struct jail j = { .fails_at = 1, .is_skipped = 1 };
	struct cj_error err = { 0 };
	assert_int_equal(stages_enter(&j, table, 3, &err), 0);
	assert_int_equal(j.held[1], 0);
	stages_leave(&j, table, 3);
	assert_string_equal(j.order, "ca");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_failing_stage_leaves_nothing),
		cmocka_unit_test(stages_are_left_in_the_opposite_order),
		cmocka_unit_test(an_unwanted_stage_is_neither_entered_nor_left),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
