/* SPDX-License-Identifier: Apache-2.0 */
/* json: what is read, what is refused and where, what is written. */
/* WRAP: arena_alloc arena_strndup calloc realloc */
#include "runtime/base/json/json.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/base/scope.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static int allocations_left = -1; /* -1: as many as you like */
static bool is_realloc_refused;   /* of the writer; yajl's reader has no answer to that */

static bool may_allocate(void)
{
	return allocations_left < 0 || allocations_left-- > 0;
}

void *__real_arena_alloc(struct arena *a, size_t size);
void *__wrap_arena_alloc(struct arena *a, size_t size);
void *__wrap_arena_alloc(struct arena *a, size_t size)
{
	return may_allocate() ? __real_arena_alloc(a, size) : NULL;
}

char *__real_arena_strndup(struct arena *a, const char *text, size_t size);
char *__wrap_arena_strndup(struct arena *a, const char *text, size_t size);
char *__wrap_arena_strndup(struct arena *a, const char *text, size_t size)
{
	return may_allocate() ? __real_arena_strndup(a, text, size) : NULL;
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
	return may_allocate() ? __real_calloc(count, size) : NULL;
}

void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size)
{
	return is_realloc_refused ? NULL : __real_realloc(memory, size);
}

static const struct json_node *read_good(const char *text, struct arena *a)
{
	const struct json_node *node = NULL;
	struct cj_error err = { 0 };

	if (json_parse("f.json", text, strlen(text), a, &node, &err) != 0)
		fail_msg("%s", err.msg);
	assert_non_null(node);
	return node;
}

/* A copy without a NUL behind it, so that asan sees who looks past the end. */
static int read_exactly(const char *text, size_t size, struct cj_error *err)
{
	const struct json_node *node = NULL;
	auto_arena struct arena a = { 0 };
	auto_free char *copy = malloc(size ? size : 1);

	assert_non_null(copy);
	memcpy(copy, text, size);
	int rc = json_parse("f.json", copy, size, &a, &node, err);
	assert_true((rc == 0) == (node != NULL));
	assert_true(rc == 0 || rc == -err->code);
	return rc;
}

static void a_tree_has_every_kind_of_value(void **state)
{
	auto_arena struct arena a = { 0 };
	const struct json_node *root, *list;
	(void)state;

	root = read_good(
	    "{\"n\": null, \"t\": true, \"f\": false, \"i\": -12, \"s\": \"x\", \"l\": [1, "
	    "\"two\", {}], \"o\": {\"k\": 1}}",
	    &a);
	assert_int_equal(root->type, JSON_OBJECT);
	assert_int_equal(root->count, 7);
	assert_null(root->key);
	assert_null(root->next);
	assert_int_equal(json_get(root, "n")->type, JSON_NULL);
	assert_true(json_get(root, "t")->type == JSON_BOOL && json_get(root, "t")->boolean);
	assert_true(json_get(root, "f")->type == JSON_BOOL && !json_get(root, "f")->boolean);
	assert_int_equal(json_get(root, "i")->type, JSON_NUMBER);
	assert_string_equal(json_get(root, "i")->text, "-12");
	assert_string_equal(json_get(root, "s")->text, "x");
	assert_string_equal(json_get(json_get(root, "o"), "k")->text, "1");
	assert_null(json_get(root, "k"));

	list = json_get(root, "l");
	assert_true(list->type == JSON_ARRAY && list->count == 3);
	assert_null(list->child->key);
	assert_string_equal(list->child->text, "1");
	assert_string_equal(list->child->next->text, "two");
	assert_int_equal(list->child->next->next->type, JSON_OBJECT);
	assert_null(list->child->next->next->child);
	assert_null(list->child->next->next->next);
}

static void numbers_keep_their_text(void **state)
{
	static const char *const numbers[] = { "0",
					       "-0",
					       "1.50",
					       "1e400",
					       "1E+2",
					       "9223372036854775808",
					       "123456789012345678901234567890",
					       "0.1e-7" };
	auto_arena struct arena a = { 0 };
	char text[64];
	(void)state;

	for (size_t i = 0; i < COUNT(numbers); i++) {
		(void)snprintf(text, sizeof(text), "[%s]", numbers[i]);
		assert_string_equal(read_good(text, &a)->child->text, numbers[i]);
		assert_string_equal(read_good(numbers[i], &a)->text, numbers[i]); /* at the end */
	}
}

