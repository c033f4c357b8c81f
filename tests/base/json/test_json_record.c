/* SPDX-License-Identifier: Apache-2.0 */
/* json_record: every kind of field is read and written, every mistake is refused at its place. */
#include "runtime/base/json/json_record.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define AT(member)   .offset = offsetof(struct thing, member)

static const char *const colours[] = { "red", "green" };

struct thing {
	uint64_t count, wait_ms, size;
	bool has_size;
	int code;
	bool is_on;
	const char *title;
	char tag[5], note[4];
	unsigned colour;
	struct strings words;
	struct blob bytes;
	uint64_t inner_size;
};

static const struct json_key inner_keys[] = {
	{ "size", JSON_TAKES_NUMBER, .is_required = true, .set = json_set_u64, AT(inner_size) },
};
static const struct json_record inner_record = JSON_RECORD(inner_keys, "the inner");

static const struct json_key keys[] = {
	{ "count", JSON_TAKES_NUMBER, .is_required = true, .set = json_set_u64,
	  .write = json_write_u64, AT(count), .min = 1, .max = 9 },
	{ "wait", JSON_TAKES_STRING | JSON_TAKES_NUMBER, .set = json_set_duration, AT(wait_ms) },
	{ "code", JSON_TAKES_NUMBER | JSON_TAKES_NULL, .set = json_set_int, .write = json_write_int,
	  AT(code) },
	{ "size", JSON_TAKES_NUMBER | JSON_TAKES_NULL, .set = json_set_known_u64,
	  .write = json_write_known_u64, AT(size), .known = offsetof(struct thing, has_size) },
	{ "on", JSON_TAKES_BOOL, .set = json_set_bool, .write = json_write_bool, AT(is_on) },
	{ "title", JSON_TAKES_STRING | JSON_NULL_IS_ABSENT, .set = json_set_string,
	  .write = json_write_string, AT(title), .min = 1 },
	{ "tag", JSON_TAKES_STRING, .set = json_set_chars, .write = json_write_chars, AT(tag),
	  .max = 4 },
	{ "note", JSON_TAKES_STRING, .set = json_set_chars_cut, .write = json_write_chars, AT(note),
	  .max = 3 },
	{ "colour", JSON_TAKES_STRING, .set = json_set_name, .write = json_write_name, AT(colour),
	  .detail = colours, .max = COUNT(colours) },
	{ "words", JSON_TAKES_STRING, .is_list = true, .replaces = true, .if_empty = "say more",
	  .set = json_set_strings, AT(words) },
	{ "bytes", .read = json_read_blob, AT(bytes), .max = 4 },
	{ "inner", JSON_TAKES_OBJECT, .read = json_read_record, .detail = &inner_record },
};
static const struct json_record record = JSON_RECORD(keys, "a thing");

static struct arena arena;
static struct cj_error err;

static int read_thing(const char *text, struct thing *out)
{
	const struct json_reader in = { .file = "f", .arena = &arena };
	const struct json_node *root = NULL;

	err = (struct cj_error){ 0 };
	assert_int_equal(json_parse("f", text, strlen(text), &arena, &root, &err), 0);
	return json_record_read(&in, root, &record, out, &err);
}

static void every_kind_of_field_is_read(void **state)
{
	static const char text[] =
	    "{\"count\": 9, \"wait\": \"1.5s\", \"code\": 7, \"on\": true, \"title\": \"t\","
	    " \"tag\": \"four\", \"note\": \"a\u00e4bc\", \"colour\": \"green\","
	    " \"words\": [\"a\", \"b\"], \"bytes\": {\"base64\": \"AAEC/w==\"},"
	    " \"inner\": {\"size\": 18446744073709551615}}";
	struct thing t = { .words = { .count = 3 } };
	(void)state;

	assert_int_equal(read_thing(text, &t), 0);
	assert_int_equal(t.count, 9);
	assert_int_equal(t.wait_ms, 1500);
	assert_int_equal(t.code, 7);
	assert_true(t.is_on);
	assert_string_equal(t.title, "t");
	assert_string_equal(t.tag, "four");
	assert_string_equal(t.note, "a\u00e4"); /* cut between characters */
	assert_int_equal(t.colour, 1);
	assert_int_equal(t.words.count, 2); /* its old items are gone */
	assert_string_equal(t.words.items[1], "b");
	assert_int_equal(t.bytes.size, 4);
	assert_memory_equal(t.bytes.bytes, "\0\1\2\377", 4);
	assert_true(t.inner_size == UINT64_MAX);
}

