/* SPDX-License-Identifier: Apache-2.0 */
/* What the modules of a program call its tools. */
#include "profiles/plan/plan.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/base/scope.h"

/* The tools, with the names of `text`, apart by spaces. */
static void read_tools(const char *text, struct arena *a, struct tool_list *out)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const struct json_node *root = NULL;
	struct cj_error err = { 0 };
	struct blob json = { 0 };

	json_open_array(w);
	for (size_t n; *text; text += n + (text[n] == ' ')) {
		n = strcspn(text, " ");
		json_open_object(w);
		json_member_text(w, "name", arena_strndup(a, text, n));
		json_close_object(w);
	}
	json_close_array(w);
	assert_int_equal(json_writer_take(w, &json, &err), 0);
	assert_int_equal(json_parse_capped("tools", json.bytes, json.size, a, &root, &err), 0);
	assert_int_equal(tool_list_read("tools", root, a, out, &err), 0);
}

static const struct json_node *names_of(const struct tool_list *tools, struct arena *a)
{
	const struct json_node *root = NULL;
	struct cj_error err = { 0 };

	assert_int_equal(json_parse_capped("tools.json", tools->catalogue, tools->catalogue_size, a,
					   &root, &err),
			 0);
	return json_get_typed(root, "names", JSON_ARRAY);
}

static void assert_names(const char *text, const char *expected)
{
	auto_arena struct arena a = { 0 };
	struct tool_list tools;
	char found[4096] = "";
	size_t size = 0;

	read_tools(text, &a, &tools);
	const struct json_node *names = names_of(&tools, &a);
	for (const struct json_node *n = names->child; n; n = n->next)
		size += (size_t)snprintf(found + size, sizeof(found) - size, "%s%s",
					 size > 0 ? " " : "", n->text);
	assert_string_equal(found, expected);
}

static void a_name_is_one_of_python_and_of_javascript(void **state)
{
	(void)state;
	assert_names("add github.search a-b/c x.a.b-c/d", "add github.search a_b_c x.a_b_c_d");
	assert_names("1a x.2 y. z..", "_1a x._2 y._ z._");
	assert_names("class then globalThis x.class x.then", "class_ then_ globalThis_ x.class_ "
							     "x.then_");
	assert_names("__all__ x.__init__ _ __", "__all___ x.__init___ _ ___");
	/* the module has its own names, a server has none */
	assert_names("call tools x.call x.tools", "call_ tools_ x.call x.tools");
}

static void names_that_would_be_the_same_get_numbers(void **state)
{
	(void)state;
	assert_names("a-b a_b a/b", "a_b a_b_2 a_b_3");
	assert_names("a a.b a.c a/.d", "a a_2.b a_2.c a_.d");
	assert_names("x.a-b x.a_b y.a-b", "x.a_b x.a_b_2 y.a_b");
	assert_names("a_2 a-b a_b_2 a_b a/b a_b_4", "a_2 a_b a_b_2 a_b_3 a_b_4 a_b_4_2");
	assert_names("call_ call", "call_ call__2");
}

static void the_names_of_servers_are_exported_once(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct tool_list tools;

	read_tools("a-b.x c a-b.y a_b.z", &a, &tools);
	assert_int_equal(tools.exports.count, 3);
	assert_string_equal(tools.exports.items[0], "a_b");
	assert_string_equal(tools.exports.items[1], "c");
	assert_string_equal(tools.exports.items[2], "a_b_2");
}

/* The hard case of a list that somebody else has made: half of the numbers are taken. */
static void a_thousand_names_that_are_alike_are_named(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct tool_list tools;
	char text[16384] = "";
	size_t size = 0;

	for (unsigned i = 2; i < 512; i++)
		size += (size_t)snprintf(text + size, sizeof(text) - size, "s.a________%u ", i);
	for (unsigned i = 0; i < 512; i++) {
		char *at = text + size;
		size += (size_t)snprintf(at, sizeof(text) - size, "s.a%09u ", i);
		for (unsigned bit = 0; bit < 9; bit++)
			at[3 + bit] = (i >> bit & 1) != 0 ? '-' : '_';
	}
	read_tools(text, &a, &tools);
	const struct json_node *names = names_of(&tools, &a);
	assert_int_equal(names->count, 1022);
	for (const struct json_node *n = names->child; n; n = n->next)
		for (const struct json_node *m = n->next; m; m = m->next)
			assert_string_not_equal(n->text, m->text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_one_of_python_and_of_javascript),
		cmocka_unit_test(names_that_would_be_the_same_get_numbers),
		cmocka_unit_test(the_names_of_servers_are_exported_once),
		cmocka_unit_test(a_thousand_names_that_are_alike_are_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
