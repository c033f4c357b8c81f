/* SPDX-License-Identifier: Apache-2.0 */
/* Which tools of a server are offered, and what code calls them. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/front/mcp/upstream/tool_choice.h"

static void a_pattern_matches_the_whole_name(void **state)
{
	static const struct {
		const char *pattern, *name;
		bool matches;
	} rows[] = {
		{ "a", "a", true },      { "a", "ab", false },         { "a", "", false },
		{ "*", "", true },       { "*", "abc", true },         { "a*", "a", true },
		{ "a*c", "abbc", true }, { "a*c", "abcb", false },     { "*b*", "abc", true },
		{ "a?c", "abc", true },  { "a?c", "ac", false },       { "?", "", false },
		{ "**a**", "a", true },  { "a*b*c", "aXbYbZc", true }, { "get_*", "get", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (tool_choice_matches(rows[i].pattern, rows[i].name) != rows[i].matches)
			fail_msg("'%s' and '%s'", rows[i].pattern, rows[i].name);
	assert_true(tool_choice_is_pattern("a-b_c.d/*?"));
	assert_false(tool_choice_is_pattern(""));
	assert_false(tool_choice_is_pattern("a b"));
	assert_false(tool_choice_is_pattern("[a]"));
	assert_false(tool_choice_is_pattern("a\\*"));
}

/* The tools "read", marked read-only, and "write". */
static int choose(const char *allow, const char *deny, bool out[2], struct cj_error *err)
{
	static const char text[] = "[{\"annotations\": {\"readOnlyHint\": true}}, {}]";
	auto_arena struct arena a = { 0 };
	const struct json_node *root = NULL;
	struct server_spec server = { .name = "files" };

	*err = (struct cj_error){ 0 };
	assert_int_equal(json_parse("tools", text, strlen(text), &a, &root, err), 0);
	assert_true(!allow || strings_add(&server.allow, &a, allow) == 0);
	assert_true(!deny || strings_add(&server.deny, &a, deny) == 0);
	struct upstream_tool tools[] = { { .node = root->child, .name = "read" },
					 { .node = root->child->next, .name = "write" } };
	int rc = tool_choice_make(&server, tools, 2, err);
	for (size_t i = 0; i < 2; i++)
		out[i] = tools[i].is_offered;
	return rc;
}

static void read_only_tools_are_offered_and_others_must_be_allowed(void **state)
{
	static const struct {
		const char *allow, *deny;
		bool read, write;
	} rows[] = {
		{ NULL, NULL, true, false },     { "write", NULL, true, true },
		{ "*", NULL, true, true },       { NULL, "read", false, false },
		{ "write", "re*", false, true }, { NULL, "*", false, false },
	};
	struct cj_error err;
	bool offered[2];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(choose(rows[i].allow, rows[i].deny, offered, &err), 0);
		assert_int_equal(offered[0], rows[i].read);
		assert_int_equal(offered[1], rows[i].write);
	}
}

static void a_contradiction_and_a_pattern_without_a_tool_are_errors(void **state)
{
	struct cj_error err;
	bool offered[2];

	(void)state;
	assert_true(choose("w*", "*te", offered, &err) < 0);
	assert_string_equal(err.msg, "the tool 'write' of the server 'files' is allowed by 'w*' "
				     "and denied by '*te'");
	assert_string_not_equal(err.hint, "");
	assert_true(choose("wirte", NULL, offered, &err) < 0);
	assert_string_equal(err.msg, "the server 'files' has no tool that the \"allow\" pattern "
				     "'wirte' matches");
	assert_non_null(strstr(err.hint, "'read'"));
	assert_true(choose(NULL, "x*", offered, &err) < 0);
	assert_non_null(strstr(err.msg, "\"deny\" pattern 'x*'"));
	assert_false(offered[0] || offered[1]);
}

static bool is_known(const void *context, const char *name)
{
	for (const char *const *at = context; *at; at++)
		if (strcmp(*at, name) == 0)
			return true;
	return false;
}

static void names_are_mangled_predictably(void **state)
{
	static const char *const taken[] = { "a.b", "a.b_2", NULL };
	static const struct {
		const char *server, *tool, *name;
	} rows[] = {
		{ "github", "search", "github.search" },
		{ "my.server", "a.b c", "my_server.a.b_c" },
		{ "-x", "y", "_-x.y" },
		{ "\xc3\xa4", "\xe2\x82\xac", "_._" },
		{ "a", "b", "a.b_3" },
	};
	auto_arena struct arena a = { 0 };
	char longest[200];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(
		    tool_choice_name(rows[i].server, rows[i].tool, &a, is_known, taken),
		    rows[i].name);
	memset(longest, 'x', sizeof(longest));
	longest[128] = '\0';
	const char *cut = tool_choice_name("s", longest, &a, is_known, taken);
	assert_int_equal(strlen(cut), TOOL_CHOICE_NAME_MAX);
	const char *const now_taken[] = { cut, NULL };
	const char *second = tool_choice_name("s", longest, &a, is_known, now_taken);
	assert_int_equal(strlen(second), TOOL_CHOICE_NAME_MAX);
	assert_string_equal(second + TOOL_CHOICE_NAME_MAX - 3, "x_2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pattern_matches_the_whole_name),
		cmocka_unit_test(read_only_tools_are_offered_and_others_must_be_allowed),
		cmocka_unit_test(a_contradiction_and_a_pattern_without_a_tool_are_errors),
		cmocka_unit_test(names_are_mangled_predictably),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
