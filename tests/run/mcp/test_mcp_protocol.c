/* SPDX-License-Identifier: Apache-2.0 */
/* Each line gets the answer that JSON-RPC and its era of the protocol demand, or none. */
#include "runtime/run/mcp/mcp_protocol.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/base/scope.h"

#define MODERN                                                                                     \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                   \
	"\"io.modelcontextprotocol/clientCapabilities\":{}}"

static const struct mcp_tool tools[] = {
	{ .name = "run_python",
	  .profile = "python",
	  .limits = { .wall_ms = 30000 },
	  .has_network = true },
	{ .name = "run_shell", .profile = "shell", .limits = { .wall_ms = 30000 } },
};

struct client {
	struct mcp_protocol protocol;
	struct arena arena;
	struct mcp_asked asked;
	char text[65536]; /* the last answer; "": none */
};

static int open_client(void **state)
{
	struct client *c = calloc(1, sizeof(*c));

	c->protocol = (struct mcp_protocol){ .tools = tools, .ntools = 2 };
	*state = c;
	return 0;
}

static int close_client(void **state)
{
	struct client *c = *state;

	arena_fini(&c->arena);
	free(c);
	return 0;
}

static enum mcp_action send_bytes(struct client *c, const char *line, size_t size)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct cj_error err = { 0 };
	struct blob text;

	c->text[0] = '\0';
	mcp_protocol_take(&c->protocol, line, size, &c->arena, w, &c->asked);
	if (c->asked.action != MCP_ANSWER)
		return c->asked.action;
	assert_int_equal(json_writer_take(w, &text, &err), 0);
	assert_true(text.size < sizeof(c->text));
	memcpy(c->text, text.bytes, text.size + 1);
	return MCP_ANSWER;
}

static enum mcp_action send_line(struct client *c, const char *line)
{
	return send_bytes(c, line, strlen(line));
}

static void expect(struct client *c, const char *line, const char *part)
{
	assert_int_equal(send_line(c, line), MCP_ANSWER);
	if (!strstr(c->text, part))
		fail_msg("no %s in the answer to %s: %s", part, line, c->text);
}

static void initialize(struct client *c, const char *version)
{
	char line[256], part[64];

	(void)snprintf(line, sizeof(line),
		       "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":"
		       "{\"protocolVersion\":\"%s\",\"capabilities\":{}}}",
		       version);
	(void)snprintf(part, sizeof(part), "\"id\":0,\"result\":{\"protocolVersion\":\"");
	expect(c, line, part);
}

static void what_is_no_message_gets_the_error_of_json_rpc(void **state)
{
	static const struct {
		const char *line, *part;
	} rows[] = {
		{ "nonsense", "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700" },
		{ "{\"jsonrpc\":\"2.0\"", "-32700" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}", "-32700" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\\u0000\"}", "-32700" },
		{ "\xff", "-32700" },
		{ "[]", "-32600" },
		{ "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", "-32600" },
		{ "7", "-32600" },
		{ "{}", "-32600" },
		{ "{\"id\":1,\"method\":\"ping\"}", "\"id\":1,\"error\":{\"code\":-32600" },
		{ "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", "-32600" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", "-32600" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", "-32600" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", "-32600" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":3}",
		  "\"id\":1,\"error\":{\"code\":-32600" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\",\"params\":[]}",
		  "\"id\":\"a\",\"error\":{\"code\":-32602" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"_meta\":3}}",
		  "-32602" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		expect(*state, rows[i].line, rows[i].part);
}

static void a_message_that_is_deep_or_has_a_long_id_is_refused(void **state)
{
	char line[8192] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"a\":";
	size_t size = strlen(line);

	memset(line + size, '[', 4000);
	expect(*state, line, "-32700");
	size = (size_t)snprintf(line, sizeof(line),
				"{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":\"");
	memset(line + size, 'x', MCP_ID_MAX + 1);
	memcpy(line + size + MCP_ID_MAX + 1, "\"}", 3);
	expect(*state, line, "-32600");
	assert_null(strstr(((struct client *)*state)->text, "\"id\""));
}

static void a_message_above_the_limit_is_refused_before_it_is_parsed(void **state)
{
	char *line = malloc(MCP_LINE_MAX + 1);

	memset(line, ' ', MCP_LINE_MAX + 1);
	assert_int_equal(send_bytes(*state, line, MCP_LINE_MAX + 1), MCP_ANSWER);
	assert_non_null(strstr(((struct client *)*state)->text, "-32600"));
	free(line);
}

