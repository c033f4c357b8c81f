/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/jail/private_dir.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>

#include <cmocka.h>

#define ID "01M8MBT0MJYSYFMK8M3N9J1BY2"

static void make(char path[static PRIVATE_DIR_MAX])
{
	struct cj_error err = { 0 };
	assert_int_equal(private_dir_name(ID, path, &err), 0);
	assert_int_equal(private_dir_make(path, geteuid(), getegid(), &err), 0);
}

static void a_new_one_is_private_and_has_its_places(void **state)
{
	char path[PRIVATE_DIR_MAX], below[PRIVATE_DIR_MAX + 16];
	static const char *const names[] = { "", "/box", "/box/out", "/tmp" };
	struct cj_error err = { 0 };
	(void)state;

	make(path);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct stat st;
		(void)snprintf(below, sizeof(below), "%s%s", path, names[i]);
		assert_int_equal(lstat(below, &st), 0);
		assert_int_equal(st.st_mode, S_IFDIR | 0700);
	}
	assert_int_equal(private_dir_make(path, geteuid(), getegid(), &err), -EEXIST);
	assert_int_equal(access(below, F_OK), 0); /* what is there stays */
	assert_int_equal(private_dir_remove(path, ID, &err), 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(private_dir_remove(path, ID, &err), 0);
}

static void names_differ_and_obey_tmpdir(void **state)
{
	char one[PRIVATE_DIR_MAX], other[PRIVATE_DIR_MAX];
	char long_name[2 * PRIVATE_DIR_MAX] = "/";
	struct cj_error err = { 0 };
	(void)state;

	assert_int_equal(private_dir_name(ID, one, &err), 0);
	assert_int_equal(private_dir_name(ID, other, &err), 0);
	assert_string_not_equal(one, other);
	if (geteuid() == 0) /* whose TMPDIR its jail's user may not reach */
		return;
	assert_int_equal(setenv("TMPDIR", "/x", 1), 0);
	assert_int_equal(private_dir_name(ID, one, &err), 0);
	assert_int_equal(strncmp(one, "/x/cejail-" ID "-", strlen("/x/cejail-" ID "-")), 0);
	memset(long_name + 1, 'x', sizeof(long_name) - 2);
	assert_int_equal(setenv("TMPDIR", long_name, 1), 0);
	assert_int_equal(private_dir_name(ID, one, &err), -EINVAL);
	assert_int_equal(unsetenv("TMPDIR"), 0);
}

static void any_tree_is_removed_and_nothing_else(void **state)
{
	char path[PRIVATE_DIR_MAX], link[PRIVATE_DIR_MAX + 16];
	char kept[] = "/tmp/cejail-kept-XXXXXX";
	struct cj_error err = { 0 };
	(void)state;

	assert_non_null(mkdtemp(kept));
	make(path);
	(void)snprintf(link, sizeof(link), "%s/box/to-kept", path);
	assert_int_equal(symlink(kept, link), 0);
	assert_int_equal(chmod(path, 0), 0);
	assert_int_equal(private_dir_remove(path, ID, &err), 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(access(kept, F_OK), 0);

	/* A record can't name another directory. */
	static const char *const others[] = { "/",
					      "cejail-" ID "-0123456789abcdef",
					      "/tmp/" ID,
					      "/tmp/cejail-" ID "-",
					      "/tmp/cejail-" ID "-0123456789abcde.",
					      "/tmp/cejail-other-0123456789abcdef" };
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_int_equal(private_dir_remove(others[i], ID, &err), -EINVAL);
	assert_int_equal(private_dir_remove(kept, "kept", &err), -EINVAL);
	assert_int_equal(rmdir(kept), 0);
}

/* Somebody who knows the name makes it a link to a directory of ours. */
static void a_link_in_its_place_is_not_followed(void **state)
{
	char path[PRIVATE_DIR_MAX];
	char kept[] = "/tmp/cejail-kept-XXXXXX", file[64];
	struct cj_error err = { 0 };
	(void)state;

	assert_non_null(mkdtemp(kept));
	(void)snprintf(file, sizeof(file), "%s/file", kept);
	assert_int_equal(mkdir(file, 0700), 0);
	assert_int_equal(private_dir_name(ID, path, &err), 0);
	assert_int_equal(symlink(kept, path), 0);
	assert_int_equal(private_dir_make(path, geteuid(), getegid(), &err), -EEXIST);
	assert_true(private_dir_remove(path, ID, &err) < 0);
	assert_int_equal(access(file, F_OK), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(file), 0);
	assert_int_equal(rmdir(kept), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_one_is_private_and_has_its_places),
		cmocka_unit_test(names_differ_and_obey_tmpdir),
		cmocka_unit_test(any_tree_is_removed_and_nothing_else),
		cmocka_unit_test(a_link_in_its_place_is_not_followed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