static void escapes_become_characters(void **state)
{
	auto_arena struct arena a = { 0 };
	(void)state;

	assert_string_equal(read_good("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", &a)->text,
			    "\"\\/\b\f\n\r\t");
	assert_string_equal(read_good("\"\\u0041\\u00fc\\u20AC\"", &a)->text,
			    "A\xc3\xbc\xe2\x82\xac");
	assert_string_equal(read_good("\"\\ud83d\\ude00!\"", &a)->text, "\xf0\x9f\x98\x80!");
	assert_string_equal(read_good("\"\\uDBFF\\uDFFF\"", &a)->text, "\xf4\x8f\xbf\xbf");
	assert_string_equal(read_good("\"\\\\u0000\"", &a)->text, "\\u0000"); /* no escape */
	assert_string_equal(read_good("\"\\\\\\\\ud800\"", &a)->text, "\\\\ud800");
	assert_string_equal(read_good("{\"\\u006b\": 1}", &a)->child->key, "k");
}

static void any_value_may_stand_alone(void **state)
{
	static const char *const texts[] = { "null",         "true",  "false", "0",  "12",
					     "-1.5e3",       "\"s\"", "\"\"",  "[]", "{}",
					     " \t\r\n[ ]\n", "null ", "7\n" };
	struct cj_error err = { 0 };
	(void)state;

	for (size_t i = 0; i < COUNT(texts); i++) {
		if (read_exactly(texts[i], strlen(texts[i]), &err) != 0)
			fail_msg("%s: %s", texts[i], err.msg);
	}
}

static void expect_place(const struct json_node *node, unsigned line, unsigned column)
{
	assert_non_null(node);
	assert_int_equal(node->line, line);
	assert_int_equal(node->column, column);
}

static void every_value_knows_its_place(void **state)
{
	auto_arena struct arena a = { 0 };
	const struct json_node *root, *list;
	(void)state;

	root = read_good("\n {\"a\" : 12,\n  \"\xc3\xbc\\u00fc\":\"\xe2\x82\xac\\n\", \"c\":[\r\n"
			 "\ttrue ,\n\n[ ] , {\"d\"\n:\nnull}\n] }",
			 &a);
	expect_place(root, 2, 2);
	expect_place(json_get(root, "a"), 2, 9);
	expect_place(json_get(root, "\xc3\xbc\xc3\xbc"), 3, 13); /* characters, not bytes */
	list = json_get(root, "c");
	expect_place(list, 3, 24);
	expect_place(list->child, 4, 2);
	expect_place(list->child->next, 6, 1);
	expect_place(list->child->next->next, 6, 7);
	expect_place(list->child->next->next->child, 8, 1);
	assert_int_equal(json_get(root, "a")->key_line, 2);
	assert_int_equal(json_get(root, "a")->key_column, 3);
	assert_int_equal(list->key_line, 3);
	assert_int_equal(list->key_column, 20);
	assert_int_equal(list->child->next->next->child->key_line, 6);
	assert_int_equal(root->key_line, 0);
	assert_int_equal(list->child->key_line, 0);
}

static void a_number_at_the_very_end_knows_its_place(void **state)
{
	auto_arena struct arena a = { 0 };
	(void)state;

	expect_place(read_good("\n  12", &a), 2, 3);
	expect_place(read_good(" true", &a), 1, 2);
	expect_place(read_good("12\n", &a), 1, 1);
}

static void a_refusal_names_file_line_and_column(void **state)
{
	auto_arena struct arena a = { 0 };
	struct cj_error err = { 0 };
	const struct json_node *root = read_good("{\n \"memory\": \"12X\"}", &a);
	(void)state;

	assert_int_equal(json_reject("f.json", root->child, &err, "%s: no", root->child->key),
			 -EINVAL);
	assert_string_equal(err.msg, "f.json:2:12: memory: no");
}

struct refused {
	const char *text, *message;
};

static void expect_refused(const struct refused *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct cj_error err = { 0 };

		if (read_exactly(rows[i].text, strlen(rows[i].text), &err) != -EINVAL)
			fail_msg("taken: %s", rows[i].text);
		if (strncmp(err.msg, "f.json:", 7) != 0 ||
		    strncmp(err.msg + 7, rows[i].message, strlen(rows[i].message)) != 0)
			fail_msg("%s: %s", rows[i].text, err.msg);
	}
}

