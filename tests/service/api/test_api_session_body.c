/* SPDX-License-Identifier: Apache-2.0 */
/* The small bodies: a lease, a signal, standard input. */
#include "runtime/service/api/api_parts.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <signal.h>

#include "runtime/base/scope.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct blob blob_of(const char *text)
{
	return (struct blob){ text, strlen(text) };
}

static void a_lease_is_a_duration(void **state)
{
	static const char *const bad[] = { "",
					   "{}",
					   "[]",
					   "10",
					   "{\"lease\": null}",
					   "{\"lease\": \"\"}",
					   "{\"lease\": \"-1s\"}",
					   "{\"lease\": \"1m\", \"idle\": \"1m\"}",
					   "{\"lease\": \"1m\", \"lease\": \"1m\"}",
					   "{\"lease\": \"1m\"} x" };
	auto_arena struct arena a = { 0 };
	struct api_body body = { 0 };
	struct cj_error err = { 0 };
	(void)state;

	assert_int_equal(
	    api_body_read(API_BODY_LEASE, blob_of("{\"lease\": \"10m\"}"), &a, &body, &err), 0);
	assert_int_equal(body.lease_ms, 600000);
	assert_int_equal(
	    api_body_read(API_BODY_LEASE, blob_of("{\"lease\": 1.5}"), &a, &body, &err), 0);
	assert_int_equal(body.lease_ms, 1500);
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(api_body_read(API_BODY_LEASE, blob_of(bad[i]), &a, &body, &err),
				 -EINVAL);
	assert_int_equal(api_body_read(API_BODY_LEASE, (struct blob){ 0 }, &a, &body, &err),
			 -EINVAL);
}

static void a_signal_has_its_name(void **state)
{
	static const char *const bad[] = { "{\"signal\": \"SEGV\"}",
					   "{\"signal\": \"int\"}",
					   "{\"signal\": \"SIGSIGINT\"}",
					   "{\"signal\": \"\"}",
					   "{\"signal\": 2}",
					   "{\"signal\": \"RTMIN\"}",
					   "{}" };
	auto_arena struct arena a = { 0 };
	struct api_body body = { 0 };
	struct cj_error err = { 0 };
	(void)state;

	assert_int_equal(
	    api_body_read(API_BODY_SIGNAL, blob_of("{\"signal\": \"INT\"}"), &a, &body, &err), 0);
	assert_int_equal(body.signo, SIGINT);
	assert_int_equal(
	    api_body_read(API_BODY_SIGNAL, blob_of("{\"signal\": \"SIGKILL\"}"), &a, &body, &err),
	    0);
	assert_int_equal(body.signo, SIGKILL);
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(api_body_read(API_BODY_SIGNAL, blob_of(bad[i]), &a, &body, &err),
				 -EINVAL);
}

static int read_stdin(struct blob text, size_t max, struct arena *a, struct api_body *out,
		      struct cj_error *err)
{
	*out = (struct api_body){ .max = max };
	return api_body_read(API_BODY_STDIN, text, a, out, err);
}

static void input_is_text_or_base64_and_may_be_the_last(void **state)
{
	auto_arena struct arena a = { 0 };
	struct api_body in;
	struct cj_error err = { 0 };
	(void)state;

	assert_int_equal(read_stdin(blob_of("{\"text\": \"a\\u0000b\"}"), 10, &a, &in, &err),
			 -EINVAL); /* a NUL is for base64 */
	assert_int_equal(read_stdin(blob_of("{\"text\": \"abc\"}"), 3, &a, &in, &err), 0);
	assert_int_equal(in.bytes.size, 3);
	assert_memory_equal(in.bytes.bytes, "abc", 3);
	assert_false(in.is_end);
	assert_int_equal(
	    read_stdin(blob_of("{\"base64\": \"AAH/\", \"eof\": true}"), 3, &a, &in, &err), 0);
	assert_memory_equal(in.bytes.bytes, "\0\1\xff", 3);
	assert_true(in.is_end);
	assert_int_equal(read_stdin(blob_of("{\"eof\": true}"), 3, &a, &in, &err), 0);
	assert_int_equal(in.bytes.size, 0);
}

static void bad_input_is_refused(void **state)
{
	static const char *const bad[] = { "{}",
					   "{\"eof\": false}",
					   "{\"text\": \"a\", \"base64\": \"AA==\"}",
					   "{\"base64\": \"?\"}",
					   "{\"text\": {\"base64\": \"AA==\"}}",
					   "{\"text\": 1}",
					   "{\"eof\": 1}" };
	auto_arena struct arena a = { 0 };
	struct api_body in;
	struct cj_error err = { 0 };
	(void)state;

	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(read_stdin(blob_of(bad[i]), 10, &a, &in, &err), -EINVAL);
	assert_int_equal(read_stdin(blob_of("{\"text\": \"abcd\"}"), 3, &a, &in, &err), -EFBIG);
	assert_int_equal(read_stdin(blob_of("{\"base64\": \"AAAAAA==\"}"), 3, &a, &in, &err),
			 -EFBIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lease_is_a_duration),
		cmocka_unit_test(a_signal_has_its_name),
		cmocka_unit_test(input_is_text_or_base64_and_may_be_the_last),
		cmocka_unit_test(bad_input_is_refused),
	};
	return cmocka_run_group_tests_name("api_session_body", tests, NULL, NULL);
}
