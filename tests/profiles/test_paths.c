/* SPDX-License-Identifier: Apache-2.0 */
/* "SRC[:DST]", places in the jail, and sources that are what their name says. */
#include "profiles/paths.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <limits.h>
#include <sys/stat.h>

static struct arena arena;

static int arena_teardown(void **state)
{
	(void)state;
	arena_fini(&arena);
	return 0;
}

static void assert_split(const char *text, const char *source, const char *target)
{
	const char *out_source, *out_target;
	struct cj_error err = { 0 };
	assert_int_equal(paths_split(text, &arena, &out_source, &out_target, &err), 0);
	assert_string_equal(out_source, source);
	if (target)
		assert_string_equal(out_target, target);
	else
		assert_null(out_target);
}

static void a_colon_separates_source_and_target(void **state)
{
	(void)state;
	assert_split("/a", "/a", NULL);
	assert_split("/a:/b", "/a", "/b");
	assert_split("a b:c", "a b", "c");
}

static void an_escaped_colon_belongs_to_the_name(void **state)
{
	(void)state;
	assert_split("/a\\:b", "/a:b", NULL);
	assert_split("/a\\:b:/c\\:d", "/a:b", "/c:d");
	assert_split("/a\\\\:/b", "/a\\", "/b");
	assert_split("/a\\b", "/a\\b", NULL);
	assert_split("/a\\", "/a\\", NULL);
}

static void parts_that_are_empty_or_too_many_are_refused(void **state)
{
	(void)state;
	const char *const bad[] = { "", ":", "/a:", ":/b", "/a::/b", "/a:/b:ro" };
	const char *source, *target;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct cj_error err = { 0 };
		assert_int_equal(paths_split(bad[i], &arena, &source, &target, &err), -EINVAL);
	}
	char many[2 * 200 + 1];
	for (size_t i = 0; i < 200; i++)
		memcpy(many + 2 * i, "a:", 2);
	many[399] = '\0';
	struct strings parts;
	struct cj_error err = { 0 };
	assert_int_equal(paths_split_all(many, &arena, &parts, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "more than"));
}

static void assert_target(const char *text, const char *expected)
{
	const char *out;
	struct cj_error err = { 0 };
	if (paths_target(text, &arena, &out, &err) < 0)
		fail_msg("%s", err.msg);
	assert_string_equal(out, expected);
}

static void targets_are_normalised(void **state)
{
	(void)state;
	assert_target("/a", "/a");
	assert_target("//a///b/", "/a/b");
	assert_target("/a/./b/.", "/a/b");
	assert_target("x", "/box/x");
	assert_target("./x/y", "/box/x/y");
	assert_target("/..a/b..", "/..a/b..");
	assert_target("/procession", "/procession");
	assert_target("/device/x", "/device/x");
}

static void links_that_every_jail_has_are_followed(void **state)
{
	(void)state;
	assert_target("/var/tmp/x", "/tmp/x");
	assert_target("//var/./tmp/x/y", "/tmp/x/y");
	assert_target("/var/tmp", "/tmp");
	assert_target("/var/run/docker.sock", "/run/docker.sock");
	assert_target("/var/tmpfiles/x", "/var/tmpfiles/x");
	assert_target("/var", "/var");
	assert_target("/x/var/tmp/y", "/x/var/tmp/y");
}

static void targets_that_lead_elsewhere_are_refused(void **state)
{
	(void)state;
	const char *const bad[] = { "",         "/",          "//",           "/.",
				    "..",       "/a/..",      "/../a",        "a/../b",
				    "/proc",    "/proc/1",    "/dev",         "/dev/x",
				    "/sys",     "/sys/fs/x/", "//proc//self", "/./dev/shm",
				    "/etc/mtab" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const char *out;
		struct cj_error err = { 0 };
		if (paths_target(bad[i], &arena, &out, &err) == 0)
			fail_msg("'%s' became '%s'", bad[i], out);
	}
}