static void broken_grammar_is_refused_where_it_breaks(void **state)
{
	static const struct refused rows[] = {
		{ "", "1:1: the text ends too early" },
		{ " \n ", "2:2: the text ends too early" },
		{ "{", "1:2: the text ends too early" },
		{ "[1,", "1:4: the text ends too early" },
		{ "[1", "1:3: the text ends too early" },
		{ "[1 2", "1:4: after array element" },
		{ "{\"a\":", "1:6: the text ends too early" },
		{ "[\"abc", "1:2: the text ends inside what begins here" },
		{ "[tru", "1:2: " },
		{ "[1,\n@]", "2:1: " },
		{ "[1,\n ,2]", "2:2: unallowed token" },
		{ "[,1]", "1:2: unallowed token" },
		{ "[1,]", "1:4: " },
		{ "{\"a\":1,}", "1:8: " },
		{ "{\"a\" 1}", "1:6: object key and value must be separated by a colon" },
		{ "{\"a\" \"b\"}", "1:6: object key" },
		{ "{\"a\"::1}", "1:6: unallowed token" },
		{ "{\"a\":1 \"b\":2}", "1:8: after key and value" },
		{ "{a:1}", "1:2: " },
		{ "{1:1}", "1:2: " },
		{ "{'a':1}", "1:2: " },
		{ "[1 2]", "1:4: after array element" },
		{ "[1}", "1:3: after array element" },
		{ "{\"a\":1]", "1:7: after key and value" },
		{ "]", "1:1: unallowed token" },
		{ "[nul]", "1:2: " },
		{ "[nulll]", "1:6: " },
		{ "[True]", "1:2: " },
		{ "[NaN]", "1:2: " },
		{ "[Infinity]", "1:2: " },
		{ "[01]", "1:3: " },
		{ "[+1]", "1:2: " },
		{ "[1.]", "1:2: " },
		{ "[.5]", "1:2: " },
		{ "[-]", "1:2: " },
		{ "[1e]", "1:2: " },
		{ "[0x10]", "1:3: " },
		{ "[\"a\nb\"]", "1:2: " },
		{ "[\"\\q\"]", "1:2: " },
		{ "[\"\\u00g0\"]", "1:2: " },
		{ "[\"\\u12\"]", "1:2: " },
	};
	(void)state;

	expect_refused(rows, COUNT(rows));
}

static void trailing_data_and_comments_are_refused(void **state)
{
	static const struct refused rows[] = {
		{ "{} {}", "1:4: trailing garbage" },
		{ "1 2", "1:3: trailing garbage" },
		{ "null\n\nx", "3:1: " },
		{ "[],", "1:3: trailing garbage" },
		{ "{}]", "1:3: trailing garbage" },
		{ "{} \"", "1:4: trailing garbage" }, /* yajl lets these four pass */
		{ "{}\n\"a", "2:1: trailing garbage" },
		{ "1\"2", "1:2: trailing garbage" },
		{ "\"\"\"", "1:3: trailing garbage" },
		{ "/* c */ 1", "1:1: probable comment" },
		{ "1 // c", "1:3: trailing garbage" },
		{ "[1, // c\n2]", "1:5: probable comment" },
		{ "[1, # c\n2]", "1:5: " },
	};
	(void)state;

	expect_refused(rows, COUNT(rows));
}

