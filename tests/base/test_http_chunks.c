/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies in chunks, in whatever pieces they come. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/base/http_chunks.h"

struct body {
	char text[64];
	size_t size, rest;
	bool has_ended;
};

/* Each piece of `step` bytes. */
static int read_chunks(const char *text, size_t size, size_t step, struct body *out)
{
	struct http_chunks c = { 0 };
	struct cj_error err = { 0 };

	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < size && c.state != CHUNK_END; i += step) {
		struct blob in = { text + i, step < size - i ? step : size - i }, part;
		while (in.size > 0 && c.state != CHUNK_END) {
			if (http_chunks_next(&c, &in, &part, &err) < 0)
				return -err.code;
			if (part.size > 0)
				memcpy(out->text + out->size, part.bytes, part.size);
			out->size += part.size;
		}
		out->rest = size - i - (step < size - i ? step : size - i) + in.size;
	}
	out->has_ended = c.state == CHUNK_END;
	return 0;
}

static void chunks_are_put_together(void **state)
{
	static const char text[] =
	    "3\r\nabc\r\n00A;x=\"y\"\r\n0123456789\r\n0;z\r\nT: u\r\nV:\r\n\r\nnext";
	(void)state;

	for (size_t step = 1; step < sizeof(text); step++) {
		struct body body;
		assert_int_equal(read_chunks(text, sizeof(text) - 1, step, &body), 0);
		assert_true(body.has_ended);
		assert_string_equal(body.text, "abc0123456789");
		assert_int_equal(body.rest, strlen("next"));
	}
}

static void bytes_that_are_not_chunks_are_refused(void **state)
{
	static const char *const rows[] = {
		"\r\n",
		"x\r\n",
		"-1\r\n",
		"0x1\r\n",
		" 1\r\n",
		"1 \r\n",
		"1\n",
		"1\ra",
		"1\r\nab",
		"1\r\na\n",
		"1\r\na\rb",
		"1;a\nb",
		"1;\x01",
		"0\r\n\n",
		"0\r\na\n",
		"0\r\n\ra",
		"0\r\na\rb",
		"1234567890123456\r\n",
		"1\r\na\r\n\r\n",
	};
	(void)state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct body body;
		if (read_chunks(rows[i], strlen(rows[i]), 1, &body) != -EINVAL)
			fail_msg("row %zu is taken", i);
	}
}

static void a_body_that_breaks_off_has_not_ended(void **state)
{
	static const char text[] = "2\r\nab\r\n0\r\n\r\n";
	(void)state;

	for (size_t size = 0; size < sizeof(text) - 1; size++) {
		struct body body;
		assert_int_equal(read_chunks(text, size, 1, &body), 0);
		assert_false(body.has_ended);
	}
}

static void extensions_and_trailers_have_a_cap(void **state)
{
	static char text[HTTP_CHUNKS_REST_MAX + 16] = "1;";
	struct body body;
	(void)state;

	memset(text + 2, 'x', HTTP_CHUNKS_REST_MAX);
	assert_int_equal(read_chunks(text, HTTP_CHUNKS_REST_MAX + 2, 7, &body), 0);
	text[HTTP_CHUNKS_REST_MAX + 2] = 'x';
	assert_int_equal(read_chunks(text, HTTP_CHUNKS_REST_MAX + 3, 7, &body), -EINVAL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(chunks_are_put_together),
		cmocka_unit_test(bytes_that_are_not_chunks_are_refused),
		cmocka_unit_test(a_body_that_breaks_off_has_not_ended),
		cmocka_unit_test(extensions_and_trailers_have_a_cap),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
