/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of a return value, and what stands in the place of its file. */
#include "rootfs/files/return_value.h"

#include "tests/rootfs/inside.h"

#include <sys/socket.h>
#include <sys/un.h>

static int parse(const char *text, struct arena *a, const struct json_node **out,
		 struct cj_error *err)
{
	*err = (struct cj_error){ 0 };
	return return_value_parse("v", text, strlen(text), a, out, err);
}

static char *nested(unsigned levels)
{
	char *text = calloc(2 * (size_t)levels + 1, 1);
	assert_non_null(text);
	memset(text, '[', levels);
	memset(text + levels, ']', levels);
	return text;
}

static void a_value_is_any_json_within_its_limits(void **state)
{
	static const char *const good[] = { "null", "0", "\"a\"", "[]", " {\"a\": [1]} \n" };
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		auto_arena struct arena a = { 0 };
		const struct json_node *root = NULL;
		struct cj_error err;
		assert_int_equal(parse(good[i], &a, &root, &err), 0);
		assert_non_null(root);
	}
}

static void what_is_no_json_is_refused_with_its_place(void **state)
{
	static const char *const bad[] = { "", "NaN", "{", "[1,]", "1 2", "{\"a\":1,\"a\":1}" };
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		auto_arena struct arena a = { 0 };
		const struct json_node *root = NULL;
		struct cj_error err;
		assert_int_equal(parse(bad[i], &a, &root, &err), -EINVAL);
		assert_int_equal(strncmp(err.msg, "v:1:", 4), 0);
		assert_null(root);
	}
}

static void a_value_has_so_many_levels(void **state)
{
	(void)state;
	for (unsigned more = 0; more < 2; more++) {
		auto_arena struct arena a = { 0 };
		auto_free char *text = nested(RETURN_VALUE_DEPTH_MAX + more);
		const struct json_node *root = NULL;
		struct cj_error err;
		assert_int_equal(parse(text, &a, &root, &err), more ? -EFBIG : 0);
	}
}

static void a_value_has_so_many_parts(void **state)
{
	(void)state;
	for (unsigned more = 0; more < 2; more++) {
		auto_arena struct arena a = { 0 };
		size_t items = RETURN_VALUE_NODES_MAX - 1 + more, used = 0;
		auto_free char *text = calloc(2 * items + 2, 1);
		const struct json_node *root = NULL;
		struct cj_error err;
		assert_non_null(text);
		for (size_t i = 0; i < items; i++) {
			text[used++] = i == 0 ? '[' : ',';
			text[used++] = '0';
		}
		text[used] = ']';
		assert_int_equal(parse(text, &a, &root, &err), more ? -EFBIG : 0);
	}
}

static void a_value_has_so_many_bytes(void **state)
{
	auto_arena struct arena a = { 0 };
	auto_free char *text = malloc(RETURN_VALUE_BYTES_MAX + 1);
	const struct json_node *root = NULL;
	struct cj_error err = { 0 };
	(void)state;
	assert_non_null(text);
	memset(text, ' ', RETURN_VALUE_BYTES_MAX + 1);
	text[0] = '1';
	assert_int_equal(return_value_parse("v", text, RETURN_VALUE_BYTES_MAX, &a, &root, &err), 0);
	assert_int_equal(return_value_parse("v", text, RETURN_VALUE_BYTES_MAX + 1, &a, &root, &err),
			 -EFBIG);
	assert_string_equal(err.msg, "it has more than 1048576 bytes");
}

/* --- its file ----------------------------------------------------------------------- */

struct bench {
	char *place;
	int fd;
	struct arena arena;
	const struct json_node *value;
	struct cj_error err;
};

