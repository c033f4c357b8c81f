/* SPDX-License-Identifier: Apache-2.0 */
/* Headers that differ from the body are refused; what Accept allows. */
#include "runtime/run/mcp/mcp_protocol.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define VERSION "2026-07-28"
#define CALL                                                                                       \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"a-b\"}}"
#define LIST "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}"

static int check(const char *body, const char *version, const char *method, const char *name)
{
	const struct mcp_headers headers = { version, method, name };
	auto_arena struct arena a = { 0 };
	struct mcp_message message;
	struct mcp_fault fault;

	assert_int_equal(mcp_message_read(body, strlen(body), &a, &message, &fault), 0);
	int rc = mcp_headers_check(&headers, &message, VERSION, &fault);
	if (rc < 0)
		assert_int_equal(fault.code, MCP_HEADER_MISMATCH);
	return rc;
}

static void headers_must_say_what_the_body_says(void **state)
{
	(void)state;
	assert_int_equal(check(CALL, VERSION, "tools/call", "a-b"), 0);
	assert_int_equal(check(LIST, VERSION, "tools/list", NULL), 0);
	assert_int_equal(check(LIST, VERSION, "tools/list", "unused"), 0);
	assert_true(check(CALL, "2025-11-25", "tools/call", "a-b") < 0);
	assert_true(check(CALL, NULL, "tools/call", "a-b") < 0);
	assert_true(check(CALL, VERSION, "Tools/call", "a-b") < 0);
	assert_true(check(CALL, VERSION, NULL, "a-b") < 0);
	assert_true(check(CALL, VERSION, "tools/call", NULL) < 0);
	assert_true(check(CALL, VERSION, "tools/call", "a-b ") < 0);
	assert_true(check(CALL, VERSION, "tools/call", "") < 0);
}

static void an_encoded_name_is_decoded_first(void **state)
{
	(void)state;
	assert_int_equal(check(CALL, VERSION, "tools/call", "=?base64?YS1i?="), 0);
	assert_true(check(CALL, VERSION, "tools/call", "=?base64?YS1j?=") < 0);
	assert_true(check(CALL, VERSION, "tools/call", "=?base64?YS1iAA==?=") < 0);
	assert_true(check(CALL, VERSION, "tools/call",
			  "=?base64?"
			  "?=") < 0);
	assert_true(check(CALL, VERSION, "tools/call", "=?BASE64?YS1i?=") < 0);
	assert_true(check(CALL, VERSION, "tools/call", "=?base64?*?=") < 0);
}

static void accept_allows_types_and_parts_of_them(void **state)
{
	static const char json[] = "application/json";

	(void)state;
	assert_true(mcp_headers_accept(NULL, json));
	assert_true(mcp_headers_accept("*/*", json));
	assert_true(mcp_headers_accept("application/*", json));
	assert_true(mcp_headers_accept("text/event-stream, Application/JSON;q=0.5", json));
	assert_true(mcp_headers_accept("text/html ,application/json ; q=1", json));
	assert_false(mcp_headers_accept("", json));
	assert_false(mcp_headers_accept(",,; ,", json));
	assert_false(mcp_headers_accept("application/jsonp", json));
	assert_false(mcp_headers_accept("application", json));
	assert_false(mcp_headers_accept("text/event-stream", json));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers_must_say_what_the_body_says),
		cmocka_unit_test(an_encoded_name_is_decoded_first),
		cmocka_unit_test(accept_allows_types_and_parts_of_them),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
