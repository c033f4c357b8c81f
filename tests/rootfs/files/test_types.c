/* SPDX-License-Identifier: Apache-2.0 */
/* Media types by content, and by name where the content leaves a choice. */
#include "rootfs/files/types.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define UNKNOWN "application/octet-stream"

struct row {
	const char *name, *head;
	size_t size;
	const char *type;
};

#define ROW(name, head, type)                                                                      \
	{                                                                                          \
		name, head, sizeof(head) - 1, type                                                 \
	}

static void assert_rows(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *type = type_of(rows[i].name, rows[i].head, rows[i].size, true);
		if (strcmp(type, rows[i].type) != 0)
			fail_msg("'%s' with '%s' is %s, not %s", rows[i].name, rows[i].head, type,
				 rows[i].type);
	}
}

#define ASSERT_ROWS(rows) assert_rows(rows, sizeof(rows) / sizeof((rows)[0]))

static void a_signature_decides_whatever_the_name_is(void **state)
{
	static const struct row rows[] = {
		ROW("plot.png", "\x89PNG\r\n\x1a\n...", "image/png"),
		ROW("plot", "\x89PNG\r\n\x1a\n", "image/png"),
		ROW("a.txt", "\xff\xd8\xff\xe0", "image/jpeg"),
		ROW("a", "GIF87a", "image/gif"),
		ROW("a", "GIF89a\0", "image/gif"),
		ROW("a.bin", "RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
		ROW("a.html", "%PDF-1.7\n", "application/pdf"),
	};
	(void)state;
	ASSERT_ROWS(rows);
}

/* A name alone makes no image of a page that a browser would then run. */
static void a_name_alone_is_not_believed(void **state)
{
	static const struct row rows[] = {
		ROW("plot.png", "<script>", "text/plain"),
		ROW("plot.png", "\0\1", UNKNOWN),
		ROW("a.jpg", "abc", "text/plain"),
		ROW("a.gif", "GIF88a", "text/plain"),
		ROW("a.webp", "RIFF....WAVE", "text/plain"),
		ROW("a.pdf", "%PDX", "text/plain"),
		ROW("a.json", "{\"a\":", "text/plain"),
		ROW("a.json", "\xff{}", UNKNOWN),
		ROW("a.html", "abc", "text/plain"),
		ROW("a.html", "\0<html>", UNKNOWN),
		ROW("a.svg", "<svgx", "image/svg+xml"),
		ROW("a.svg", "svg", "text/plain"),
		ROW("a.csv", "1,\0", UNKNOWN),
		ROW("a.txt", "\xff", UNKNOWN),
		ROW("a.zip", "text", "text/plain"),
	};
	(void)state;
	ASSERT_ROWS(rows);
}

static void markup_and_json_are_known_by_their_beginning(void **state)
{
	static const struct row rows[] = {
		ROW("a", "<!DOCTYPE html><p>", "text/html"),
		ROW("a", " \n\t<HTML>", "text/html"),
		ROW("a.html", "<table>", "text/html"),
		ROW("a.HTM", "<!-- --><p>", "text/html"),
		ROW("a", "<svg xmlns=''/>", "image/svg+xml"),
		ROW("a", "<?xml version='1.0'?>\n<svg/>", "image/svg+xml"),
		ROW("a.svg", "<!-- made --><svg/>", "image/svg+xml"),
		ROW("a", "<!-- made --><svg/>", "text/plain"),
		ROW("a.xml", "<?xml version='1.0'?><a/>", "application/xml"),
		ROW("a", "{\"a\": [1]}", "application/json"),
		ROW("a", " [1]\n", "application/json"),
		ROW("a", "1", "text/plain"),
		ROW("a.json", "1", "application/json"),
		ROW("a", "[not json]", "text/plain"),
	};
	(void)state;
	ASSERT_ROWS(rows);
}

static void a_name_chooses_among_texts_and_among_other_files(void **state)
{
	static const struct row rows[] = {
		ROW("a/b.d/table.csv", "1,2", "text/csv"),
		ROW("TABLE.CSV", "", "text/csv"),
		ROW("a.md", "# a", "text/markdown"),
		ROW("a.py", "pass", "text/x-python"),
		ROW("a.ipynb", "{}", "application/x-ipynb+json"),
		ROW("a.b.jsonl", "{}\n{}\n", "application/jsonl"),
		ROW("x.tar.gz", "\x1f\x8b\x08", "application/gzip"),
		ROW("x.parquet", "PAR1\0", "application/vnd.apache.parquet"),
		ROW("x.npy", "\x93NUMPY", "application/x-npy"),
		ROW("x.py", "\0", UNKNOWN),
		ROW("", "", "text/plain"),
		ROW("csv", "a", "text/plain"),
		ROW("x.", "a", "text/plain"),
		ROW("x.csvx", "a", "text/plain"),
		ROW("x.csv/a", "a", "text/plain"),
	};
	(void)state;
	ASSERT_ROWS(rows);
}

static void a_character_may_be_cut_only_where_the_file_goes_on(void **state)
{
	(void)state;
	assert_string_equal(type_of("a", "abc\xc3", 4, false), "text/plain");
	assert_string_equal(type_of("a", "abc\xc3", 4, true), UNKNOWN);
	assert_string_equal(type_of("a", "\xc3z", 2, false), UNKNOWN);
	assert_string_equal(type_of("a.json", "{\"a\":", 5, false), "application/json");
	assert_string_equal(type_of("a", "{\"a\":", 5, false), "text/plain");
}

/* So that a program can't make the caller parse for long. */
static void json_of_many_bytes_is_not_parsed(void **state)
{
	enum { SIZE = 20000 };
	char *text = malloc(SIZE);
	(void)state;
	assert_non_null(text);
	memset(text, '[', SIZE);
	assert_string_equal(type_of("a.json", text, SIZE, true), "application/json");
	assert_string_equal(type_of("a", text, SIZE, true), "text/plain");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_signature_decides_whatever_the_name_is),
		cmocka_unit_test(a_name_alone_is_not_believed),
		cmocka_unit_test(markup_and_json_are_known_by_their_beginning),
		cmocka_unit_test(a_name_chooses_among_texts_and_among_other_files),
		cmocka_unit_test(a_character_may_be_cut_only_where_the_file_goes_on),
		cmocka_unit_test(json_of_many_bytes_is_not_parsed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