static void null_is_a_value_or_absent_as_the_row_says(void **state)
{
	struct thing t = { .code = 3, .has_size = true, .title = "kept" };
	(void)state;

	assert_int_equal(read_thing("{\"count\": 1, \"code\": null, \"size\": null,"
				    " \"title\": null}",
				    &t),
			 0);
	assert_int_equal(t.code, -1);
	assert_false(t.has_size);
	assert_string_equal(t.title, "kept");
	assert_int_equal(read_thing("{\"count\": 1, \"size\": 5}", &t), 0);
	assert_true(t.has_size && t.size == 5);
	assert_int_equal(read_thing("{\"count\": null}", &t), -EINVAL);
	assert_string_equal(err.msg, "f:1:11: count must be a number, not null");
}

static void every_mistake_is_refused_at_its_place(void **state)
{
	static const struct {
		const char *text, *message;
		int code;
	} rows[] = {
		{ "[]", "f:1:1: a thing must be an object, not an array", EINVAL },
		{ "{}", "f:1:1: count is missing", EINVAL },
		{ "{\"cuont\": 1}", "f:1:2: unknown key 'cuont'", EINVAL },
		{ "{\"count\": \"1\"}", "f:1:11: count must be a number, not a string", EINVAL },
		{ "{\"count\": 10}", "f:1:11: count: '10' is too large; at most 9", EINVAL },
		{ "{\"count\": 1e0}", "f:1:11: count: ", EINVAL },
		{ "{\"wait\": true}", "wait must be a string or a number, not true or false",
		  EINVAL },
		{ "{\"wait\": \"x\"}", "f:1:10: wait: 'x'", EINVAL },
		{ "{\"code\": 2147483648}", "f:1:10: code: ", EINVAL },
		{ "{\"code\": -1}", "f:1:10: code: ", EINVAL },
		{ "{\"on\": 1}", "on must be true or false, not a number", EINVAL },
		{ "{\"title\": \"\"}", "f:1:11: title: the value is empty", EINVAL },
		{ "{\"tag\": \"fives\"}", "tag: 'fives...' has 5 bytes, the maximum is 4", EINVAL },
		{ "{\"colour\": \"blue\"}", "f:1:12: colour: there is no 'blue'", EINVAL },
		{ "{\"words\": \"a\"}", "words must be an array of strings, not a string", EINVAL },
		{ "{\"words\": [\"a\", 1]}", "f:1:17: words must be an array of strings, not a",
		  EINVAL },
		{ "{\"words\": []}", "f:1:11: words must not be empty: say more", EINVAL },
		{ "{\"bytes\": 1}", "bytes must be a string, or {\"base64\": \"...\"}", EINVAL },
		{ "{\"bytes\": {\"base64\": 1}}", "bytes must be a string, or", EINVAL },
		{ "{\"bytes\": {\"base64\": \"A\"}}", "f:1:22: bytes: this is not base64", EINVAL },
		{ "{\"bytes\": \"fives\"}", "f:1:11: bytes: more than 4 bytes", EFBIG },
		{ "{\"bytes\": {\"base64\": \"AAAAAAA=\"}}", "bytes: more than 4 bytes", EFBIG },
		{ "{\"bytes\": {\"base64\": \"AAAAAAAAAAAA\"}}", "bytes: more than 4", EFBIG },
		{ "{\"inner\": 1}", "inner must be an object, not a number", EINVAL },
		{ "{\"inner\": {}}", "f:1:11: inner.size is missing", EINVAL },
		{ "{\"inner\": {\"sise\": 1}}", "f:1:12: unknown key 'inner.sise'", EINVAL },
		{ "{\"inner\": {\"size\": \"1\"}}", "inner.size must be a number", EINVAL },
	};
	(void)state;

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct thing t = { 0 };
		int rc = read_thing(rows[i].text, &t);

		if (rc != -rows[i].code || !strstr(err.msg, rows[i].message))
			fail_msg("%s: %d: %s", rows[i].text, rc, err.msg);
	}
}

