/* SPDX-License-Identifier: Apache-2.0 */
/* The result as JSON. */
#include "runtime/container/annotation/oci_result.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const char *text_of(const struct result_facts *f, struct json_writer *w)
{
	struct cj_error err = { 0 };
	struct blob text = { 0 };

	oci_result_text(w, f);
	assert_int_equal(json_writer_take(w, &text, &err), 0);
	assert_int_equal(strncmp(text.bytes, OCI_RESULT_BEGIN, strlen(OCI_RESULT_BEGIN)), 0);
	return text.bytes;
}

static void expect(const struct result_facts *f, const char *part)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const char *text = text_of(f, w);

	if (!strstr(text, part))
		fail_msg("'%s' is not in '%s'", part, text);
}

static void the_end_decides_the_status(void **state)
{
	static const struct {
		bool is_known;
		int wait_status;
		struct oci_u64 kills;
		const char *part;
	} rows[] = {
		{ true, 0, { 0 }, "\"status\":\"exited\",\"exit_code\":0,\"signal\":null" },
		{ true,
		  3 << 8,
		  { true, 1 },
		  "\"status\":\"exited\",\"exit_code\":3,\"signal\":null" },
		{ true, 9, { 0 }, "\"status\":\"signaled\",\"exit_code\":null,\"signal\":9" },
		{ true, 9, { true, 0 }, "\"status\":\"signaled\"" },
		{ true, 9, { true, 2 }, "\"status\":\"oom\",\"exit_code\":null,\"signal\":9" },
		{ true,
		  15,
		  { true, 2 },
		  "\"status\":\"signaled\",\"exit_code\":null,\"signal\":15" },
		{ true, 11 | 0x80, { 0 }, "\"signal\":11" }, /* with a core dump */
		{ false, 0, { true, 2 }, "\"status\":null,\"exit_code\":null,\"signal\":null" },
		{ false, 0, { true, 2 }, "\"hit\":true,\"kills\":2" },
		{ false, 0, { 0 }, "\"hit\":null,\"kills\":null" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct result_facts f = { .id = "x",
						.has_wait_status = rows[i].is_known,
						.wait_status = rows[i].wait_status,
						.oom_kills = rows[i].kills };
		expect(&f, rows[i].part);
	}
}

static void denials_are_a_list_only_where_there_are_rules(void **state)
{
	static struct denials none;
	static struct denials one = {
		.items = { { .class = NET_METADATA,
			     .protocol = 6,
			     .address = { 4, { 169, 254, 169, 254 } },
			     .port = 80,
			     .count = 2 } },
		.count = 1,
	};

	(void)state;
	expect(&(struct result_facts){ .id = "x" }, "\"network\":null");
	expect(&(struct result_facts){ .id = "x", .denials = &none },
	       "\"network\":{\"denied\":[]}");
	expect(&(struct result_facts){ .id = "x", .denials = &one },
	       "\"denied\":[{\"class\":\"metadata\",\"protocol\":\"tcp\","
	       "\"address\":\"169.254.169.254\",\"port\":80,\"count\":2}]");
}

static void every_absolute_path_is_below_the_root(void **state)
{
	static const char *const dirs[] = { "/", "//" };
	char dir[] = "/var/tmp/cejail-result-XXXXXX", path[PATH_MAX], wanted[PATH_MAX + 8];

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_non_null(realpath(dir, path)); /* no link is followed */
	assert_true(snprintf(wanted, sizeof(wanted), "%s/r.json", path) < (int)sizeof(wanted));
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		struct oci_result_place place = OCI_RESULT_PLACE_NULL;
		auto_arena struct arena a = { 0 };
		struct cj_error err = { 0 };
		if (oci_result_find(wanted, dirs[i], "id", &a, &place, &err) < 0)
			fail_msg("below '%s': %s", dirs[i], err.msg);
		assert_string_equal(place.name, "r.json");
		oci_result_close(&place);
	}
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_end_decides_the_status),
		cmocka_unit_test(denials_are_a_list_only_where_there_are_rules),
		cmocka_unit_test(every_absolute_path_is_below_the_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
