/* SPDX-License-Identifier: Apache-2.0 */
/* json_template: what each notation becomes. */
#include "runtime/base/json/json_template.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct {
	int number;
	const char *name;
} table[] = { { 1, "one" }, { 2, "two" } };

static void expect(const char *file, const char *expected)
{
	static const struct json_value values[] = {
		{ "none", JSON_VALUE_NONE },
		{ "text", JSON_VALUE_TEXT, .text = "a {none} \"b\"" },
		{ "yes", JSON_VALUE_BOOL, .number = 1 },
		{ "no", JSON_VALUE_BOOL, .number = 0 },
		{ "seven", JSON_VALUE_U64, .number = 7 },
		{ "half", JSON_VALUE_MILLI, .number = 500 },
		{ "names", JSON_VALUE_TEXTS, .texts = &table[0].name, .stride = sizeof(table[0]),
		  .count = 2 },
		{ "empty", JSON_VALUE_TEXTS, .stride = sizeof(table[0]) },
	};
	struct json_template t = { "file", NULL, values, sizeof(values) / sizeof(values[0]) };
	auto_arena struct arena a = { 0 };
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct cj_error err = { 0 };
	struct blob text = { 0 };

	assert_non_null(w);
	assert_int_equal(json_parse("file", file, strlen(file), &a, &t.root, &err), 0);
	assert_int_equal(json_template_write(w, &t, "it", &err), 0);
	assert_int_equal(json_writer_take(w, &text, &err), 0);
	assert_string_equal(text.bytes, expected);
}

static void a_value_keeps_its_type(void **state)
{
	(void)state;
	expect("{\"it\": [\"{text}\", \"{yes}\", \"{no}\", \"{seven}\", \"{half}\", \"{names}\"]}",
	       "[\"a {none} \\\"b\\\"\",true,false,7,0.5,[\"one\",\"two\"]]");
	expect("{\"it\": {\"a\": \"{empty}\", \"b\": [1.50, null, \"x\"]}}",
	       "{\"a\":[],\"b\":[1.50,null,\"x\"]}");
}

static void without_its_value_a_member_or_item_is_left_out(void **state)
{
	(void)state;
	expect("{\"it\": {\"a\": \"{none}\", \"b\": [\"{none}\", 1], \"//\": \"c\"}}",
	       "{\"b\":[1]}");
	expect(
	    "{\"it\": [{\"if\": \"no\", \"then\": 1}, {\"if\": \"none\", \"then\": 2}, "
	    "{\"if\": \"yes\", \"then\": {\"a\": \"{seven}\"}}, {\"if\": \"text\", \"then\": []}]}",
	    "[{\"a\":7},[]]");
}

static void a_text_has_values_and_parts(void **state)
{
	(void)state;
	expect("{\"it\": \"<{text}>, {text}\"}", "\"<a {none} \\\"b\\\">, a {none} \\\"b\\\"\"");
	expect("{\"it\": {\"say\": [\"a\", {\"if\": \"no\", \"say\": \"b\"}, "
	       "{\"if\": \"text\", \"say\": \" {text}\"}, \".\"]}}",
	       "\"a a {none} \\\"b\\\".\"");
}

static void a_group_stands_for_its_members(void **state)
{
	(void)state;
	expect("{\"groups\": {\"g\": {\"a\": \"{seven}\", \"b\": {\"if\": \"no\", \"then\": 1}}},"
	       " \"it\": {\"x\": 1, \"use g\": true, \"y\": 2}}",
	       "{\"x\":1,\"a\":7,\"y\":2}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_value_keeps_its_type),
		cmocka_unit_test(without_its_value_a_member_or_item_is_left_out),
		cmocka_unit_test(a_text_has_values_and_parts),
		cmocka_unit_test(a_group_stands_for_its_members),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
