/* SPDX-License-Identifier: Apache-2.0 */
/* A call becomes a request that has nothing of the host, and no more than the tool's limits. */
#include "runtime/run/mcp/mcp_request.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "profiles/settings.h"
#include "runtime/base/scope.h"
#include "runtime/run/request/request.h"

static const struct mcp_tool tool = { .name = "run_python",
				      .profile = "python",
				      .limits = { .wall_ms = 30000, .memory_bytes = 512u << 20 },
				      .has_network = true };

struct fixture {
	struct config config; /* the options of the command line */
	bool *wanted;
	char text[4096]; /* the request, or the error */
	const struct mcp_tool *tool;
	const char *session_profile;
};

static int open_fixture(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	config_init(&f->config);
	f->wanted = calloc(settings_count, sizeof(*f->wanted));
	f->tool = &tool;
	*state = f;
	return 0;
}

static int close_fixture(void **state)
{
	struct fixture *f = *state;

	config_fini(&f->config);
	free(f->wanted);
	free(f);
	return 0;
}

static void give(struct fixture *f, const char *option, const char *value)
{
	const struct setting *s = setting_by_option(option);
	struct cj_error err = { 0 };

	assert_int_equal(setting_set(&f->config, s, option, value, &err), 0);
	f->wanted[s - settings] = true;
}

static int write_call(struct fixture *f, const char *arguments)
{
	auto_arena struct arena a = { 0 };
	const struct mcp_given given = { .config = &f->config,
					 .wanted = f->wanted,
					 .session_profile = f->session_profile };
	const struct json_node *node = NULL;
	struct mcp_request request;
	struct cj_error err = { 0 };

	assert_int_equal(json_parse("arguments", arguments, strlen(arguments), &a, &node, &err), 0);
	int rc = mcp_request_write(&request, f->tool, &given, node, "ID", &err);
	if (rc < 0) {
		assert_true(err.code > 0);
		(void)snprintf(f->text, sizeof(f->text), "%s (%s)", err.msg, err.hint);
	} else {
		memcpy(f->text, request.body, request.size + 1);
	}
	cj_free(&request.body);
	return rc;
}

static void a_call_becomes_a_request(void **state)
{
	static const struct request_caps caps = { SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX };
	struct fixture *f = *state;
	auto_arena struct arena a = { 0 };
	struct request r;
	struct cj_error err = { 0 };

	assert_int_equal(
	    write_call(f, "{\"code\":\"print(1)\",\"argv\":[\"a\"],\"args\":{\"x\":[1,null]},"
			  "\"stdin\":\"in\",\"files\":[{\"path\":\"d.txt\",\"text\":\"t\"}]}"),
	    0);
	assert_int_equal(
	    request_parse((struct blob){ f->text, strlen(f->text) }, &caps, &a, &r, &err), 0);
	assert_string_equal(r.profile, "python");
	assert_string_equal(r.id, "ID");
	assert_string_equal(r.args_json, "{\"x\":[1,null]}");
	assert_string_equal(r.args.items[0], "a");
	assert_int_equal(r.stdin_bytes.size, 2);
	assert_string_equal(r.files[0].target, "/box/d.txt");
	assert_true(r.wants_artifacts);
	assert_int_equal(r.fit, FIT_INTERPRETER);
}

