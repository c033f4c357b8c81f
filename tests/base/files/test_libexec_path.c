/* SPDX-License-Identifier: Apache-2.0 */
/* Where a program of ours lies. */
#include "runtime/base/files/libexec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void a_program_is_found_from_where_this_one_lies(void **state)
{
	char path[PATH_MAX], self[PATH_MAX] = "";
	struct cj_error err = { 0 };
	(void)state;

	assert_int_equal(libexec_find("other", path, &err), 0);
	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	size_t dir = (size_t)(strrchr(self, '/') - self);
	assert_memory_equal(path, self, dir);
	assert_string_equal(path + dir, "/../libexec/cejail/other");
}

static void a_path_that_is_too_long_is_said(void **state)
{
	char path[PATH_MAX], name[PATH_MAX];
	struct cj_error err = { 0 };
	(void)state;

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(libexec_find(name, path, &err), -ENAMETOOLONG);
	assert_non_null(strstr(err.msg, "find the helper"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_is_found_from_where_this_one_lies),
		cmocka_unit_test(a_path_that_is_too_long_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