static void texts_that_yajl_accepts_wrongly_are_refused(void **state)
{
	static const struct refused rows[] = {
		{ "[\"a\\u0000b\"]", "1:4: '\\u0000' is not allowed in a string" },
		{ "{\"a\\u0000\": 1}", "1:4: '\\u0000'" },
		{ "[\"\\ud800\"]", "1:3: '\\ud800' is half of a surrogate pair" },
		{ "[\"\\udc00\"]", "1:3: '\\udc00' is half" },
		{ "[\"\\ud800\\u0041\"]", "1:3: '\\ud800' is half" },
		{ "[\"\\ud800\\ud800\"]", "1:3: '\\ud800' is half" },
		{ "[\"\\udc00\\ud800\"]", "1:3: '\\udc00' is half" },
		{ "[\n\"\\\\\\uD800 \\udc00\"]", "2:4: '\\uD800' is half" },
		{ "[\"\\ud83d\\ude0", "1:3: '\\ud83d' is half" },
		{ "[\"\xc0\xaf\"]", "1:3: byte 0xc0 is not UTF-8" },
		{ "[\"\xed\xa0\x80\"]", "1:3: byte 0xed is not UTF-8" },
		{ "[\"\xc3\xbc\xff\"]", "1:4: byte 0xff is not UTF-8" },
		{ "[1,\x0b"
		  "2]",
		  "1:4: control character 0x0b is not allowed" },
		{ "[1,\x0c"
		  "2]",
		  "1:4: control character 0x0c" },
		{ "[\"\x1b\"]", "1:3: control character 0x1b" },
		{ "\xef\xbb\xbf{}", "1:1: a byte order mark" },
	};
	struct cj_error err = { 0 };
	(void)state;

	expect_refused(rows, COUNT(rows));
	assert_int_equal(read_exactly("[\"a\0b\"]", 7, &err), -EINVAL);
	assert_string_equal(err.msg, "f.json:1:4: control character 0x00 is not allowed");
	assert_int_equal(read_exactly("{}\0", 3, &err), -EINVAL);
}

static void a_duplicate_key_is_refused_at_its_second_place(void **state)
{
	static const struct refused rows[] = {
		{ "{\"a\":1,\n \"a\":2}", "2:2: duplicate key 'a'" },
		{ "{\"b\":{\"x\":1, \"\\u0078\":2}}", "1:14: duplicate key 'x'" },
		{ "{\"\":1,\"\":2}", "1:7: duplicate key ''" },
	};
	auto_arena struct arena a = { 0 };
	(void)state;

	expect_refused(rows, COUNT(rows));
	(void)read_good("{\"a\":{\"a\":1}, \"b\":{\"a\":1}, \"A\":1}",
			&a); /* not the same object */
}

/* An object of n keys "k0".."k(n-1)", then one more. */
static char *many_keys(unsigned n, const char *one_more)
{
	size_t room = 16 * (size_t)n + 64, used = 0;
	char *text = malloc(room);

	assert_non_null(text);
	text[used++] = '{';
	for (unsigned i = 0; i < n; i++)
		used += (size_t)snprintf(text + used, room - used, "\"k%u\":0,%s", i,
					 i % 100 == 99 ? "\n" : "");
	(void)snprintf(text + used, room - used, "\"%s\":0}", one_more);
	return text;
}

static void eighty_thousand_keys_are_compared(void **state)
{
	auto_arena struct arena a = { 0 };
	struct cj_error err = { 0 };
	auto_free char *good = many_keys(80000, "z");
	auto_free char *bad = many_keys(80000, "k77");
	auto_free char *few = many_keys(20, "k7");
	(void)state;

	assert_int_equal(read_good(good, &a)->count, 80001);
	assert_int_equal(read_exactly(bad, strlen(bad), &err), -EINVAL);
	assert_string_equal(err.msg, "f.json:801:1: duplicate key 'k77'");
	assert_int_equal(read_exactly(few, strlen(few), &err), -EINVAL);
	assert_non_null(strstr(err.msg, "duplicate key 'k7'"));
}

