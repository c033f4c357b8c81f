/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of tools as requests to the API. */
#include "runtime/run/mcp/mcp_request.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "profiles/settings.h"
#include "runtime/base/scope.h"

static const struct mcp_tool python = { .name = "run_python",
					.profile = "python",
					.limits = { .wall_ms = 30000, .memory_bytes = 512u << 20 },
					.has_sessions = true };

struct fixture {
	struct config config;
	bool *wanted;
	const char *tools;
	struct mcp_request request;
	struct cj_error err;
};

static int open_fixture(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	config_init(&f->config);
	f->wanted = calloc(settings_count, sizeof(*f->wanted));
	*state = f;
	return 0;
}

static int close_fixture(void **state)
{
	struct fixture *f = *state;

	cj_free(&f->request.body);
	config_fini(&f->config);
	free(f->wanted);
	free(f);
	return 0;
}

static int write_call(struct fixture *f, enum mcp_tool_kind kind, const char *arguments)
{
	auto_arena struct arena a = { 0 };
	const struct mcp_given given = { &f->config, f->wanted, f->tools };
	const struct json_node *node = NULL;
	struct mcp_tool tool = python;

	if (kind != MCP_TOOL_RUN)
		mcp_tool_init_session(&tool, kind, "", &python, 1);
	f->err = (struct cj_error){ 0 };
	assert_int_equal(json_parse("arguments", arguments, strlen(arguments), &a, &node, &f->err),
			 0);
	cj_free(&f->request.body);
	return mcp_request_write(&f->request, &tool, &given, node, "ID", &f->err);
}

static void each_tool_asks_its_route(void **state)
{
	static const struct {
		enum mcp_tool_kind kind;
		const char *arguments, *method, *target;
	} rows[] = {
		{ MCP_TOOL_RUN, "{\"code\":\"1\"}", "POST", "/v1/runs" },
		{ MCP_TOOL_RUN, "{\"code\":\"1\",\"session\":\"S\"}", "POST",
		  "/v1/sessions/S/execs" },
		{ MCP_TOOL_SESSION_CREATE, "{\"profile\":\"python\"}", "POST", "/v1/sessions" },
		{ MCP_TOOL_SESSION_EXEC, "{\"session\":\"S\",\"command\":[\"ls\"]}", "POST",
		  "/v1/sessions/S/execs" },
		{ MCP_TOOL_SESSION_PUT_FILE,
		  "{\"session\":\"S\",\"path\":\"a\",\"text\":\"t\",\"executable\":true}", "PUT",
		  "/v1/sessions/S/files/box/a?executable" },
		{ MCP_TOOL_SESSION_GET_FILE, "{\"session\":\"S\",\"path\":\"/tmp/a\"}", "GET",
		  "/v1/sessions/S/files/tmp/a?offset=0&length=4194304" },
		{ MCP_TOOL_SESSION_GET_FILE,
		  "{\"session\":\"S\",\"path\":\"a\",\"offset\":7,\"length\":9}", "GET",
		  "/v1/sessions/S/files/box/a?offset=7&length=9" },
		{ MCP_TOOL_SESSION_LIST_FILES, "{\"session\":\"S\"}", "GET",
		  "/v1/sessions/S/files/box/?list" },
		{ MCP_TOOL_SESSION_LIST_FILES, "{\"session\":\"S\",\"path\":\"d/\"}", "GET",
		  "/v1/sessions/S/files/box/d/?list" },
		{ MCP_TOOL_SESSION_END, "{\"session\":\"S\"}", "DELETE", "/v1/sessions/S" },
	};

	char target[MCP_TARGET_MAX];
	const char *type = NULL;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fixture *f = *state;
		if (write_call(f, rows[i].kind, rows[i].arguments) < 0)
			fail_msg("%s: %s", rows[i].arguments, f->err.msg);
		const char *method = mcp_request_put_http(&f->request, target, &type);
		assert_string_equal(method, rows[i].method);
		assert_string_equal(target, rows[i].target);
		assert_int_equal(type != NULL, f->request.body != NULL);
	}
}

