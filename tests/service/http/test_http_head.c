/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of requests: what is read of a good one, and that each kind of bad one is refused. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/service/http/http_head.h"

#define LINE "POST /v1/runs HTTP/1.1\r\n"
#define HOST "Host: x\r\n"

/* A block of exactly the head's size: a read past it is seen by the sanitizer. */
static char *copy_of(const char *text, size_t size)
{
	char *copy = malloc(size + (size == 0));

	assert_non_null(copy);
	memcpy(copy, text, size);
	return copy;
}

static int read_bytes(const char *text, size_t size, char **out_copy, struct http_head *out,
		      struct cj_error *err)
{
	size_t scanned = 0;
	char *copy = *out_copy = copy_of(text, size);
	ssize_t found = http_head_find(copy, size, &scanned, err);

	if (found < 0)
		return (int)found;
	assert_int_equal(found, size);
	return http_head_parse(copy, size, out, err);
}

static void refused_bytes(const char *text, size_t size, const char *reason)
{
	struct http_head head;
	struct cj_error err = { 0 };
	char *copy = NULL;

	int rc = read_bytes(text, size, &copy, &head, &err);
	free(copy);
	if (rc >= 0 || !strstr(err.msg, reason))
		fail_msg("'%s': %d, '%s'", text, rc, err.msg);
}

#define REFUSED(text, reason) refused_bytes(text, sizeof(text) - 1, reason)

static void a_good_head_is_read(void **state)
{
	static const char text[] = "PUT /a%20b?c=%zz HTTP/1.1\r\nHOST:x\r\nA:  b c \t\r\n"
				   "Content-Length: 007\r\nEmpty:\r\nConnection: TE, Close\r\n\r\n";
	struct http_head head;
	struct cj_error err = { 0 };
	char *copy = NULL;
	(void)state;

	assert_int_equal(read_bytes(text, sizeof(text) - 1, &copy, &head, &err), 0);
	assert_string_equal(head.method, "PUT");
	assert_string_equal(head.path, "/a b");
	assert_true(head.is_1_1 && !head.keeps_open && !head.is_chunked && !head.expects_continue);
	assert_int_equal(head.length, 7);
	assert_int_equal(head.count, 5);
	assert_string_equal(http_head_get(&head, "a"), "b c");
	assert_string_equal(http_head_get(&head, "Empty"), "");
	assert_null(http_head_get(&head, "b"));
	free(copy);
}

static void what_follows_from_headers_is_known(void **state)
{
	static const struct row {
		const char *text;
		bool is_chunked, keeps_open, expects_continue;
	} rows[] = {
		{ LINE HOST "\r\n", false, true, false },
		{ LINE HOST "Transfer-Encoding: Chunked\r\n\r\n", true, true, false },
		{ LINE HOST "Expect: 100-Continue\r\n\r\n", false, true, true },
		{ LINE HOST "Connection: closed\r\n\r\n", false, true, false },
		{ LINE HOST "Connection: a\r\nConnection: close\r\n\r\n", false, false, false },
		{ "GET / HTTP/1.0\r\n\r\n", false, false, false },
		{ "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", false, true, false },
		{ "GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", false, false, false },
		{ "GET / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n", false, false, false },
	};
	(void)state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct http_head head;
		struct cj_error err = { 0 };
		char *copy = NULL;
		assert_int_equal(read_bytes(rows[i].text, strlen(rows[i].text), &copy, &head, &err),
				 0);
		assert_int_equal(head.is_chunked, rows[i].is_chunked);
		assert_int_equal(head.keeps_open, rows[i].keeps_open);
		assert_int_equal(head.expects_continue, rows[i].expects_continue);
		free(copy);
	}
}

static void request_lines_are_strict(void **state)
{
	(void)state;
	REFUSED("\r\n", "empty");
	REFUSED("GET / HTTP/1.1\n", "carriage return");
	REFUSED("GET\r\n\r\n", "METHOD TARGET");
	REFUSED("GET /\r\n\r\n", "METHOD TARGET");
	REFUSED("GET / HTTP/1.1 \r\n\r\n", "version");
	REFUSED("GET / HTTP/1.2\r\n\r\n", "version");
	REFUSED("GET  / HTTP/1.1\r\n\r\n", "version");
	REFUSED(" / HTTP/1.1\r\n\r\n", "method");
	REFUSED("G(T / HTTP/1.1\r\n\r\n", "method");
	REFUSED("ABCDEFGHIJKLMNOP / HTTP/1.1\r\n\r\n", "method");
	REFUSED("GET  HTTP/1.1\r\n\r\n", "target");
	REFUSED("GET /\x80 HTTP/1.1\r\n\r\n", "encoded");
	REFUSED("GET /%0a HTTP/1.1\r\n\r\n", "percent-encoding");
	REFUSED("GET /%00 HTTP/1.1\r\n\r\n", "percent-encoding");
	REFUSED("GET /%4 HTTP/1.1\r\n\r\n", "percent-encoding");
	REFUSED("GET /% HTTP/1.1\r\n\r\n", "percent-encoding");
}