static void depth_has_a_limit(void **state)
{
	char text[2 * 40 + 1] = "";
	struct cj_error err = { 0 };
	(void)state;

	memset(text, '[', JSON_DEPTH_MAX);
	memset(text + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
	assert_int_equal(read_exactly(text, 2 * JSON_DEPTH_MAX, &err), 0);

	memset(text, '[', JSON_DEPTH_MAX + 1);
	assert_int_equal(read_exactly(text, JSON_DEPTH_MAX + 1, &err), -EINVAL);
	assert_string_equal(err.msg, "f.json:1:33: nested deeper than 32 levels");
}

static void a_million_brackets_end_at_the_limit(void **state)
{
	auto_free char *text = malloc(JSON_BYTES_MAX);
	struct cj_error err = { 0 };
	(void)state;

	assert_non_null(text);
	memset(text, '[', JSON_BYTES_MAX);
	assert_int_equal(read_exactly(text, JSON_BYTES_MAX, &err), -EINVAL);
	for (size_t i = 0; i + 5 <= JSON_BYTES_MAX; i += 5)
		memcpy(text + i, "{\"\":{", 5);
	assert_int_equal(read_exactly(text, JSON_BYTES_MAX, &err), -EINVAL);
}

/* The check reads eight bytes at a time: a bad byte is found, and counted, at each offset. */
static void places_are_right_at_every_alignment(void **state)
{
	static const char plain[] = "\"abcdefghijklmnopqrstuvwxyz\" x";
	(void)state;

	for (size_t at = 1; at < 27; at++) {
		char text[sizeof(plain)], expected[128];
		struct cj_error err = { 0 };

		memcpy(text, plain, sizeof(plain));
		text[at] = '\x1f';
		(void)snprintf(expected, sizeof(expected),
			       "f.json:1:%zu: control character 0x1f is not allowed", at + 1);
		assert_int_equal(read_exactly(text, strlen(text), &err), -EINVAL);
		assert_string_equal(err.msg, expected);

		memcpy(text, "                           1 x", sizeof(text));
		text[at] = '\n';
		(void)snprintf(expected, sizeof(expected), "f.json:2:%zu: trailing garbage",
			       29 - at);
		assert_int_equal(read_exactly(text, strlen(text), &err), -EINVAL);
		assert_string_equal(err.msg, expected);

		memcpy(text, plain, sizeof(plain));
		memcpy(text + at - (at == 26), "\xc3\xa9", 2);
		assert_int_equal(read_exactly(text, strlen(text), &err), -EINVAL);
		assert_string_equal(err.msg, "f.json:1:29: trailing garbage");

		memcpy(text, plain, sizeof(plain));
		memcpy(text + at - (at == 26), "\\q", 2);
		assert_int_equal(read_exactly(text, strlen(text), &err), -EINVAL);
		assert_non_null(strstr(err.msg, "f.json:1:1: "));
	}
}

static void size_has_a_limit(void **state)
{
	auto_free char *text = malloc(JSON_BYTES_MAX + 1);
	struct cj_error err = { 0 };
	(void)state;

	assert_non_null(text);
	memset(text, 'x', JSON_BYTES_MAX + 1);
	text[0] = text[JSON_BYTES_MAX - 1] = '"';
	assert_int_equal(read_exactly(text, JSON_BYTES_MAX, &err), 0);
	text[JSON_BYTES_MAX] = ' ';
	assert_int_equal(read_exactly(text, JSON_BYTES_MAX + 1, &err), -EFBIG);
	assert_string_equal(err.msg, "f.json: more than 1048576 bytes of JSON: File too large");

	auto_arena struct arena a = { 0 };
	const struct json_node *root;
	assert_int_equal(json_parse_capped("f.json", text, JSON_BYTES_MAX + 1, &a, &root, &err), 0);
	assert_int_equal(strlen(root->text), JSON_BYTES_MAX - 2);
}

static void values_have_a_limit(void **state)
{
	size_t size = 2 * (size_t)JSON_NODES_MAX;
	auto_free char *text = malloc(size + 2);
	struct cj_error err = { 0 };
	(void)state;

	assert_non_null(text);
	text[0] = '[';
	for (size_t i = 1; i < size; i += 2)
		memcpy(text + i, "0,", 2);
	text[size - 2] = ']'; /* JSON_NODES_MAX - 1 elements and the array */
	assert_int_equal(read_exactly(text, size - 1, &err), 0);
	memcpy(text + size - 2, ",0]", 3);
	assert_int_equal(read_exactly(text, size + 1, &err), -EFBIG);
	assert_non_null(strstr(err.msg, "f.json:1:262144: more than 131072 values"));
}

static void every_missing_byte_of_memory_is_an_error(void **state)
{
	auto_free char *text = many_keys(20, "z");
	int failures = 0;
	(void)state;

	for (int n = 0;; n++) {
		auto_arena struct arena a = { 0 };
		const struct json_node *node = NULL;
		struct cj_error err = { 0 };

		allocations_left = n;
		int rc = json_parse("f.json", text, strlen(text), &a, &node, &err);
		allocations_left = -1;
		if (rc == 0)
			break;
		assert_int_equal(rc, -ENOMEM);
		assert_string_equal(err.msg, "f.json: read JSON: Cannot allocate memory");
		assert_null(node);
		failures++;
	}
	/* Object, keys and values, their sorting; lld wraps the calls inside of arena.c, too. */
	assert_in_range(failures, 1 + 21 * 3 + 1, 2 * (1 + 21 * 3 + 1));
}

static void a_member_is_found_by_its_type(void **state)
{
	auto_arena struct arena a = { 0 };
	const struct json_node *root =
	    read_good("{\"n\": 7, \"big\": 18446744073709551616, \"t\": \"x\", \"l\": [1]}", &a);
	uint64_t value = 1;
	(void)state;

	assert_string_equal(json_get_text(root, "t"), "x");
	assert_null(json_get_text(root, "n"));
	assert_null(json_get_text(root, "none"));
	assert_null(json_get_text(NULL, "t"));
	assert_null(json_get_text(json_get(root, "l"), "t")); /* no object */
	assert_non_null(json_get_typed(root, "l", JSON_ARRAY));
	assert_null(json_get_typed(root, "l", JSON_OBJECT));
	assert_ptr_equal(json_get_items(root, "l"), json_get(root, "l")->child);
	assert_null(json_get_items(root, "t"));
	assert_int_equal(json_get_number(root, "t"), 0);
	assert_false(json_get_u64(root, "big", &value));
	assert_false(json_get_u64(root, "t", &value));
	assert_int_equal(value, 1);
	assert_true(json_get_u64(root, "n", &value));
	assert_int_equal(value, 7);
}

static void a_value_is_found_as_it_was_written(void **state)
{
	auto_arena struct arena a = { 0 };
	static const char text[] = " {\"o\" : { \"q\":[1, 2] } , \"t\":\"\\u0041\"}";
	const struct json_node *root = read_good(text, &a);
	struct blob o = json_written(json_get(root, "o"), text);
	struct blob t = json_written(json_get(root, "t"), text);
	(void)state;

	assert_int_equal(o.size, strlen("{ \"q\":[1, 2] }"));
	assert_memory_equal(o.bytes, "{ \"q\":[1, 2] }", o.size);
	assert_int_equal(t.size, strlen("\"\\u0041\""));
	assert_memory_equal(t.bytes, "\"\\u0041\"", t.size);
}

static void a_type_has_a_name_for_messages(void **state)
{
	(void)state;

	for (int type = 0; type < JSON_TYPE_COUNT; type++)
		assert_non_null(json_type_name((enum json_type)type));
	assert_string_equal(json_type_name(JSON_ARRAY), "an array");
}

static void expect_written(struct json_writer *w, const char *expected)
{
	struct cj_error err = { 0 };
	struct blob text = { 0 };

	if (json_writer_take(w, &text, &err) != 0)
		fail_msg("%s", err.msg);
	assert_string_equal(text.bytes, expected);
	assert_int_equal(text.size, strlen(expected));
	assert_int_equal(json_writer_take(w, &text, &err), 0); /* as often as you like */
	assert_int_equal(text.size, strlen(expected));
}

static void write_example(struct json_writer *w)
{
	json_open_object(w);
	json_put_key(w, "s");
	json_put_string(w, "a\"\\\n\x01\xc3\xbc/");
	json_put_key(w, "l");
	json_open_array(w);
	json_put_u64(w, UINT64_MAX);
	json_put_i64(w, INT64_MIN);
	json_put_bool(w, true);
	json_put_null(w);
	json_put_string(w, NULL);
	json_close_array(w);
	json_put_key(w, "o");
	json_open_object(w);
	json_close_object(w);
	json_close_object(w);
}

static void a_document_is_written_compact_or_pretty(void **state)
{
	auto_json_writer struct json_writer *compact = json_writer_create(false);
	auto_json_writer struct json_writer *pretty = json_writer_create(true);
	(void)state;

	write_example(compact);
	expect_written(compact,
		       "{\"s\":\"a\\\"\\\\\\n\\u0001\xc3\xbc/\",\"l\":[18446744073709551615,"
		       "-9223372036854775808,true,null,null],\"o\":{}}");
	write_example(pretty);
	expect_written(
	    pretty, "{\n  \"s\": \"a\\\"\\\\\\n\\u0001\xc3\xbc/\",\n  \"l\": [\n"
		    "    18446744073709551615,\n    -9223372036854775808,\n    true,\n    null,\n"
		    "    null\n  ],\n  \"o\": {\n\n  }\n}");
}

static void thousandths_are_written_short(void **state)
{
	static const uint64_t values[] = { 0, 1, 500, 1000, 1500, 1050, 10000, UINT64_MAX };
	auto_json_writer struct json_writer *w = json_writer_create(false);
	(void)state;

	json_open_array(w);
	for (size_t i = 0; i < COUNT(values); i++)
		json_put_milli(w, values[i]);
	json_close_array(w);
	expect_written(w, "[0,0.001,0.5,1,1.5,1.05,10,18446744073709551.615]");
}

static void bad_utf8_becomes_replacement_characters(void **state)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	(void)state;

	json_open_object(w);
	json_put_key(w, "k\xff");
	json_put_string(w, "a\xc0\xaf\xc3\xbc\xe2\x82");
	json_close_object(w);
	expect_written(
	    w, "{\"k\xef\xbf\xbd\":\"a\xef\xbf\xbd\xef\xbf\xbd\xc3\xbc\xef\xbf\xbd\xef\xbf\xbd\"}");
}

