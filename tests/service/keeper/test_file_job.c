/* SPDX-License-Identifier: Apache-2.0 */
/* A file operation's job and its answer arrive as they were sent. */
#include "runtime/service/keeper/file_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/scope.h"

static void a_job_arrives_as_it_was_sent(void **state)
{
	(void)state;
	for (enum file_op op = FILE_GET; op < FILE_OP_COUNT; op++) {
		auto_arena struct arena arena = { 0 };
		auto_free char *text = NULL;
		size_t size = 0;
		struct cj_error err = { 0 };
		struct file_job got = { 0 };
		const struct file_job sent = { .op = op,
					       .path = "/box/\"a\" \xc3\xa9",
					       .to = "/tmp/\n",
					       .max_bytes = UINT64_MAX,
					       .offset = 7,
					       .depth = 3,
					       .is_executable = true };
		assert_int_equal(file_job_write(&sent, &text, &size, &err), 0);
		assert_int_equal(file_job_read((struct blob){ text, size }, &arena, &got, &err), 0);
		assert_int_equal(got.op, op);
		assert_string_equal(got.path, sent.path);
		assert_true(got.max_bytes == UINT64_MAX);
		assert_true(got.is_executable);
		assert_string_equal(got.to, sent.to);
		assert_int_equal(got.depth, 3);
		assert_int_equal(got.offset, 7);
	}
}

static void an_invalid_job_is_refused(void **state)
{
	(void)state;
	static const char *const bodies[] = {
		"",
		"{}",
		"{}\n",
		"[]\n",
		("{\"op\":\"run\",\"path\":\"/box/a\",\"max_bytes\":0,\"part\":false,"
		 "\"offset\":0,\"executable\":false}\n"),
		"{\"op\":\"get\",\"max_bytes\":0,\"part\":false,\"offset\":0,\"executable\":false}\n",
	};

	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		auto_arena struct arena arena = { 0 };
		struct file_job got = { 0 };
		struct cj_error err = { 0 };
		const struct blob body = { bodies[i], strlen(bodies[i]) };
		assert_int_equal(file_job_read(body, &arena, &got, &err), -EINVAL);
		assert_true(err.msg[0] != '\0');
	}
}

static int read_answer(const char *line, struct arena *a, struct file_answer *out)
{
	struct cj_error err = { 0 };
	return file_answer_read(line, strlen(line), a, out, &err);
}

static void an_answer_has_a_result_or_an_error(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct file_answer got = { 0 };
	uint64_t bytes = 0;

	assert_int_equal(read_answer("{\"type\":\"file\",\"result\":{\"bytes\":3}}", &a, &got), 0);
	assert_true(got.is_ok);
	assert_true(json_get_u64(got.result, "bytes", &bytes));
	assert_int_equal(bytes, 3);
	for (enum file_error e = FILE_NOT_FOUND; e < FILE_ERROR_COUNT; e++) {
		char line[256];
		(void)snprintf(line, sizeof(line),
			       "{\"type\":\"file\",\"error\":{\"code\":\"%s\",\"message\":\"m\"}}",
			       file_error_names[e]);
		assert_int_equal(read_answer(line, &a, &got), 0);
		assert_false(got.is_ok);
		assert_int_equal(got.error, e);
		assert_string_equal(got.message, "m");
	}
	assert_int_equal(read_answer("{\"type\":\"file\"}", &a, &got), 0);
	assert_false(got.is_ok);
	assert_int_equal(got.error, FILE_FAILED);
	assert_true(read_answer("{\"type\":\"result\",\"result\":{}}", &a, &got) < 0);
	assert_true(read_answer("", &a, &got) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_arrives_as_it_was_sent),
		cmocka_unit_test(an_invalid_job_is_refused),
		cmocka_unit_test(an_answer_has_a_result_or_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