static void notifications_and_responses_have_no_answer(void **state)
{
	static const char *const lines[] = {
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/none\",\"params\":{}}",
		"{\"jsonrpc\":\"2.0\",\"method\":\"tools/list\"}",
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{}}",
		"{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}",
		"{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":1,\"message\":\"x\"}}",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_int_equal(send_line(*state, lines[i]), MCP_NOTHING);
}

static void a_legacy_client_gets_its_version_or_the_newest(void **state)
{
	struct client *c = *state;

	initialize(c, "2024-11-05");
	assert_non_null(strstr(c->text, "\"protocolVersion\":\"2024-11-05\""));
	initialize(c, "2025-11-25");
	assert_non_null(strstr(c->text, "\"protocolVersion\":\"2025-11-25\""));
	initialize(c, "2031-01-01");
	assert_non_null(strstr(c->text, "\"protocolVersion\":\"2025-11-25\""));
	assert_null(strstr(c->text, "resultType"));
}

static void requests_before_initialize_need_a_version(void **state)
{
	expect(*state, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}", "-32602");
	expect(*state, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", "\"result\":{}");
	initialize(*state, "2025-11-25");
	expect(*state, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}", "\"tools\":[{");
}

static void a_modern_request_stands_alone(void **state)
{
	struct client *c = *state;

	expect(
	    c,
	    "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"server/discover\",\"params\":{" MODERN
	    "}}",
	    "\"supportedVersions\":[\"2026-07-28\"");
	assert_non_null(strstr(c->text, "\"resultType\":\"complete\""));
	assert_non_null(
	    strstr(c->text, "\"io.modelcontextprotocol/serverInfo\":{\"name\":\"cejail\""));
	assert_non_null(strstr(c->text, "\"cacheScope\":\"private\""));
	expect(c,
	       "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\",\"params\":{" MODERN "}}",
	       "\"ttlMs\":");
	expect(c, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\",\"params\":{" MODERN "}}",
	       "-32601");
	expect(c,
	       "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"initialize\",\"params\":{" MODERN "}}",
	       "-32601");
}