static void bytes_are_text_or_base64(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
		const char *json;
	} rows[] = {
		{ "hi\n\x1b", 4, "{\"text\":\"hi\\n\\u001B\"}" },
		{ "\x7f\xc2\x80-\xc2\x9f\xc2\xa0", 8,
		  "{\"text\":\"\\u007F\\u0080-\\u009F\xc2\xa0\"}" },
		{ NULL, 0, "{\"text\":\"\"}" },
		{ "a\0b", 3, "{\"base64\":\"YQBi\"}" },
		{ "\xff", 1, "{\"base64\":\"/w==\"}" },
		{ "\xed\xa0\x80", 3, "{\"base64\":\"7aCA\"}" },
	};
	(void)state;

	for (size_t i = 0; i < COUNT(rows); i++) {
		auto_json_writer struct json_writer *w = json_writer_create(false);

		json_open_object(w);
		json_put_bytes(w, rows[i].bytes, rows[i].size);
		json_close_object(w);
		expect_written(w, rows[i].json);
	}
}

static void a_document_is_written_as_it_was_read(void **state)
{
	static const char text[] =
	    "{\"n\":null,\"t\":true,\"f\":false,\"x\":1e400,\"s\":\"a\\u0007b\","
	    "\"l\":[[],{},[{\"k\":-0}]]}";
	auto_json_writer struct json_writer *w = json_writer_create(false);
	auto_arena struct arena a = { 0 };
	(void)state;

	json_put_node(w, read_good(text, &a));
	expect_written(w, text);
}

