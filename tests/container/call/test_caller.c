/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <dirent.h>
#include <sys/stat.h>

#include "runtime/base/files/system_file.h"
#include "runtime/container/call/caller.h"
#include "tests/temp_dir.h"

static size_t count_entries(void)
{
	size_t count = 0;
	DIR *dir = opendir(temp_dir);

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	assert_int_equal(closedir(dir), 0);
	return count - 2;
}

static void it_holds_digits_alone_and_replaces_what_was_there(void **state)
{
	char path[128], text[32];
	struct cj_error err = { 0 };
	(void)state;

	(void)snprintf(path, sizeof(path), "%s/pid", temp_dir);
	assert_int_equal(caller_write_pid(path, 4711, &err), 0);
	assert_int_equal(system_file_read(temp_dir_fd, "pid", text, sizeof(text)), 4);
	assert_string_equal(text, "4711");
	assert_int_equal(caller_write_pid(path, 8, &err), 0);
	assert_int_equal(system_file_read(temp_dir_fd, "pid", text, sizeof(text)), 1);
	assert_string_equal(text, "8");
	assert_int_equal(count_entries(), 1);
}

static void a_link_is_replaced_not_followed(void **state)
{
	char path[128], target[128];
	struct cj_error err = { 0 };
	struct stat st;
	(void)state;

	(void)snprintf(path, sizeof(path), "%s/pid", temp_dir);
	(void)snprintf(target, sizeof(target), "%s/target", temp_dir);
	assert_int_equal(symlink(target, path), 0);
	assert_int_equal(caller_write_pid(path, 1, &err), 0);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(access(target, F_OK), -1);
}

static void a_failure_leaves_nothing(void **state)
{
	char path[128];
	struct cj_error err = { 0 };
	(void)state;

	(void)snprintf(path, sizeof(path), "%s/dir", temp_dir);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_true(caller_write_pid(path, 1, &err) < 0);
	assert_non_null(strstr(err.msg, "pid file"));
	assert_int_equal(count_entries(), 1);
	assert_int_equal(caller_write_pid("/nothing/here", 1, &err), -ENOENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, temp_dir_make, temp_dir_remove)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_holds_digits_alone_and_replaces_what_was_there),
		TEST(a_link_is_replaced_not_followed),
		TEST(a_failure_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