static void wrong_arguments_are_refused_with_what_to_change(void **state)
{
	static const struct {
		const char *arguments, *part;
	} rows[] = {
		{ "{}", "'code' is missing" },
		{ "{\"code\":3}", "'code' must be a string" },
		{ "{\"code\":\"x\",\"argv\":\"a\"}", "'argv' must be an array" },
		{ "{\"code\":\"x\",\"argv\":[1]}", "each item of argv" },
		{ "{\"code\":\"x\",\"stdin\":{}}", "'stdin' must be a string" },
		{ "{\"code\":\"x\",\"files\":[{\"text\":\"t\"}]}", "no 'path'" },
		{ "{\"code\":\"x\",\"files\":[{\"path\":\"p\"}]}", "either 'text' or 'base64'" },
		{ "{\"code\":\"x\",\"files\":[{\"path\":\"p\",\"text\":\"t\",\"base64\":\"\"}]}",
		  "either 'text' or 'base64'" },
		{ "{\"code\":\"x\",\"files\":[{\"path\":\"p\",\"source\":\"/etc/passwd\"}]}",
		  "not 'source'" },
		{ "{\"code\":\"x\",\"files\":[{\"path\":1,\"text\":\"t\"}]}",
		  "'path' must be a string" },
		{ "{\"code\":\"x\",\"timeout_seconds\":\"3\"}", "must be a number" },
		{ "{\"code\":\"x\",\"timeout_seconds\":-1}", "above 0" },
		{ "{\"code\":\"x\",\"timeout_seconds\":0}", "above 0" },
		{ "{\"code\":\"x\",\"timeout_seconds\":30.5}", "limit of this tool, which is 30s" },
		{ "{\"code\":\"x\",\"memory\":\"1G\"}", "limit of this tool, which is 512M" },
		{ "{\"code\":\"x\",\"memory\":\"much\"}", "memory" },
		{ "{\"code\":\"x\",\"network\":\"public\"}", "can only be \"none\"" },
		{ "{\"code\":\"x\",\"session\":\"s\"}", "there are no sessions" },
		{ "{\"code\":\"x\",\"cod\":\"s\"}", "did you mean 'code'" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fixture *f = *state;
		if (write_call(f, rows[i].arguments) == 0 || !strstr(f->text, rows[i].part))
			fail_msg("%s: %s", rows[i].arguments, f->text);
	}
}

/* Every row of the settings, and every key of a request, as an argument. */
static void a_call_names_nothing_of_the_host(void **state)
{
	static const char *const keys[] = { "profile",    "id",        "command", "artifacts",
					    "executable", "args_json", "file",    "timeout" };
	struct fixture *f = *state;
	char arguments[256];

	for (size_t i = 0; i < settings_count; i++) {
		if (!settings[i].key || strcmp(settings[i].key, "memory") == 0)
			continue;
		(void)snprintf(arguments, sizeof(arguments), "{\"code\":\"x\",\"%s\":\"/etc\"}",
			       settings[i].key);
		assert_int_equal(write_call(f, arguments), -EINVAL);
	}
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		(void)snprintf(arguments, sizeof(arguments), "{\"code\":\"x\",\"%s\":\"y\"}",
			       keys[i]);
		assert_int_equal(write_call(f, arguments), -EINVAL);
	}
}

static void the_command_line_is_part_of_every_request(void **state)
{
	struct fixture *f = *state;

	give(f, "ro-bind", "/srv/data");
	give(f, "env", "A=b");
	give(f, "allow", "example.org");
	assert_int_equal(write_call(f, "{\"code\":\"x\"}"), 0);
	assert_non_null(strstr(f->text, "\"ro_bind\":[\"/srv/data\"]"));
	assert_non_null(strstr(f->text, "\"env\":{\"A\":\"b\"}"));
	assert_non_null(strstr(f->text, "\"allow\":[\"example.org\"]"));
	assert_null(strstr(f->text, "\"memory\""));
}

static void a_call_lowers_what_the_command_line_gives(void **state)
{
	struct fixture *f = *state;

	give(f, "timeout", "20s");
	give(f, "allow", "example.org");
	assert_int_equal(write_call(f, "{\"code\":\"x\",\"timeout_seconds\":1.5,\"memory\":\"64M\","
				       "\"network\":\"none\"}"),
			 0);
	assert_non_null(strstr(f->text, "\"timeout\":\"1500ms\""));
	assert_non_null(strstr(f->text, "\"memory\":\"64M\""));
	assert_non_null(strstr(f->text, "\"network\":{\"mode\":\"none\"}"));
	/* the next call has the command line's values again */
	assert_int_equal(write_call(f, "{\"code\":\"x\"}"), 0);
	assert_non_null(strstr(f->text, "\"timeout\":\"20s\""));
	assert_non_null(strstr(f->text, "example.org"));
}

