/* SPDX-License-Identifier: Apache-2.0 */
/* Whom USER of an image means. */
#include "rootfs/image/image_passwd.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const char passwd[] = "root:x:0:0:root:/root:/bin/sh\n"
			     "bad\n"
			     "short:x:\n"
			     "app:x:1234:99::/app:/bin/sh\n"
			     "app:x:1:1::/second:/bin/sh\n"
			     "huge:x:4294967295:1::/:\n"
			     "text:x:12a:1::/:\n"
			     "last:x:77:1::/:/bin/sh";

static int find(const char *user, const char *text, uint32_t *uid, struct cj_error *err)
{
	*err = (struct cj_error){ 0 };
	*uid = 4711;
	return image_passwd_find(user, text, uid, err);
}

static void a_name_is_looked_up_and_a_number_is_taken(void **state)
{
	(void)state;
	static const struct {
		const char *user;
		uint32_t uid;
	} rows[] = { { "", 0 },      { "root", 0 },    { "app", 1234 },       { "app:staff", 1234 },
		     { "last", 77 }, { "5000", 5000 }, { "5000:6000", 5000 }, { "0", 0 } };
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cj_error err;
		uint32_t uid;
		assert_int_equal(find(rows[i].user, passwd, &uid, &err), 0);
		assert_int_equal(uid, rows[i].uid);
	}
}

static void a_name_without_an_id_is_refused(void **state)
{
	(void)state;
	static const char *const rows[] = { "nobody", "ap", "appx", "bad", "short", "text" };
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cj_error err;
		uint32_t uid;
		assert_int_equal(find(rows[i], passwd, &uid, &err), -EINVAL);
		assert_non_null(strstr(err.msg, rows[i]));
		assert_int_equal(uid, 4711);
	}
	struct cj_error err;
	uint32_t uid;
	assert_int_equal(find("huge", passwd, &uid, &err), -EINVAL);
	assert_int_equal(find("4294967295", passwd, &uid, &err), -EINVAL);
	assert_int_equal(find("app", NULL, &uid, &err), -EINVAL);
	assert_int_equal(find("12", NULL, &uid, &err), 0);
}

static void an_id_has_the_home_of_its_first_line(void **state)
{
	(void)state;
	static const struct {
		const char *passwd;
		uint32_t uid;
		const char *home;
	} rows[] = {
		{ passwd, 0, "/root" },
		{ passwd, 1234, "/app" },
		{ passwd, 1, "/second" },
		{ passwd, 77, "/" },
		{ passwd, 4294967295u, "/" },
		{ passwd, 5, "/" },
		{ "", 0, "/" },
		{ "a:x:7:7:::\nb:x:7:7::/b:\n", 7, "/" },
		{ "a:x:7:7:\nb:x:8:8::/b", 8, "/b" },
		{ "a:x:7:7:\nb:x:8:8::/b", 7, "/" },
		{ "a:x:77:7::/long:\na:x:7:7::relative:", 7, "/" },
		{ "7:7:7:\n::7:::/unnamed:", 7, "/unnamed" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char home[PATH_MAX] = "?";
		image_passwd_home(rows[i].passwd, rows[i].uid, home);
		assert_string_equal(home, rows[i].home);
	}
}

static void a_home_longer_than_a_path_is_not_taken(void **state)
{
	(void)state;
	char home[PATH_MAX], text[PATH_MAX + 64] = "a:x:1:1::";
	size_t used = strlen(text);
	memset(text + used, '/', PATH_MAX);
	image_passwd_home(text, 1, home);
	assert_string_equal(home, "/");
	text[used + PATH_MAX - 1] = ':';
	image_passwd_home(text, 1, home);
	assert_int_equal(strlen(home), PATH_MAX - 1);
}

static void a_long_user_is_refused(void **state)
{
	(void)state;
	char user[300];
	struct cj_error err;
	uint32_t uid;
	memset(user, 'a', sizeof(user));
	user[sizeof(user) - 1] = '\0';
	assert_int_equal(find(user, passwd, &uid, &err), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_looked_up_and_a_number_is_taken),
		cmocka_unit_test(a_name_without_an_id_is_refused),
		cmocka_unit_test(an_id_has_the_home_of_its_first_line),
		cmocka_unit_test(a_home_longer_than_a_path_is_not_taken),
		cmocka_unit_test(a_long_user_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
