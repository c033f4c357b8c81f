/* SPDX-License-Identifier: Apache-2.0 */
/* What a path and a query name: routes, files of a session, parameters. */
#include "runtime/service/api/api_parts.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define EXEC     "/v1/sessions/*/execs/*"
#define FILES    "/v1/sessions/*/files/**"

static void a_wildcard_is_one_segment(void **state)
{
	static const struct {
		const char *pattern, *path, *first, *second, *rest;
	} rows[] = {
		{ "/v1/runs", "/v1/runs", "", "", "" },
		{ "/v1/runs/*", "/v1/runs/a-b", "a-b", "", "" },
		{ EXEC, "/v1/sessions/s/execs/e", "s", "e", "" },
		{ EXEC "/signal", "/v1/sessions/s/execs/e/signal", "s", "e", "" },
		{ FILES, "/v1/sessions/s/files/box/a//b", "s", "", "box/a//b" },
		{ FILES, "/v1/sessions/s/files/", "s", "", "" },
	};
	struct api_names names;
	(void)state;

	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_true(api_path_fits(rows[i].pattern, rows[i].path, &names));
		assert_string_equal(names.ids[0], rows[i].first);
		assert_string_equal(names.ids[1], rows[i].second);
		assert_string_equal(names.rest, rows[i].rest);
	}
}

static void another_path_does_not_fit(void **state)
{
	static const struct {
		const char *pattern, *path;
	} rows[] = {
		{ "/v1/runs", "/v1/runs/" },
		{ "/v1/runs", "/v1/run" },
		{ "/v1/runs", "" },
		{ "/v1/runs/*", "/v1/runs/" },
		{ "/v1/runs/*", "/v1/runs/a/b" },
		{ "/v1/runs/*", "/v1/runs/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" },
		{ EXEC, "/v1/sessions/s/execs/e/" },
		{ EXEC, "/v1/sessions//execs/e" },
		{ EXEC "/signal", "/v1/sessions/s/execs/e" },
		{ FILES, "/v1/sessions/s/files" },
	};
	struct api_names names;
	(void)state;

	for (size_t i = 0; i < COUNT(rows); i++)
		assert_false(api_path_fits(rows[i].pattern, rows[i].path, &names));
}

static void a_path_is_that_in_the_jail(void **state)
{
	static const struct {
		const char *rest, *path;
	} rows[] = {
		{ "box/a.txt", "/box/a.txt" },
		{ "tmp/a/b c/\xc3\xa4", "/tmp/a/b c/\xc3\xa4" },
		{ "box/...", "/box/..." },
		{ "box/.hidden", "/box/.hidden" },
	};
	char path[INPUT_PATH_MAX];
	struct cj_error err = { 0 };
	(void)state;

	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_int_equal(api_file_path(rows[i].rest, false, path, &err), 0);
		assert_string_equal(path, rows[i].path);
	}
}

static void a_path_that_could_lead_elsewhere_is_refused(void **state)
{
	static const char *const rows[] = {
		"",         "box/",    "/box/a",       "box/..",   "box/../a",
		"box/a/..", "box/.",   "box//a",       "box/a//b", "box/a/",
		"../box/a", "./box/a", "tmp/../box/a", "box/a\nb", "box/\x7f",
	};
	char path[INPUT_PATH_MAX], text[2 * INPUT_PATH_MAX] = "box/";
	struct cj_error err = { 0 };
	(void)state;

	for (size_t i = 0; i < COUNT(rows); i++)
		assert_int_equal(api_file_path(rows[i], false, path, &err), -EINVAL);
	memset(text + 4, 'a', 256);
	assert_int_equal(api_file_path(text, false, path, &err), -EINVAL);
	for (size_t i = 4; i < INPUT_PATH_MAX; i++)
		text[i] = i % 2 ? 'a' : '/';
	assert_int_equal(api_file_path(text, false, path, &err), -EINVAL);
}

static void a_directory_may_be_the_top_and_end_in_a_slash(void **state)
{
	static const struct {
		const char *rest, *path;
	} rows[] = {
		{ "box", "/box" },
		{ "box/", "/box" },
		{ "tmp/", "/tmp" },
		{ "box/a/", "/box/a" },
	};
	char path[INPUT_PATH_MAX];
	struct cj_error err = { 0 };
	(void)state;

	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_int_equal(api_file_path(rows[i].rest, true, path, &err), 0);
		assert_string_equal(path, rows[i].path);
	}
	assert_int_equal(api_file_path("", true, path, &err), -EINVAL);
	assert_int_equal(api_file_path("/", true, path, &err), -EINVAL);
	assert_int_equal(api_file_path("box//", true, path, &err), -EINVAL);
}

static void parameters_are_read_strictly(void **state)
{
	static const unsigned all = PARAMETER_LIST | PARAMETER_EXECUTABLE | PARAMETER_WAIT |
				    PARAMETER_OFFSET | PARAMETER_LENGTH;
	static const char *const bad[] = { "x",         "list=1",
					   "wait",      "wait=",
					   "wait=1h",   "wait=-1",
					   "list&list", "wait=1s&wait=1s",
					   "LIST",      "list=a=b",
					   "offset",    "offset=-1",
					   "length=0",  "length=9223372036854775808" };
	struct api_query q;
	struct cj_error err = { 0 };
	(void)state;

	assert_int_equal(api_query_parse("", all, &q, &err), 0);
	assert_int_equal(q.given, 0);
	assert_int_equal(api_query_parse("list=&&wait=1500ms", all, &q, &err), 0);
	assert_int_equal(q.given, PARAMETER_LIST | PARAMETER_WAIT);
	assert_int_equal(q.wait_ms, 1500);
	assert_int_equal(api_query_parse("length=1&offset=0", all, &q, &err), 0);
	assert_true(q.given == (PARAMETER_OFFSET | PARAMETER_LENGTH) && q.length == 1);
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(api_query_parse(bad[i], all, &q, &err), -EINVAL);
	assert_int_equal(api_query_parse("list", PARAMETER_WAIT, &q, &err), -EINVAL);
	assert_string_equal(err.msg, "this path takes no parameter 'list'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wildcard_is_one_segment),
		cmocka_unit_test(another_path_does_not_fit),
		cmocka_unit_test(a_path_is_that_in_the_jail),
		cmocka_unit_test(a_path_that_could_lead_elsewhere_is_refused),
		cmocka_unit_test(a_directory_may_be_the_top_and_end_in_a_slash),
		cmocka_unit_test(parameters_are_read_strictly),
	};
	return cmocka_run_group_tests_name("api_target", tests, NULL, NULL);
}