static void a_modern_request_names_a_version_and_capabilities(void **state)
{
	expect(*state,
	       "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":{"
	       "\"io.modelcontextprotocol/protocolVersion\":\"2030-01-01\"}}}",
	       "\"code\":-32022");
	expect(*state,
	       "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":{"
	       "\"io.modelcontextprotocol/protocolVersion\":\"2030-01-01\"}}}",
	       "\"data\":{\"supported\":[\"2026-07-28\"],\"requested\":\"2030-01-01\"}");
	expect(*state,
	       "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":{"
	       "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}}}",
	       "-32602");
	expect(*state,
	       "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":{"
	       "\"io.modelcontextprotocol/protocolVersion\":7}}}",
	       "-32602");
}

static void unknown_methods_tools_and_cursors_are_refused(void **state)
{
	initialize(*state, "2025-11-25");
	expect(*state, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/list\"}", "-32601");
	expect(*state, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\"}", "-32601");
	expect(
	    *state,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"cursor\":\"2\"}}",
	    "-32602");
	expect(
	    *state,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"run_perl\"}}",
	    "-32602");
	expect(*state, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\"}", "-32602");
	expect(*state,
	       "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":"
	       "{\"name\":\"run_python\",\"arguments\":[]}}",
	       "-32602");
	expect(*state,
	       "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":"
	       "{\"name\":\"run_python\",\"_meta\":{\"progressToken\":{}}}}",
	       "-32602");
}

static void a_call_keeps_its_id_its_token_and_its_trace(void **state)
{
	struct client *c = *state;

	initialize(c, "2025-11-25");
	assert_int_equal(
	    send_line(c, "{\"jsonrpc\":\"2.0\",\"id\":\"c1\",\"method\":\"tools/call\","
			 "\"params\":{\"name\":\"run_shell\",\"arguments\":{\"code\":\"true\"},"
			 "\"_meta\":{\"progressToken\":12,\"traceparent\":\"00-a\"}}}"),
	    MCP_CALL);
	assert_ptr_equal(c->asked.tool, &tools[1]);
	assert_string_equal(c->asked.id.text, "c1");
	assert_int_equal(c->asked.progress.kind, MCP_ID_NUMBER);
	assert_string_equal(c->asked.traceparent, "00-a");
	assert_int_equal(c->asked.era, MCP_ERA_LEGACY);
	assert_int_equal(send_line(c, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
				      "\"params\":{\"requestId\":\"c1\",\"reason\":\"x\"}}"),
			 MCP_CANCEL);
	assert_string_equal(c->asked.id.text, "c1");
}

static void a_string_id_is_not_the_number_of_the_same_digits(void **state)
{
	const struct mcp_id number = { MCP_ID_NUMBER, "1" }, string = { MCP_ID_STRING, "1" };

	(void)state;
	assert_false(mcp_id_equals(&number, &string));
	assert_true(mcp_id_equals(&number, &number));
}

static void old_versions_get_no_output_schema(void **state)
{
	struct client *c = *state;

	initialize(c, "2025-03-26");
	expect(c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}", "inputSchema");
	assert_null(strstr(c->text, "outputSchema"));
	initialize(c, "2025-06-18");
	expect(c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}", "outputSchema");
}

static const char *describe(const struct mcp_tool *tool, char out[static 65536])
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct cj_error err = { 0 };
	struct blob text = { 0 };

	assert_int_equal(mcp_tools_put(w, tool, 1, MCP_ERA_LEGACY, &err), 0);
	assert_int_equal(json_writer_take(w, &text, &err), 0);
	assert_true(text.size < 65536);
	memcpy(out, text.bytes, text.size + 1);
	return out;
}

static void annotations_are_true_to_the_profile(void **state)
{
	static const struct {
		struct mcp_tool tool;
		const char *part;
	} rows[] = {
		{ { .profile = "p" },
		  "{\"readOnlyHint\":true,\"destructiveHint\":false,"
		  "\"idempotentHint\":false,\"openWorldHint\":false}" },
		{ { .profile = "p", .has_network = true },
		  "{\"readOnlyHint\":false,\"destructiveHint\":false,"
		  "\"idempotentHint\":false,\"openWorldHint\":true}" },
		{ { .profile = "p", .writes_host = true },
		  "{\"readOnlyHint\":false,\"destructiveHint\":true,"
		  "\"idempotentHint\":false,\"openWorldHint\":false}" },
		{ { .profile = "p", .reaches_host = true },
		  "{\"readOnlyHint\":false,\"destructiveHint\":true,"
		  "\"idempotentHint\":false,\"openWorldHint\":true}" },
		{ { .profile = "p", .stores_files = true },
		  "{\"readOnlyHint\":false,\"destructiveHint\":false,"
		  "\"idempotentHint\":false,\"openWorldHint\":false}" },
	};
	static char text[65536];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_non_null(strstr(describe(&rows[i].tool, text), rows[i].part));
}

static void a_tool_says_its_limits_and_its_network(void **state)
{
	const struct mcp_tool tool = { .profile = "p",
				       .about = "for tests",
				       .limits = { .wall_ms = 90000, .memory_bytes = 64u << 20 },
				       .has_network = true,
				       .has_allow_list = true };
	static char text[65536];

	(void)state;
	describe(&tool, text);
	assert_null(strstr(text, "To return a value"));
	assert_non_null(strstr(text, "Profile 'p': for tests."));
	assert_non_null(strstr(text, "memory: 64M"));
	assert_non_null(strstr(text, "\"maximum\":90"));
	assert_non_null(strstr(text, "only destinations that the user has allowed"));
	assert_null(strstr(text, "\"session\""));
	assert_null(strstr(text, "null"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_client, close_client)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_no_message_gets_the_error_of_json_rpc),
		TEST(a_message_that_is_deep_or_has_a_long_id_is_refused),
		TEST(a_message_above_the_limit_is_refused_before_it_is_parsed),
		TEST(notifications_and_responses_have_no_answer),
		TEST(a_legacy_client_gets_its_version_or_the_newest),
		TEST(requests_before_initialize_need_a_version),
		TEST(a_modern_request_stands_alone),
		TEST(a_modern_request_names_a_version_and_capabilities),
		TEST(unknown_methods_tools_and_cursors_are_refused),
		TEST(a_call_keeps_its_id_its_token_and_its_trace),
		TEST(a_string_id_is_not_the_number_of_the_same_digits),
		TEST(old_versions_get_no_output_schema),
		TEST(annotations_are_true_to_the_profile),
		TEST(a_tool_says_its_limits_and_its_network),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