static void an_unknown_key_suggests_the_nearest_of_its_object(void **state)
{
	struct thing t = { 0 };
	(void)state;

	assert_int_equal(read_thing("{\"colur\": 1}", &t), -EINVAL);
	assert_string_equal(err.hint, "did you mean 'colour'?");
	assert_int_equal(read_thing("{\"inner\": {\"sise\": 1}}", &t), -EINVAL);
	assert_string_equal(err.hint, "did you mean 'size'?");
	assert_int_equal(read_thing("{\"something\": 1}", &t), -EINVAL);
	assert_string_equal(err.hint, "");
}

static void a_table_of_several_versions_ignores_unknown_keys(void **state)
{
	const struct json_record lenient = { keys, COUNT(keys), "a thing", true };
	const struct json_reader in = { .file = "f", .arena = &arena };
	const char text[] = "{\"newer\": [1], \"count\": 7}";
	const struct json_node *root = NULL;
	struct thing t = { 0 };
	(void)state;

	assert_int_equal(json_parse("f", text, sizeof(text) - 1, &arena, &root, &err), 0);
	assert_int_equal(json_record_read(&in, root, &lenient, &t, &err), 0);
	assert_int_equal(t.count, 7);
}

static void long_keys_are_cut_in_messages(void **state)
{
	struct json_reader in = { .file = "f", .arena = &arena };
	char key[400];
	(void)state;

	memset(key, 'k', sizeof(key) - 1);
	key[sizeof(key) - 1] = '\0';
	for (size_t i = 0; i < 3; i++)
		in = json_below(&in, key);
	assert_int_equal(strlen(in.within), JSON_PATH_MAX - 1);
}

static void a_record_is_written_as_it_is_read(void **state)
{
	const struct thing t = { .count = 2, .code = -1, .title = "t", .tag = "x", .colour = 1 };
	struct json_writer *w = json_writer_create(false);
	struct thing again = { 0 };
	struct blob text = { 0 };
	(void)state;

	json_record_write(w, &record, &t);
	assert_int_equal(json_writer_take(w, &text, &err), 0);
	assert_string_equal(text.bytes,
			    "{\"count\":2,\"code\":null,\"size\":null,\"on\":false,\"title\":\"t\","
			    "\"tag\":\"x\",\"note\":\"\",\"colour\":\"green\"}");
	assert_int_equal(read_thing(text.bytes, &again), 0);
	assert_int_equal(again.code, -1);
	assert_int_equal(again.colour, 1);
	json_writer_destroy(&w);
}

static int free_arena(void **state)
{
	(void)state;
	arena_fini(&arena);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_of_field_is_read),
		cmocka_unit_test(null_is_a_value_or_absent_as_the_row_says),
		cmocka_unit_test(every_mistake_is_refused_at_its_place),
		cmocka_unit_test(an_unknown_key_suggests_the_nearest_of_its_object),
		cmocka_unit_test(a_table_of_several_versions_ignores_unknown_keys),
		cmocka_unit_test(long_keys_are_cut_in_messages),
		cmocka_unit_test(a_record_is_written_as_it_is_read),
	};

	return cmocka_run_group_tests_name("json_record", tests, NULL, free_arena);
}