static void names_longer_than_the_kernel_takes_are_refused(void **state)
{
	(void)state;
	char name[NAME_MAX + 2], path[PATH_MAX + 2];
	const char *out;
	struct cj_error err = { 0 };
	memset(name, 'a', sizeof(name));
	name[NAME_MAX + 1] = '\0';
	assert_int_equal(paths_target(name, &arena, &out, &err), -EINVAL);
	name[NAME_MAX] = '\0';
	assert_int_equal(paths_target(name, &arena, &out, &err), 0);

	for (size_t i = 0; i < sizeof(path); i++)
		path[i] = i % 2 ? 'a' : '/';
	path[PATH_MAX] = '\0';
	assert_int_equal(paths_target(path, &arena, &out, &err), -EINVAL);
	path[PATH_MAX - 2] = '\0';
	assert_int_equal(paths_target(path, &arena, &out, &err), 0);
}

static void below_means_whole_components(void **state)
{
	(void)state;
	assert_true(paths_is_below("/a", "/a"));
	assert_true(paths_is_below("/a/b", "/a"));
	assert_true(paths_is_below("/a", "/"));
	assert_false(paths_is_below("/ab", "/a"));
	assert_false(paths_is_below("/a", "/a/b"));
}

/* --- on a real tree --------------------------------------------------------- */

static char top[] = "/tmp/cejail-paths-XXXXXX";

static int tree_setup(void **state)
{
	(void)state;
	/* /tmp itself may be a link somewhere */
	return mkdtemp(top) && chdir(top) == 0 && mkdir("real", 0700) == 0 &&
		       mkdir("real/sub", 0700) == 0 && symlink("real", "link") == 0 &&
		       symlink("nowhere", "dangling") == 0
		   ? 0
		   : -1;
}

static int tree_teardown(void **state)
{
	(void)rmdir("real/sub");
	(void)rmdir("real");
	(void)unlink("link");
	(void)unlink("dangling");
	(void)arena_teardown(state);
	return chdir("/") == 0 && rmdir(top) == 0 ? 0 : -1;
}

static void assert_resolves(const char *path, const char *below_top)
{
	const char *out;
	char expected[PATH_MAX];
	struct cj_error err = { 0 };
	if (paths_resolve(path, &arena, &out, &err) < 0)
		fail_msg("%s", err.msg);
	(void)snprintf(expected, sizeof(expected), "%s%s", top, below_top);
	assert_string_equal(out, expected);
}

static void relative_sources_become_absolute(void **state)
{
	(void)state;
	assert_resolves(".", "");
	assert_resolves("real", "/real");
	assert_resolves("./real//sub/", "/real/sub");
	assert_resolves("real/sub/../../real", "/real");
}

static void a_source_behind_a_link_is_refused_and_the_real_path_named(void **state)
{
	(void)state;
	const char *const bad[] = { "link", "link/sub", "./link/", "link/../real" };
	const char *out;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct cj_error err = { 0 };
		int rc = paths_resolve(bad[i], &arena, &out, &err);
		if (strcmp(bad[i], "link/../real") == 0) { /* really is what its letters say */
			assert_int_equal(rc, 0);
			continue;
		}
		assert_int_equal(rc, -EINVAL);
		assert_non_null(strstr(err.msg, "symbolic link"));
		assert_non_null(strstr(err.msg, "/real"));
	}
}

static void a_source_that_is_not_there_is_named(void **state)
{
	(void)state;
	const char *const gone[] = { "absent", "dangling" };
	const char *out;
	for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++) {
		struct cj_error err = { 0 };
		assert_int_equal(paths_resolve(gone[i], &arena, &out, &err), -ENOENT);
		assert_non_null(strstr(err.msg, gone[i]));
	}
}

int main(void)
{
	const struct CMUnitTest pure[] = {
		cmocka_unit_test(a_colon_separates_source_and_target),
		cmocka_unit_test(an_escaped_colon_belongs_to_the_name),
		cmocka_unit_test(parts_that_are_empty_or_too_many_are_refused),
		cmocka_unit_test(targets_are_normalised),
		cmocka_unit_test(links_that_every_jail_has_are_followed),
		cmocka_unit_test(targets_that_lead_elsewhere_are_refused),
		cmocka_unit_test(names_longer_than_the_kernel_takes_are_refused),
		cmocka_unit_test(below_means_whole_components),
	};
	const struct CMUnitTest acting[] = {
		cmocka_unit_test(relative_sources_become_absolute),
		cmocka_unit_test(a_source_behind_a_link_is_refused_and_the_real_path_named),
		cmocka_unit_test(a_source_that_is_not_there_is_named),
	};
	int failed = cmocka_run_group_tests(pure, NULL, arena_teardown);
	return failed + cmocka_run_group_tests(acting, tree_setup, tree_teardown);
}