/* --- ceilings ----------------------------------------------------------------- */

static const struct mcp_tool runs[] = {
	{ .name = "run_python",
	  .profile = "python",
	  .limits = { .wall_ms = 30000, .memory_bytes = 512u << 20 },
	  .has_network = true,
	  .has_sessions = true },
	{ .name = "run_shell",
	  .profile = "shell",
	  .limits = { .wall_ms = 5000, .memory_bytes = 64u << 20 },
	  .has_network = true,
	  .has_sessions = true },
};

/* What each argument may do.  One without `above` is the program's, or bounded by the API. */
static const struct bounded {
	const char *name, *above, *same;
} arguments[] = {
	{ .name = "offset" },
	{ .name = "length" },
	{ "timeout_seconds", "30.001", "30" },
	{ "memory", "\"536870913\"", "\"512M\"" },
	{ "network", "\"public\"", "\"none\"" },
	{ .name = "allow" }, /* session_network_create() */
	{ .name = "deny" },
	{ .name = "code" },
	{ .name = "command" },
	{ .name = "args" },
	{ .name = "argv" },
	{ .name = "stdin" },
	{ .name = "files" },
	{ .name = "session" },
	{ .name = "profile" }, /* of those that have a tool */
	{ .name = "context" },
	{ .name = "lease_seconds" }, /* sessions_check_ceilings() */
	{ .name = "path" },          /* below /box or /tmp of the session */
	{ .name = "text" },
	{ .name = "base64" },
	{ .name = "executable" },
	{ .name = "offset" }, /* a place in a file */
	{ .name = "length" }, /* bytes of an answer, which has its own maximum */
};

static const struct bounded *find_bounded(const char *name)
{
	for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++)
		if (strcmp(arguments[i].name, name) == 0)
			return &arguments[i];
	return NULL;
}

static void init_tool(struct mcp_tool *out, enum mcp_tool_kind kind)
{
	*out = runs[0];
	if (kind != MCP_TOOL_RUN)
		mcp_tool_init_session(out, kind, "", runs, 2);
}

/* The properties of its input schema. */
static const struct json_node *list_properties(const struct mcp_tool *t, struct arena *a)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const struct json_node *root = NULL;
	struct cj_error err = { 0 };
	struct blob text = { 0 };

	assert_int_equal(mcp_tools_put(w, t, 1, MCP_ERA_LEGACY, &err), 0);
	assert_int_equal(json_writer_take(w, &text, &err), 0);
	assert_int_equal(json_parse_capped("tool", text.bytes, text.size, a, &root, &err), 0);
	return json_get(json_get(root, "inputSchema"), "properties");
}

static int call_with(struct fixture *f, const char *name, const char *value)
{
	static const char *const needed[] = {
		[MCP_TOOL_RUN] = "\"code\":\"x\"",
		[MCP_TOOL_SESSION_CREATE] = "\"profile\":\"python\"",
		[MCP_TOOL_SESSION_EXEC] = "\"code\":\"x\",\"session\":\"S\"",
		[MCP_TOOL_SESSION_NETWORK] = "\"session\":\"S\"",
	};
	char text[256];

	(void)snprintf(text, sizeof(text), "{\"%s\":%s,%s}", name, value, needed[f->tool->kind]);
	return write_call(f, text);
}

