/* SPDX-License-Identifier: Apache-2.0 */
/* The search for an executable, and the texts that engines turn into a status. */
#include "runtime/container/process/process_parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "tests/temp_dir.h"

static void put(const char *name, mode_t mode)
{
	int fd = openat(temp_dir_fd, name, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, mode), 0);
	(void)close(fd);
}

static const char *path_env(const char *fmt)
{
	static char text[512];
	(void)snprintf(text, sizeof(text), "PATH=%s%s", temp_dir, fmt);
	return text;
}

static int find(const char *name, const char *path, char out[static PATH_MAX], struct cj_error *err)
{
	const char *items[] = { "HOME=/", path, NULL };
	const struct strings env = { .items = items, .count = path ? 2 : 1 };
	*err = (struct cj_error){ 0 };
	return process_program_find(name, &env, out, err);
}

static void a_name_without_a_slash_is_found_by_the_containers_path(void **state)
{
	char out[PATH_MAX], wanted[PATH_MAX];
	struct cj_error err;
	(void)state;
	put("tool", 0755);
	assert_int_equal(find("tool", path_env("/none:/bin"), out, &err), -ENOENT);
	assert_int_equal(find("tool", path_env(":/bin"), out, &err), 0);
	(void)snprintf(wanted, sizeof(wanted), "%s/tool", temp_dir);
	assert_string_equal(out, wanted);
}

static void without_a_path_there_is_a_default(void **state)
{
	char out[PATH_MAX];
	struct cj_error err;
	(void)state;
	assert_int_equal(find("sh", NULL, out, &err), 0);
	assert_int_equal(access(out, X_OK), 0);
}

static void a_relative_directory_of_the_path_is_not_searched(void **state)
{
	char out[PATH_MAX];
	struct cj_error err;
	(void)state;
	put("tool", 0755);
	assert_int_equal(chdir(temp_dir), 0);
	assert_int_equal(find("tool", "PATH=.::", out, &err), -ENOENT);
	assert_int_equal(find("./tool", "PATH=.", out, &err), 0);
	assert_int_equal(chdir("/"), 0);
}

static void the_texts_are_those_that_engines_look_for(void **state)
{
	char out[PATH_MAX], file[PATH_MAX];
	struct cj_error err;
	(void)state;
	put("data", 0644);

	assert_int_equal(find("nothing", path_env(""), out, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "executable file not found in $PATH"));
	assert_int_equal(find("", path_env(""), out, &err), -ENOENT);
	assert_int_equal(find("/no/such/file", path_env(""), out, &err), -ENOENT);
	assert_non_null(strcasestr(err.msg, "no such file or directory"));

	assert_int_equal(find("data", path_env(""), out, &err), -EACCES);
	assert_non_null(strcasestr(err.msg, "permission denied"));
	assert_non_null(strstr(err.msg, temp_dir)); /* which of the path */
	assert_non_null(strstr(err.hint, "not executable"));
	(void)snprintf(file, sizeof(file), "%s/data", temp_dir);
	assert_int_equal(find(file, path_env(""), out, &err), -EACCES);
	assert_non_null(strcasestr(err.msg, "permission denied"));
	assert_non_null(strstr(err.hint, "not executable"));
	assert_int_equal(find(temp_dir, path_env(""), out, &err), -EACCES);
	assert_non_null(strstr(err.hint, "a directory"));
	assert_int_equal(find("/dev/null", path_env(""), out, &err), -EACCES);
}

static void a_later_directory_is_searched_when_an_earlier_file_is_not_executable(void **state)
{
	char out[PATH_MAX];
	struct cj_error err;
	(void)state;
	put("sh", 0644);
	assert_int_equal(find("sh", path_env(":/bin"), out, &err), 0);
	assert_string_equal(out, "/bin/sh");
}

static void a_path_that_is_too_long_is_refused(void **state)
{
	static char name[2 * PATH_MAX];
	char out[PATH_MAX];
	struct cj_error err;
	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	assert_int_equal(find(name, path_env(""), out, &err), -ENOENT);
	name[0] = '/';
	assert_int_equal(find(name, path_env(""), out, &err), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_without_a_slash_is_found_by_the_containers_path),
		cmocka_unit_test(without_a_path_there_is_a_default),
		cmocka_unit_test(a_relative_directory_of_the_path_is_not_searched),
		cmocka_unit_test(the_texts_are_those_that_engines_look_for),
		cmocka_unit_test(
		    a_later_directory_is_searched_when_an_earlier_file_is_not_executable),
		cmocka_unit_test(a_path_that_is_too_long_is_refused),
	};
	return cmocka_run_group_tests(tests, temp_dir_make, temp_dir_remove);
}
