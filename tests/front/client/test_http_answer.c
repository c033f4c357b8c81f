/* SPDX-License-Identifier: Apache-2.0 */
/* A service's answer is the same however its bytes are cut, and what is none is refused. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/front/client/http_answer.h"

struct body {
	char text[8192];
	size_t size;
};

static int keep(void *context, const char *bytes, size_t size, struct cj_error *err)
{
	struct body *b = context;
	(void)err;
	assert_true(b->size + size < sizeof(b->text));
	memcpy(b->text + b->size, bytes, size);
	b->size += size;
	b->text[b->size] = '\0';
	return 0;
}

static int read_in_pieces(const char *text, size_t piece, struct http_answer *out,
			  struct body *body, struct cj_error *err)
{
	size_t left = strlen(text);

	http_answer_init(out);
	*body = (struct body){ .size = 0 };
	*err = (struct cj_error){ 0 };
	while (left > 0) {
		size_t size = piece < left ? piece : left;
		if (http_answer_feed(out, text, size, keep, body, err) < 0)
			return -err->code;
		text += size;
		left -= size;
	}
	return http_answer_end(out, err);
}

static void assert_answer(const char *text, unsigned status, const char *type, const char *wanted)
{
	for (size_t piece = 1; piece <= strlen(text); piece++) {
		struct http_answer answer;
		struct body body;
		struct cj_error err;
		if (read_in_pieces(text, piece, &answer, &body, &err) < 0)
			fail_msg("%s (pieces of %zu)", err.msg, piece);
		assert_int_equal(answer.status, status);
		assert_string_equal(answer.type, type);
		assert_string_equal(body.text, wanted);
	}
}

static void assert_refused(const char *text, const char *words)
{
	for (size_t piece = 1; piece <= strlen(text); piece += 1 + piece / 4) {
		struct http_answer answer;
		struct body body;
		struct cj_error err;
		assert_true(read_in_pieces(text, piece, &answer, &body, &err) < 0);
		if (!strstr(err.msg, words))
			fail_msg("'%s' lacks '%s'", err.msg, words);
	}
}

static void a_body_has_a_length_or_chunks_or_goes_on_to_the_end(void **state)
{
	(void)state;
	assert_answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"
		      "Content-Type: Application/JSON; charset=x\r\n\r\nhello",
		      200, "application/json", "hello");
	assert_answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		      "3\r\nhel\r\n0A;x=y\r\nlo, world!\r\n0\r\nTrailer: x\r\n\r\n",
		      200, "", "hello, world!");
	assert_answer("HTTP/1.0 503 Busy\r\n\r\nall of it", 503, "", "all of it");
	assert_answer("HTTP/1.1 204 Nothing\r\n\r\n", 204, "", "");
	assert_answer("HTTP/1.1 200 OK\nContent-Length: 0\n\n", 200, "", "");
}

static void any_number_of_chunks_is_an_answer(void **state)
{
	(void)state;
	static char text[8 * HTTP_HEAD_MAX] =
	    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
	static const char chunk[] = "1\r\nx\r\n";
	struct http_answer answer;
	struct body body;
	struct cj_error err;
	size_t used = strlen(text);

	for (size_t i = 0; i < HTTP_HEAD_MAX / 3; i++, used += sizeof(chunk) - 1)
		memcpy(text + used, chunk, sizeof(chunk) - 1);
	memcpy(text + used, "0\r\n\r\n", 6);
	assert_int_equal(read_in_pieces(text, 1000, &answer, &body, &err), 0);
	assert_int_equal(body.size, HTTP_HEAD_MAX / 3);
}

static void an_interim_response_is_skipped(void **state)
{
	(void)state;
	assert_answer("HTTP/1.1 100 Continue\r\nX: y\r\n\r\nHTTP/1.1 413 No\r\n"
		      "content-length:2\r\n\r\nno",
		      413, "", "no");
}

static void bytes_after_an_answer_are_ignored(void **state)
{
	(void)state;
	assert_answer("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 500 more", 200, "",
		      "x");
}

static void retry_after_is_a_number_of_seconds(void **state)
{
	(void)state;
	struct http_answer answer;
	struct body body;
	struct cj_error err;

	assert_int_equal(
	    read_in_pieces("HTTP/1.1 429 No\r\nRetry-After:  17 \r\n\r\n", 7, &answer, &body, &err),
	    0);
	assert_int_equal(answer.retry_after, 17);
	assert_int_equal(
	    read_in_pieces("HTTP/1.1 429 No\r\nRetry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\n\r\n",
			   7, &answer, &body, &err),
	    0);
	assert_int_equal(answer.retry_after, 0);
}

static void an_answer_that_ends_early_is_an_error(void **state)
{
	(void)state;
	const char *const whole =
	    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n0\r\n\r\n";
	char cut[128];

	for (size_t size = 1; size < strlen(whole); size++) {
		(void)snprintf(cut, sizeof(cut), "%.*s", (int)size, whole);
		assert_refused(cut, size < 17 ? "without an answer" : "within the answer");
	}
	assert_refused("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", "within the answer");
}

static void invalid_http_is_refused(void **state)
{
	(void)state;
	assert_refused("SSH-2.0-OpenSSH_9.2\r\n", "status");
	assert_refused("HTTP/1.1 2x0 OK\r\n", "not a number");
	assert_refused("HTTP/1.1 200 OK\r\nno colon\r\n", "colon");
	assert_refused("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n", "Content-Length");
	assert_refused("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n",
		       "Content-Length");
	assert_refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n", "Transfer-Encoding");
	assert_refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
		       "a Content-Length and chunks");
	assert_refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
		       "not sent in chunks");
	assert_refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
		       "not sent in chunks");
	assert_refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
		       "not sent in chunks");
	assert_refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
		       "not sent in chunks");
}

static void the_size_of_the_header_is_limited(void **state)
{
	(void)state;
	static char text[2 * HTTP_HEAD_MAX];
	size_t used = (size_t)snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\n");

	memset(text + used, 'x', HTTP_LINE_MAX);
	assert_refused(text, "too long");
	text[used] = '\0';
	while (used < HTTP_HEAD_MAX)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "X: y\r\n");
	assert_refused(text, "too long");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_body_has_a_length_or_chunks_or_goes_on_to_the_end),
		cmocka_unit_test(any_number_of_chunks_is_an_answer),
		cmocka_unit_test(an_interim_response_is_skipped),
		cmocka_unit_test(bytes_after_an_answer_are_ignored),
		cmocka_unit_test(retry_after_is_a_number_of_seconds),
		cmocka_unit_test(an_answer_that_ends_early_is_an_error),
		cmocka_unit_test(invalid_http_is_refused),
		cmocka_unit_test(the_size_of_the_header_is_limited),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