static void no_argument_of_a_tool_goes_one_step_above_its_limit(void **state)
{
	struct fixture *f = *state;

	f->session_profile = "python";
	for (size_t i = 0; i < MCP_TOOL_KIND_COUNT; i++) {
		auto_arena struct arena a = { 0 };
		struct mcp_tool t;
		init_tool(&t, (enum mcp_tool_kind)i);
		f->tool = &t;
		const struct json_node *properties = list_properties(&t, &a);
		assert_non_null(properties);
		for (const struct json_node *n = properties->child; n; n = n->next) {
			const struct bounded *b = find_bounded(n->key);
			if (!b)
				fail_msg("%s of %s: the table does not say what it may do", n->key,
					 t.name);
			if (!b->above)
				continue;
			assert_true(i == MCP_TOOL_SESSION_NETWORK ||
				    i <=
					MCP_TOOL_SESSION_EXEC); /* a new tool: add how to call it */
			if (call_with(f, b->name, b->above) == 0)
				fail_msg("%s takes %s: %s", t.name, b->name, b->above);
			assert_non_null(strstr(f->text, b->name));
			if (call_with(f, b->name, b->same) < 0)
				fail_msg("%s refuses %s: %s", t.name, b->name, f->text);
		}
		/* no setting has a way in by its own name */
		for (size_t k = 0; i <= MCP_TOOL_SESSION_EXEC && k < settings_count; k++)
			if (settings[k].key && !json_get(properties, settings[k].key))
				assert_true(call_with(f, settings[k].key, "1") < 0);
	}
	f->tool = &tool;
}

static void the_tools_of_sessions_have_the_limits_of_the_sessions_profile(void **state)
{
	static const struct {
		enum mcp_tool_kind kind;
		const char *profile, *arguments, *part;
	} rows[] = {
		{ MCP_TOOL_SESSION_CREATE, NULL, "{\"profile\":\"shell\",\"memory\":\"65M\"}",
		  "'memory': 65M is above the limit of this tool, which is 64M (ask for 64M or "
		  "less" },
		{ MCP_TOOL_SESSION_CREATE, NULL, "{\"memory\":\"4G\",\"profile\":\"shell\"}",
		  "which is 64M" },
		{ MCP_TOOL_SESSION_CREATE, NULL, "{\"memory\":\"512M\",\"profile\":\"python\"}",
		  NULL },
		{ MCP_TOOL_SESSION_EXEC, "python",
		  "{\"session\":\"S\",\"code\":\"x\",\"timeout_seconds\":30}", NULL },
		{ MCP_TOOL_SESSION_EXEC, "shell",
		  "{\"session\":\"S\",\"code\":\"x\",\"timeout_seconds\":30}", "which is 5s" },
		{ MCP_TOOL_SESSION_EXEC, NULL,
		  "{\"session\":\"S\",\"code\":\"x\",\"timeout_seconds\":6}", "which is 5s" },
		{ MCP_TOOL_SESSION_EXEC, "other",
		  "{\"session\":\"S\",\"code\":\"x\",\"timeout_seconds\":6}", "which is 5s" },
		{ MCP_TOOL_SESSION_EXEC, NULL,
		  "{\"session\":\"S\",\"code\":\"x\",\"timeout_seconds\":5}", NULL },
	};
	struct fixture *f = *state;
	struct mcp_tool t;

	f->tool = &t;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		init_tool(&t, rows[i].kind);
		f->session_profile = rows[i].profile;
		int rc = write_call(f, rows[i].arguments);
		if ((rc == 0) != (rows[i].part == NULL) ||
		    (rc < 0 && !strstr(f->text, rows[i].part)))
			fail_msg("%s: %s", rows[i].arguments, f->text);
	}
	/* a server without a tool of a profile allows nothing */
	mcp_tool_init_session(&t, MCP_TOOL_SESSION_EXEC, "", runs, 0);
	assert_true(write_call(f, rows[7].arguments) < 0);
	f->tool = &tool;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_call_becomes_a_request),
		TEST(wrong_arguments_are_refused_with_what_to_change),
		TEST(a_call_names_nothing_of_the_host),
		TEST(the_command_line_is_part_of_every_request),
		TEST(a_call_lowers_what_the_command_line_gives),
		TEST(no_argument_of_a_tool_goes_one_step_above_its_limit),
		TEST(the_tools_of_sessions_have_the_limits_of_the_sessions_profile),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