static void headers_are_strict(void **state)
{
	(void)state;
	REFUSED(LINE HOST "A: b\0c\r\n\r\n", "0x00");
	REFUSED(LINE HOST "A: b\x1f\r\n\r\n", "0x1f");
	REFUSED(LINE HOST "A: b\x7f\r\n\r\n", "0x7f");
	REFUSED(LINE HOST "A: b\rc\r\n\r\n", "inside");
	REFUSED(LINE HOST "A: b\n\r\n", "without a carriage return");
	REFUSED(LINE HOST "A : b\r\n\r\n", "token");
	REFUSED(LINE HOST " A: b\r\n\r\n", "token");
	REFUSED(LINE HOST "A: b\r\n\tc: d\r\n\r\n", "token");
	REFUSED(LINE HOST ": b\r\n\r\n", "token");
	REFUSED(LINE HOST "A\x80: b\r\n\r\n", "token");
	REFUSED(LINE HOST "A\r\n\r\n", "colon");
	REFUSED(LINE "\r\n", "Host is missing");
	REFUSED(LINE HOST HOST "\r\n", "Host appears 2 times");
}

static void lengths_are_strict(void **state)
{
	(void)state;
	REFUSED(LINE HOST "Content-Length: \r\n\r\n", "number");
	REFUSED(LINE HOST "Content-Length: +1\r\n\r\n", "number");
	REFUSED(LINE HOST "Content-Length: 1 \t1\r\n\r\n", "number");
	REFUSED(LINE HOST "Content-Length: 1,1\r\n\r\n", "number");
	REFUSED(LINE HOST "Content-Length: 00000000000000000001\r\n\r\n", "number");
	REFUSED(LINE HOST "Content-Length: 1\r\ncontent-length: 1\r\n\r\n", "2 times");
	REFUSED(LINE HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		"exclude each other");
	REFUSED(LINE HOST "Transfer-Encoding: chunked, chunked\r\n\r\n", "chunked");
	REFUSED("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "chunked");
}

/* Where it ends. */
static size_t put(char *text, size_t at, const char *more)
{
	memcpy(text + at, more, strlen(more));
	return at + strlen(more);
}

static void heads_and_fields_have_a_cap(void **state)
{
	static char text[HTTP_HEAD_MAX + 1];
	struct http_head head;
	struct cj_error err = { 0 };
	size_t scanned = 0;
	char *copy = NULL;
	(void)state;

	memset(text, 'a', sizeof(text));
	assert_int_equal(http_head_find(text, HTTP_HEAD_MAX - 1, &scanned, &err), 0);
	assert_int_equal(http_head_find(text, HTTP_HEAD_MAX, &scanned, &err), -EFBIG);
	size_t size = put(text, 0, LINE HOST);
	for (int i = 0; i < HTTP_FIELDS_MAX; i++)
		size = put(text, size, "A: b\r\n");
	size = put(text, size, "\r\n");
	assert_int_equal(read_bytes(text, size, &copy, &head, &err), -EFBIG);
	free(copy);
}

static void a_query_is_kept_as_it_came(void **state)
{
	static const struct {
		const char *head, *path, *query;
	} rows[] = {
		{ "GET /a%3fb?list&c=%2F HTTP/1.0\r\n\r\n", "/a?b", "list&c=%2F" },
		{ "GET /a?b?c HTTP/1.0\r\n\r\n", "/a", "b?c" },
		{ "GET /a/%2e%2e%2F%c3%a4 HTTP/1.0\r\n\r\n", "/a/../\xc3\xa4", "" },
		{ "GET ?x HTTP/1.0\r\n\r\n", "", "x" },
	};
	struct cj_error err = { 0 };
	(void)state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct http_head head;
		char *copy = NULL;
		assert_int_equal(read_bytes(rows[i].head, strlen(rows[i].head), &copy, &head, &err),
				 0);
		assert_string_equal(head.path, rows[i].path);
		assert_string_equal(head.query, rows[i].query);
		free(copy);
	}
}

static void a_head_is_found_however_it_comes(void **state)
{
	static const char text[] = LINE HOST "\r\nbody";
	size_t end = sizeof(text) - 1 - strlen("body"), scanned = 0;
	struct cj_error err = { 0 };
	(void)state;

	for (size_t size = 0; size < end; size++)
		assert_int_equal(http_head_find(text, size, &scanned, &err), 0);
	assert_int_equal(http_head_find(text, end, &scanned, &err), end);
	scanned = 0;
	assert_int_equal(http_head_find(text, sizeof(text) - 1, &scanned, &err), end);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_good_head_is_read),
		cmocka_unit_test(what_follows_from_headers_is_known),
		cmocka_unit_test(request_lines_are_strict),
		cmocka_unit_test(headers_are_strict),
		cmocka_unit_test(lengths_are_strict),
		cmocka_unit_test(heads_and_fields_have_a_cap),
		cmocka_unit_test(a_query_is_kept_as_it_came),
		cmocka_unit_test(a_head_is_found_however_it_comes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
