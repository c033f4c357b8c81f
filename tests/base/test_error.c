/* SPDX-License-Identifier: Apache-2.0 */
/* error: what failed is said once, outermost context first, and never overflows. */
#include "runtime/base/error.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void a_failed_call_says_its_errno(void **state)
{
	struct cj_error err = { 0 };
	(void)state;

	assert_int_equal(cj_fail(&err, ENOENT, "open '%s'", "x.py"), -ENOENT);
	assert_int_equal(err.code, ENOENT);
	assert_string_equal(err.msg, "open 'x.py': No such file or directory");
	assert_string_equal(err.hint, "");
	assert_string_equal(err.stage, "");
}

static void too_many_open_files_have_one_remedy_whatever_the_call_was(void **state)
{
	(void)state;
	struct cj_error err;
	assert_int_equal(cj_fail(&err, EMFILE, "open 'x'"), -EMFILE);
	assert_string_equal(err.hint, "raise the limit of open files: ulimit -n");
	assert_int_equal(cj_hint(&err, "remove it"), -EMFILE);
	assert_string_equal(err.hint, "raise the limit of open files: ulimit -n");
}

static void a_refused_input_is_invalid(void **state)
{
	struct cj_error err = { 0 };
	(void)state;

	assert_int_equal(cj_reject(&err, "'%d' is too many", 7), -EINVAL);
	assert_int_equal(err.code, EINVAL);
	assert_string_equal(err.msg, "'7' is too many");
}

static void context_goes_before_and_keeps_the_rest(void **state)
{
	struct cj_error err = { 0 };
	(void)state;

	(void)!cj_fail(&err, EPERM, "mount '/proc'");
	assert_int_equal(cj_hint(&err, "see cejail doctor"), -EPERM);
	assert_int_equal(cj_stage(&err, "root"), -EPERM);
	assert_int_equal(cj_wrap(&err, "build the %s", "tree"), -EPERM);
	assert_string_equal(err.msg, "build the tree: mount '/proc': Operation not permitted");
	char text[CJ_ERROR_TEXT_MAX];
	assert_string_equal(cj_error_text(&err, text),
			    "build the tree: mount '/proc': Operation not permitted "
			    "(see cejail doctor)");
	assert_string_equal(err.hint, "see cejail doctor");
	err.hint[0] = '\0';
	assert_string_equal(cj_error_text(&err, text), err.msg);
	assert_string_equal(err.stage, "root");
}

static void the_first_hint_and_the_first_stage_stay(void **state)
{
	struct cj_error err = { 0 };
	(void)state;

	(void)!cj_reject(&err, "no");
	(void)cj_hint(&err, "near");
	(void)cj_hint(&err, "far");
	(void)cj_stage(&err, "inner");
	(void)cj_stage(&err, "outer");
	assert_string_equal(err.hint, "near");
	assert_string_equal(err.stage, "inner");
}

static void a_hint_for_one_code_is_for_no_other(void **state)
{
	struct cj_error err = { 0 };
	(void)state;

	(void)!cj_fail(&err, ENOENT, "open");
	assert_int_equal(cj_hint_for(&err, EACCES, "become root"), -ENOENT);
	assert_string_equal(err.hint, "");
	assert_int_equal(cj_hint_for(&err, ENOENT, "100% missing"), -ENOENT);
	assert_string_equal(err.hint, "100% missing");
}

static void a_new_failure_forgets_the_old_one(void **state)
{
	struct cj_error err = { 0 };
	(void)state;

	(void)!cj_reject(&err, "no");
	(void)cj_hint(&err, "old");
	(void)cj_stage(&err, "old");
	(void)!cj_fail(&err, EIO, "read");
	assert_string_equal(err.hint, "");
	assert_string_equal(err.stage, "");
}

static void long_messages_are_cut_not_overflowed(void **state)
{
	char text[4 * CJ_ERROR_MSG_MAX];
	struct cj_error err = { 0 };
	(void)state;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(cj_fail(&err, EIO, "%s", text), -EIO);
	assert_int_equal(strlen(err.msg), CJ_ERROR_MSG_MAX - 1);
	assert_int_equal(cj_wrap(&err, "%s", text), -EIO);
	assert_int_equal(strlen(err.msg), CJ_ERROR_MSG_MAX - 1);
	assert_int_equal(cj_reject(&err, "%s", text), -EINVAL);
	assert_int_equal(strlen(err.msg), CJ_ERROR_MSG_MAX - 1);
	(void)cj_hint(&err, "%s", text);
	assert_int_equal(strlen(err.hint), CJ_ERROR_HINT_MAX - 1);
	(void)cj_stage(&err, text);
	assert_int_equal(strlen(err.stage), CJ_ERROR_STAGE_MAX - 1);
}

static void an_error_of_another_process_is_terminated_and_never_empty(void **state)
{
	(void)state;
	struct cj_error err = { 0 }, theirs;
	memset(&theirs, 'x', sizeof(theirs));
	theirs.code = ENOSPC;

	assert_int_equal(cj_adopt(&err, &theirs, "init"), -ENOSPC);
	assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
	assert_int_equal(strlen(err.hint), sizeof(err.hint) - 1);
	assert_int_equal(strlen(err.stage), sizeof(err.stage) - 1);

	theirs = (struct cj_error){ .code = -1 };
	assert_int_equal(cj_adopt(&err, &theirs, "init"), -EPROTO);
	assert_string_equal(err.msg, "init failed");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failed_call_says_its_errno),
		cmocka_unit_test(too_many_open_files_have_one_remedy_whatever_the_call_was),
		cmocka_unit_test(a_refused_input_is_invalid),
		cmocka_unit_test(context_goes_before_and_keeps_the_rest),
		cmocka_unit_test(the_first_hint_and_the_first_stage_stay),
		cmocka_unit_test(a_hint_for_one_code_is_for_no_other),
		cmocka_unit_test(a_new_failure_forgets_the_old_one),
		cmocka_unit_test(long_messages_are_cut_not_overflowed),
		cmocka_unit_test(an_error_of_another_process_is_terminated_and_never_empty),
	};

	return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