static void write_file(const char *path, const char *text)
{
	auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static struct bench make_bench(void)
{
	struct bench b = { .place = make_place() };
	mkdir(at(b.place, "out"), 0755);
	b.fd = open(b.place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(b.fd >= 0);
	return b;
}

static void end_bench(struct bench *b)
{
	cj_close(&b->fd);
	arena_fini(&b->arena);
	end_place(b->place);
}

static int take(struct bench *b, const char *inside)
{
	const struct artifact_place from = { b->fd, inside, "/box/out/v" };
	int before = open_count();
	b->err = (struct cj_error){ 0 };
	int rc = return_value_read(&from, &b->arena, &b->value, &b->err);
	assert_int_equal(open_count(), before);
	return rc;
}

static void the_file_of_a_value_is_read(void **state)
{
	struct bench b = make_bench();
	(void)state;
	write_file(at(b.place, "out/v"), "{\"a\": 1}");
	assert_int_equal(take(&b, "out/v"), 0);
	assert_string_equal(json_get(b.value, "a")->text, "1");
	write_file(at(b.place, "top"), "2");
	assert_int_equal(take(&b, "top"), 0);
	assert_string_equal(b.value->text, "2");
	end_bench(&b);
}

static void without_a_file_there_is_no_value_and_no_error(void **state)
{
	struct bench b = make_bench();
	(void)state;
	assert_int_equal(take(&b, "out/v"), 0);
	assert_null(b.value);
	assert_int_equal(take(&b, "none/v"), 0);
	assert_null(b.value);
	end_bench(&b);
}

static void assert_not_read(struct bench *b, const char *why)
{
	assert_int_equal(take(b, "out/v"), -EINVAL);
	assert_null(b->value);
	assert_string_equal(b->err.msg, why);
	assert_int_equal(remove(at(b->place, "out/v")), 0);
}

static void nothing_but_a_plain_file_is_read(void **state)
{
	struct bench b = make_bench();
	(void)state;
	assert_int_equal(symlink("../top", at(b.place, "out/v")), 0);
	assert_not_read(&b, "it is a symbolic link");
	assert_int_equal(mkfifo(at(b.place, "out/v"), 0644), 0);
	assert_not_read(&b, "it is neither a file nor a directory");
	assert_int_equal(mkdir(at(b.place, "out/v"), 0755), 0);
	assert_not_read(&b, "it is a directory");
	write_file(at(b.place, "top"), "1");
	assert_int_equal(link(at(b.place, "top"), at(b.place, "out/v")), 0);
	assert_not_read(&b, "it has more than one hard link");
	write_file(at(b.place, "out/v"), "");
	assert_int_equal(truncate(at(b.place, "out/v"), RETURN_VALUE_BYTES_MAX + 1), 0);
	assert_not_read(&b, "it has more than 1048576 bytes");
	end_bench(&b);
}

static void no_link_is_followed_on_the_way(void **state)
{
	struct bench b = make_bench();
	(void)state;
	mkdir(at(b.place, "real"), 0755);
	write_file(at(b.place, "real/v"), "1");
	assert_int_equal(rmdir(at(b.place, "out")), 0);
	assert_int_equal(symlink("real", at(b.place, "out")), 0);
	assert_true(take(&b, "out/v") < 0);
	assert_null(b.value);
	end_bench(&b);
}

static void a_message_about_the_file_is_printable(void **state)
{
	struct bench b = make_bench();
	(void)state;
	write_file(at(b.place, "out/v"), "{\"\\u001b[2J\": 1, \"\\u001b[2J\": 2}");
	assert_true(take(&b, "out/v") < 0);
	assert_non_null(strstr(b.err.msg, "\\x1b"));
	assert_null(strchr(b.err.msg, '\x1b'));
	end_bench(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_value_is_any_json_within_its_limits),
		cmocka_unit_test(what_is_no_json_is_refused_with_its_place),
		cmocka_unit_test(a_value_has_so_many_levels),
		cmocka_unit_test(a_value_has_so_many_parts),
		cmocka_unit_test(a_value_has_so_many_bytes),
		cmocka_unit_test(the_file_of_a_value_is_read),
		cmocka_unit_test(without_a_file_there_is_no_value_and_no_error),
		cmocka_unit_test(nothing_but_a_plain_file_is_read),
		cmocka_unit_test(no_link_is_followed_on_the_way),
		cmocka_unit_test(a_message_about_the_file_is_printable),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
