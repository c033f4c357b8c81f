/* SPDX-License-Identifier: Apache-2.0 */
/* oci_process: the file of exec --process, and users that may never become root by mistake. */
#include "runtime/container/config/oci_process.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/base/scope.h"

static int read_process(const char *text, struct arena *a, struct oci_process *out,
			struct cj_error *err)
{
	return oci_process_read("process.json", text, strlen(text), a, out, err);
}

static void a_process_of_containerd_is_read(void **state)
{
	auto_arena struct arena a = { 0 };
	struct oci_process p;
	struct cj_error err = { 0 };
	(void)state;

	assert_int_equal(
	    read_process("{\"user\":{\"uid\":1000,\"gid\":1000,\"additionalGids\":[10]},"
			 "\"args\":[\"cat\"],\"env\":[\"PATH=/bin\"],\"cwd\":\"/tmp\","
			 "\"capabilities\":{\"bounding\":[\"CAP_KILL\"]},\"noNewPrivileges\":true}",
			 &a, &p, &err),
	    0);
	assert_true(p.user.uid == 1000 && p.user.gid == 1000 && p.user.groups[0] == 10);
	assert_string_equal(p.args.items[0], "cat");
	assert_true(p.no_new_privileges);
}

static void a_process_without_a_program_is_refused(void **state)
{
	static const char *const texts[] = { "{}", "[]", "{\"args\": [], \"cwd\": \"/\"}",
					     "{\"args\": [\"a\"], \"cwd\": \"..\"}" };
	auto_arena struct arena a = { 0 };
	struct oci_process p = { .user = { .uid = 77 } };
	(void)state;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct cj_error err = { 0 };
		assert_int_equal(read_process(texts[i], &a, &p, &err), -EINVAL);
		assert_int_equal(strncmp(err.msg, "process.json:1:", 15), 0);
		assert_int_equal(p.user.uid, 77);
	}
}

static void a_user_is_digits_within_the_range(void **state)
{
	static const struct {
		const char *text;
		uint32_t uid, gid;
	} rows[] = {
		{ "0", 0, 7 },
		{ "1", 1, 7 },
		{ "1000:100", 1000, 100 },
		{ "4294967294:0", 4294967294, 0 },
		{ "0000000001", 1, 7 },
	};
	(void)state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t uid = 7, gid = 7;
		struct cj_error err = { 0 };
		assert_int_equal(oci_user_parse(rows[i].text, &uid, &gid, &err), 0);
		assert_true(uid == rows[i].uid && gid == rows[i].gid);
	}
}

/* CVE-2026-30892: such a text became user id 0. */
static void no_other_text_is_a_user(void **state)
{
	static const char *const texts[] = {
		"",
		"-1",
		"+1",
		" 1",
		"1 ",
		"1:",
		":",
		":1",
		"root",
		"1x",
		"0x1",
		"1.0",
		"1:2:3",
		"1:-1",
		"1:x",
		"1:4294967295",
		"4294967295",
		"4294967296",
		"18446744073709551616",
		"00000000001",
		"-4294967296",
		"1:99999999999999999999",
		"\n1",
		"1\n",
		"1:\n1",
	};
	(void)state;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		uint32_t uid = 7, gid = 8;
		struct cj_error err = { 0 };
		if (oci_user_parse(texts[i], &uid, &gid, &err) != -EINVAL)
			fail_msg("'%s' was taken", texts[i]);
		assert_true(err.msg[0] != '\0' && uid == 7 && gid == 8);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_of_containerd_is_read),
		cmocka_unit_test(a_process_without_a_program_is_refused),
		cmocka_unit_test(a_user_is_digits_within_the_range),
		cmocka_unit_test(no_other_text_is_a_user),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
