/* SPDX-License-Identifier: Apache-2.0 */
/* The first answer that fits is given; a file that could not be meant is refused with its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "runtime/service/fake/fake_file.h"

#define auto_file_of_answers __attribute__((cleanup(file_fini)))

static void file_fini(struct fake_file *f)
{
	arena_fini(&f->arena);
}

static struct fake_file file_of(const char *text)
{
	struct fake_file f = { .count = 0 };
	struct cj_error err = { 0 };
	if (fake_file_read(&f, "f", text, strlen(text), &err) < 0)
		fail_msg("%s", err.msg);
	return f;
}

static const struct fake_answer *answer_to(const struct fake_file *f, const char *profile,
					   const char *code)
{
	const struct request r = { .profile = profile,
				   .has_code = code != NULL,
				   .code = { code, code ? strlen(code) : 0 } };
	return fake_file_find(f, &r);
}

static void the_first_answer_whose_conditions_hold_is_given(void **state)
{
	(void)state;
	auto_file_of_answers struct fake_file f = file_of(
	    "{\"answers\": [{\"when\": {\"profile\": \"node\"}, \"result\": {\"exit_code\": 1}},"
	    " {\"when\": {\"code_contains\": \"two\"}, \"result\": {\"exit_code\": 2}},"
	    " {\"when\": {\"code_sha256\": "
	    "\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"},"
	    "  \"result\": {\"exit_code\": 3}}]}");

	assert_int_equal(answer_to(&f, "node", "two")->exit_code, 1);
	assert_int_equal(answer_to(&f, "node", NULL)->exit_code, 1);
	assert_int_equal(answer_to(&f, "python", "one two three")->exit_code, 2);
	assert_int_equal(answer_to(&f, "python", "abc")->exit_code, 3);
	assert_int_equal(answer_to(&f, "python", "abd")->exit_code, 0);
	assert_int_equal(answer_to(&f, "python", NULL)->exit_code, 0);
	assert_int_equal(answer_to(&f, "python", "")->status, STATUS_EXITED);
}

static void an_answer_has_what_the_file_says(void **state)
{
	(void)state;
	auto_file_of_answers struct fake_file f = file_of(
	    "{\"answers\": [{\"when\": {\"profile\": \"a\"}, \"delay\": \"1500ms\","
	    " \"events\": [{\"stdout\": \"x\"}, {\"after\": 2, \"stderr\": {\"base64\": \"AA==\"}},"
	    "  {\"denied\": \"mount\"}],"
	    " \"result\": {\"status\": \"signaled\", \"signal\": 9, \"warnings\": [\"w\"],"
	    "  \"value\": {\"v\": 1},"
	    "  \"artifacts\": [{\"path\": \"d/a.png\", \"content\": \"abc\"}]}},"
	    " {\"error\": {\"code\": \"queue_full\", \"message\": \"m\", \"hint\": \"h\","
	    "  \"retry_after\": \"3s\"}}]}");
	const struct fake_answer *a = answer_to(&f, "a", NULL);

	assert_int_equal(a->delay_ms, 1500);
	assert_int_equal(a->nevents, 3);
	assert_int_equal(a->events[1].kind, FAKE_STDERR);
	assert_int_equal(a->events[1].after_ms, 2000);
	assert_int_equal(a->events[1].bytes.size, 1);
	assert_int_equal(a->events[1].bytes.bytes[0], 0);
	assert_string_equal(a->events[2].bytes.bytes, "mount");
	assert_int_equal(a->status, STATUS_SIGNALED);
	assert_int_equal(a->signal, 9);
	assert_string_equal(a->warnings.items[0], "w");
	assert_string_equal(json_get(a->value, "v")->text, "1");
	assert_int_equal(a->nartifacts, 1);
	assert_string_equal(a->artifacts[0].type, "text/plain");
	assert_string_equal(a->artifacts[0].sha256,
			    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");

	a = answer_to(&f, "b", NULL);
	assert_true(a->is_refusal);
	assert_int_equal(a->code, API_QUEUE_FULL);
	assert_int_equal(a->retry_after_ms, 3000);
}

static void an_inconsistent_file_is_refused_with_its_place(void **state)
{
	(void)state;
	static const char *const rows[][2] = {
		{ "[]", "f:1:1: the file must be an object, not an array" },
		{ "{}", "f:1:1: answers is missing" },
		{ "{\"answer\": []}", "f:1:2: unknown key 'answer'" },
		{ "{\"answers\": [{\"resutl\": {}}]}", "f:1:15: unknown key 'answers.resutl'" },
		{ "{\"answers\": [{\"result\": {\"status\": \"ok\"}}]}",
		  "f:1:36: answers.result.status: there is no 'ok'" },
		{ "{\"answers\": [{\"result\": {\"status\": \"signaled\"}}]}",
		  "f:1:14: \"signal\" and the status 'signaled' belong together" },
		{ "{\"answers\": [{\"result\": {\"status\": \"setup_error\"}}]}",
		  "f:1:14: \"message\" and the status 'setup_error' belong together" },
		{ "{\"answers\": [{\"error\": {\"hint\": \"h\"}}]}",
		  "f:1:24: answers.error.code is missing" },
		{ "{\"answers\": [{\"error\": {\"code\": \"nope\"}}]}",
		  "f:1:33: answers.error.code: there is no 'nope'" },
		{ "{\"answers\": [{\"error\": {\"code\": \"internal\"}, \"result\": {}}]}",
		  "f:1:14: an answer with an error has neither result nor events" },
		{ "{\"answers\": [{\"events\": [{\"after\": \"1s\"}]}]}",
		  "f:1:26: an event is one of \"stdout\", \"stderr\" and \"denied\"" },
		{ "{\"answers\": [{\"events\": [{\"stdout\": {\"base64\": \"!\"}}]}]}",
		  "f:1:48: answers.events.stdout: this is not base64" },
		{ "{\"answers\": [{\"when\": {\"code_sha256\": \"ABC\"}}]}",
		  "f:1:39: answers.when.code_sha256: 'ABC' is not 64 digits, 0-9 and a-f" },
		{ "{\"answers\": [{\"delay\": \"soon\"}]}", NULL },
		{ "{\"answers\": [{\"result\": {\"exit_code\": 256}}]}", NULL },
		{ "{\"answers\": [{\"result\": {\"artifacts\": [{\"path\": \"a\"}]}}]}",
		  "f:1:40: answers.result.artifacts.content is missing" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_file_of_answers struct fake_file f = { .count = 0 };
		struct cj_error err = { 0 };
		assert_true(fake_file_read(&f, "f", rows[i][0], strlen(rows[i][0]), &err) < 0);
		if (rows[i][1])
			assert_string_equal(err.msg, rows[i][1]);
		else
			assert_non_null(strstr(err.msg, "f:1:"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_answer_whose_conditions_hold_is_given),
		cmocka_unit_test(an_answer_has_what_the_file_says),
		cmocka_unit_test(an_inconsistent_file_is_refused_with_its_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