static void no_path_leaves_its_part_of_the_url(void **state)
{
	struct fixture *f = *state;
	char target[MCP_TARGET_MAX];
	const char *type = NULL;

	assert_int_equal(write_call(f, MCP_TOOL_SESSION_GET_FILE,
				    "{\"session\":\"S\",\"path\":\"a b?x#\\r\\n%2f\\u00fc\"}"),
			 0);
	(void)mcp_request_put_http(&f->request, target, &type);
	assert_string_equal(target, "/v1/sessions/S/files/box/a%20b%3Fx%23%0D%0A%252f%C3%BC"
				    "?offset=0&length=4194304");
	static const char *const ids[] = { "", "../runs", "a/b", "a b", "a?b", "a\\nb" };
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		char text[128];
		(void)snprintf(text, sizeof(text), "{\"session\":\"%s\"}", ids[i]);
		assert_int_equal(write_call(f, MCP_TOOL_SESSION_END, text), -EINVAL);
		assert_non_null(strstr(f->err.msg, "session_create"));
	}
}

static void a_program_in_a_session_leaves_the_jail_as_it_is(void **state)
{
	struct fixture *f = *state;
	const struct setting *memory = setting_by_key("memory");

	assert_int_equal(setting_set(&f->config, memory, "-m", "64M", &f->err), 0);
	f->wanted[memory - settings] = true;
	assert_int_equal(write_call(f, MCP_TOOL_RUN, "{\"code\":\"1\"}"), 0);
	assert_non_null(strstr(f->request.body, "64M"));
	assert_int_equal(write_call(f, MCP_TOOL_SESSION_CREATE, "{\"profile\":\"python\"}"), 0);
	assert_non_null(strstr(f->request.body, "64M"));
	assert_int_equal(write_call(f, MCP_TOOL_RUN, "{\"code\":\"1\",\"session\":\"S\"}"), 0);
	assert_null(strstr(f->request.body, "64M"));
	assert_non_null(strstr(f->request.body, "\"interrupt\":true"));
	assert_int_equal(
	    write_call(f, MCP_TOOL_RUN, "{\"code\":\"1\",\"session\":\"S\",\"memory\":\"8M\"}"),
	    -EINVAL);
	assert_non_null(strstr(f->err.msg, "cannot change in a session"));
}

static void each_program_has_the_tools_and_a_session_has_none(void **state)
{
	static const struct {
		enum mcp_tool_kind kind;
		const char *arguments;
		bool has_tools;
	} rows[] = {
		{ MCP_TOOL_RUN, "{\"code\":\"1\"}", true },
		{ MCP_TOOL_RUN, "{\"code\":\"1\",\"session\":\"S\"}", true },
		{ MCP_TOOL_SESSION_EXEC, "{\"session\":\"S\",\"code\":\"1\"}", true },
		{ MCP_TOOL_SESSION_EXEC, "{\"session\":\"S\",\"command\":[\"ls\"]}", true },
		{ MCP_TOOL_SESSION_CREATE, "{\"profile\":\"python\"}", false },
	};
	struct fixture *f = *state;

	f->tools = "{\"tools\":[{\"name\":\"a.b\"}]}";
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(write_call(f, rows[i].kind, rows[i].arguments), 0);
		assert_int_equal(strstr(f->request.body, "\"tools\":{\"tools\":[") != NULL,
				 rows[i].has_tools);
	}
}

static void bytes_of_a_file_are_the_body(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(write_call(f, MCP_TOOL_SESSION_PUT_FILE,
				    "{\"session\":\"S\",\"path\":\"a\",\"base64\":\"AP8=\"}"),
			 0);
	assert_int_equal(f->request.size, 2);
	assert_memory_equal(f->request.body, "\0\xff", 2);
	assert_int_equal(write_call(f, MCP_TOOL_SESSION_PUT_FILE,
				    "{\"session\":\"S\",\"path\":\"a\",\"base64\":\"AP8\"}"),
			 -EINVAL);
	assert_int_equal(
	    write_call(f, MCP_TOOL_SESSION_PUT_FILE, "{\"session\":\"S\",\"path\":\"a\"}"),
	    -EINVAL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_tool_asks_its_route),
		TEST(no_path_leaves_its_part_of_the_url),
		TEST(a_program_in_a_session_leaves_the_jail_as_it_is),
		TEST(each_program_has_the_tools_and_a_session_has_none),
		TEST(bytes_of_a_file_are_the_body),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
