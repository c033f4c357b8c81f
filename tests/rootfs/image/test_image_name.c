/* SPDX-License-Identifier: Apache-2.0 */
/* Names of images, and hostile paths of tar entries. */
#include "rootfs/image/image_store.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void a_name_is_no_path_and_not_host(void **state)
{
	(void)state;
	static const char *const good[] = { "a", "python", "python:3.12-slim", "0", "a_b.c-d" };
	static const char *const bad[] = { "",   "host", "A",   "a/b", "../a",    ".a",
					   "-a", ":a",   "a b", "a\n", "\xc3\xa4" };
	char longest[IMAGE_NAME_MAX + 2];
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(image_is_name(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(image_is_name(bad[i]));
	memset(longest, 'a', sizeof(longest));
	longest[IMAGE_NAME_MAX] = '\0';
	assert_true(image_is_name(longest));
	longest[IMAGE_NAME_MAX] = 'a';
	longest[IMAGE_NAME_MAX + 1] = '\0';
	assert_false(image_is_name(longest));
}

static void a_digest_has_64_digits_in_lower_case(void **state)
{
	(void)state;
	char hex[66];
	memset(hex, 'a', sizeof(hex));
	hex[64] = '\0';
	assert_true(image_is_sha256(hex));
	hex[3] = 'A';
	assert_false(image_is_sha256(hex));
	hex[3] = '/';
	assert_false(image_is_sha256(hex));
	hex[63] = '\0';
	assert_false(image_is_sha256(hex));
}

static void a_path_is_cleaned_to_one_form(void **state)
{
	(void)state;
	static const char *const rows[][2] = {
		{ "a", "a" },         { "./a/./b//c/", "a/b/c" },
		{ "/a", "a" },        { "///", "" },
		{ ".", "" },          { "", "" },
		{ "a/...", "a/..." }, { "..a/b..", "..a/b.." },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char out[PATH_MAX];
		struct cj_error err = { 0 };
		assert_int_equal(image_path_clean(rows[i][0], out, &err), 0);
		assert_string_equal(out, rows[i][1]);
	}
}

static void a_path_that_leads_upwards_is_refused(void **state)
{
	(void)state;
	static const char *const rows[] = { "..", "../a", "a/../b", "a/..", "/..", "./../x" };
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char out[PATH_MAX];
		struct cj_error err = { 0 };
		assert_int_equal(image_path_clean(rows[i], out, &err), -EINVAL);
		assert_non_null(strstr(err.msg, "'..'"));
	}
}

static void long_and_deep_paths_are_refused(void **state)
{
	(void)state;
	static char text[2 * PATH_MAX];
	char out[PATH_MAX];
	struct cj_error err = { 0 };

	memset(text, 'a', NAME_MAX + 1);
	text[NAME_MAX + 1] = '\0';
	assert_int_equal(image_path_clean(text, out, &err), -EINVAL);
	text[NAME_MAX] = '\0';
	assert_int_equal(image_path_clean(text, out, &err), 0);
	for (size_t i = 0; i <= IMAGE_DEPTH_MAX; i++)
		memcpy(text + 2 * i, "a/", 3);
	assert_int_equal(image_path_clean(text, out, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "deeper"));
	text[2 * IMAGE_DEPTH_MAX] = '\0';
	assert_int_equal(image_path_clean(text, out, &err), 0);
	memset(text, '/', sizeof(text));
	text[IMAGE_PATH_MAX + 1] = '\0';
	assert_int_equal(image_path_clean(text, out, &err), -EINVAL);
}

static void assert_entry(const char *text, enum image_entry_kind kind, const char *dir,
			 const char *name)
{
	char path[PATH_MAX];
	const char *seen_dir, *seen_name;
	enum image_entry_kind seen;
	struct cj_error err = { 0 };
	(void)snprintf(path, sizeof(path), "%s", text);
	assert_int_equal(image_entry_split(path, &seen_dir, &seen_name, &seen, &err), 0);
	assert_int_equal(seen, kind);
	assert_string_equal(seen_dir, dir);
	assert_string_equal(seen_name, name);
}

static void whiteouts_are_recognized_by_their_names(void **state)
{
	(void)state;
	assert_entry("a/b/c", IMAGE_ENTRY_PLAIN, "a/b", "c");
	assert_entry("c", IMAGE_ENTRY_PLAIN, "", "c");
	assert_entry("a/.wh.c", IMAGE_ENTRY_WHITEOUT, "a", "c");
	assert_entry(".wh.c", IMAGE_ENTRY_WHITEOUT, "", "c");
	assert_entry("a/.wh..wh..opq", IMAGE_ENTRY_OPAQUE, "a", ".wh..opq");
	assert_entry(".wh..wh.plnk", IMAGE_ENTRY_SKIPPED, "", ".wh.plnk");
	assert_entry("a.wh.c", IMAGE_ENTRY_PLAIN, "", "a.wh.c");
	assert_entry(".wh.d/c", IMAGE_ENTRY_PLAIN, ".wh.d", "c");
}

static void a_whiteout_of_nothing_is_refused(void **state)
{
	(void)state;
	static const char *const rows[] = { ".wh.", "a/.wh.", "a/.wh..", ".wh..." };
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char path[32];
		const char *dir, *name;
		enum image_entry_kind kind;
		struct cj_error err = { 0 };
		(void)snprintf(path, sizeof(path), "%s", rows[i]);
		assert_int_equal(image_entry_split(path, &dir, &name, &kind, &err), -EINVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_no_path_and_not_host),
		cmocka_unit_test(a_digest_has_64_digits_in_lower_case),
		cmocka_unit_test(a_path_is_cleaned_to_one_form),
		cmocka_unit_test(a_path_that_leads_upwards_is_refused),
		cmocka_unit_test(long_and_deep_paths_are_refused),
		cmocka_unit_test(whiteouts_are_recognized_by_their_names),
		cmocka_unit_test(a_whiteout_of_nothing_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
