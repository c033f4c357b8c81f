/* SPDX-License-Identifier: Apache-2.0 */
/* Where a program of ours lies. */
#include "runtime/base/files/libexec.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/stat.h>

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

/* Another user may have put it there. */
static void what_other_users_may_change_is_not_used(void **state)
{
	static const struct {
		const char *what;
		mode_t dir, file;
		bool is_used;
	} cases[] = {
		{ "ours", 0755, 0755, true },
		{ "our group's", 0775, 0775, true },
		{ "a directory of everybody's", 0777, 0755, false },
		{ "one with a sticky bit", 01777, 0755, false },
		{ "a file of everybody's", 0755, 0757, false },
	};
	char path[PATH_MAX], made[PATH_MAX];
	struct cj_error err;
	(void)state;
	assert_int_equal(libexec_find("tried", path, &err), 0);
	(void)snprintf(made, sizeof(made), "%s", path);
	*strrchr(made, '/') = '\0'; /* .../libexec/cejail */
	char *last = strrchr(made, '/');
	*last = '\0';
	assert_true(mkdir(made, 0755) == 0 || errno == EEXIST);
	*last = '/';
	assert_true(mkdir(made, 0755) == 0 || errno == EEXIST);
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
	assert_true(fd >= 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(chmod(made, cases[i].dir) == 0 && fchmod(fd, cases[i].file) == 0);
		err = (struct cj_error){ 0 };
		if (libexec_find("tried", path, &err) != (cases[i].is_used ? 0 : -EPERM))
			fail_msg("%s: %s", cases[i].what, err.msg);
	}
	assert_int_equal(chmod(made, 0755), 0);
	if (geteuid() == 0) {
		assert_true(fchmod(fd, 0755) == 0 && fchown(fd, 12345, 0) == 0);
		assert_int_equal(libexec_find("tried", path, &err), -EPERM);
	}
	close(fd);
	(void)unlink(path);
	(void)rmdir(made);
	*last = '\0';
	(void)rmdir(made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_is_found_from_where_this_one_lies),
		cmocka_unit_test(a_path_that_is_too_long_is_said),
		cmocka_unit_test(what_other_users_may_change_is_not_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