static void raw_json_keeps_every_byte(void **state)
{
	static const char raw[] = "{ \"a\" : 1.50e3, \"b\": \"\x7f\xc2\x80\\u0061\" }";
	auto_json_writer struct json_writer *w = json_writer_create(false);
	char expected[128];

	(void)state;
	json_open_object(w);
	json_put_key(w, "x");
	json_put_raw(w, raw, sizeof(raw) - 1);
	json_member_text(w, "y", "\x7f");
	json_close_object(w);
	(void)snprintf(expected, sizeof(expected), "{\"x\":%s,\"y\":\"\\u007F\"}", raw);
	expect_written(w, expected);
}

static void megabytes_are_written_in_one_go(void **state)
{
	const size_t size = 64u << 20;
	auto_json_writer struct json_writer *w = json_writer_create(false);
	auto_free char *bytes = malloc(size);
	struct cj_error err = { 0 };
	struct blob text = { 0 };
	(void)state;

	assert_non_null(bytes);
	memset(bytes, '\n', size); /* each needs an escape */
	json_open_object(w);
	json_put_bytes(w, bytes, size);
	json_close_object(w);
	assert_int_equal(json_writer_take(w, &text, &err), 0);
	assert_int_equal(text.size, 2 * size + strlen("{\"text\":\"\"}"));
}

static void expect_disorder(struct json_writer *w)
{
	struct cj_error err = { 0 };
	struct blob text = { 0 };

	assert_int_equal(json_writer_take(w, &text, &err), -EINVAL);
	assert_null(text.bytes);
	assert_string_equal(err.msg, "write JSON: Invalid argument");
}

static void value_without_key(struct json_writer *w)
{
	json_open_object(w);
	json_put_null(w);
	json_close_object(w);
}

static void key_without_value(struct json_writer *w)
{
	json_open_object(w);
	json_put_key(w, "k");
	json_close_object(w);
}

static void key_in_array(struct json_writer *w)
{
	json_open_array(w);
	json_put_key(w, "k");
	json_close_array(w);
}

static void two_keys(struct json_writer *w)
{
	json_open_object(w);
	json_put_key(w, "k");
	json_put_key(w, "k");
	json_put_null(w);
	json_close_object(w);
}

static void wrong_bracket(struct json_writer *w)
{
	json_open_object(w);
	json_close_array(w);
}

static void one_bracket_too_many(struct json_writer *w)
{
	json_open_array(w);
	json_close_array(w);
	json_close_array(w);
}

static void never_closed(struct json_writer *w)
{
	json_open_array(w);
}

static void two_values(struct json_writer *w)
{
	json_put_null(w);
	json_put_null(w);
}

static void nothing(struct json_writer *w)
{
	(void)w;
}

static void bytes_outside_of_an_object(struct json_writer *w)
{
	json_put_bytes(w, "x", 1);
}

static void too_deep(struct json_writer *w)
{
	for (int i = 0; i < 200; i++)
		json_open_array(w);
	for (int i = 0; i < 200; i++)
		json_close_array(w);
}

static void calls_out_of_order_are_an_error_at_the_end(void **state)
{
	static void (*const disorders[])(struct json_writer * w) = {
		value_without_key, key_without_value,          key_in_array, two_keys,
		wrong_bracket,     one_bracket_too_many,       never_closed, two_values,
		nothing,           bytes_outside_of_an_object, too_deep,
	};
	(void)state;

	for (size_t i = 0; i < COUNT(disorders); i++) {
		auto_json_writer struct json_writer *w = json_writer_create(i % 2 == 0);

		assert_non_null(w);
		disorders[i](w);
		expect_disorder(w);
	}
}

static void a_writer_without_memory_says_so_at_the_end(void **state)
{
	struct cj_error err = { 0 };
	struct blob text = { 0 };
	(void)state;

	allocations_left = 0;
	assert_null(json_writer_create(false));
	allocations_left = -1;
	write_example(NULL);
	assert_int_equal(json_writer_take(NULL, &text, &err), -ENOMEM);

	auto_json_writer struct json_writer *w = json_writer_create(false);
	is_realloc_refused = true;
	write_example(w);
	is_realloc_refused = false;
	assert_int_equal(json_writer_take(w, &text, &err), -ENOMEM);
	assert_string_equal(err.msg, "write JSON: Cannot allocate memory");
	assert_null(text.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tree_has_every_kind_of_value),
		cmocka_unit_test(numbers_keep_their_text),
		cmocka_unit_test(escapes_become_characters),
		cmocka_unit_test(any_value_may_stand_alone),
		cmocka_unit_test(every_value_knows_its_place),
		cmocka_unit_test(a_number_at_the_very_end_knows_its_place),
		cmocka_unit_test(a_refusal_names_file_line_and_column),
		cmocka_unit_test(broken_grammar_is_refused_where_it_breaks),
		cmocka_unit_test(trailing_data_and_comments_are_refused),
		cmocka_unit_test(texts_that_yajl_accepts_wrongly_are_refused),
		cmocka_unit_test(a_duplicate_key_is_refused_at_its_second_place),
		cmocka_unit_test(eighty_thousand_keys_are_compared),
		cmocka_unit_test(depth_has_a_limit),
		cmocka_unit_test(a_million_brackets_end_at_the_limit),
		cmocka_unit_test(size_has_a_limit),
		cmocka_unit_test(places_are_right_at_every_alignment),
		cmocka_unit_test(values_have_a_limit),
		cmocka_unit_test(every_missing_byte_of_memory_is_an_error),
		cmocka_unit_test(a_member_is_found_by_its_type),
		cmocka_unit_test(a_value_is_found_as_it_was_written),
		cmocka_unit_test(a_type_has_a_name_for_messages),
		cmocka_unit_test(a_document_is_written_compact_or_pretty),
		cmocka_unit_test(thousandths_are_written_short),
		cmocka_unit_test(bad_utf8_becomes_replacement_characters),
		cmocka_unit_test(bytes_are_text_or_base64),
		cmocka_unit_test(a_document_is_written_as_it_was_read),
		cmocka_unit_test(raw_json_keeps_every_byte),
		cmocka_unit_test(megabytes_are_written_in_one_go),
		cmocka_unit_test(calls_out_of_order_are_an_error_at_the_end),
		cmocka_unit_test(a_writer_without_memory_says_so_at_the_end),
	};

	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
