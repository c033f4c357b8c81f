/* SPDX-License-Identifier: Apache-2.0 */
/* Names that other programs execute: what is new or changed below a directory. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "rootfs/files/autorun.h"
#include "runtime/base/scope.h"
#include "tests/temp_dir.h"

static void put(const char *path, const char *text)
{
	auto_fd int fd = openat(temp_dir_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

/* "NAME NAME" of what has changed since `before`. */
static const char *changes_since(const struct autorun_marks *before)
{
	static char list[512];
	struct autorun_marks after;
	const char *name;
	size_t at = 0, used = 0;

	list[0] = '\0';
	autorun_look(temp_dir_fd, &after);
	while ((name = autorun_next_change(before, &after, &at)) != NULL)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", used ? " " : "",
					 name);
	return list;
}

static void a_name_is_found_at_any_depth_by_whole_components(void **state)
{
	(void)state;
	static const char *const named[] = {
		".git",
		".git/hooks/pre-commit",
		"sub/.git/config",
		".envrc",
		"a/b/.envrc",
		".GIT/x",
		".vscode/tasks.json",
		".mcp.json",
		".claude/x",
		".config/cejail/a.json",
		".bashrc",
	};
	static const char *const others[] = {
		"",
		"git",
		".github/workflows/ci.yml",
		".gitignore",
		"x.git/config",
		".config",
		".config/other",
		"envrc",
		"a.envrc",
		".envrc.txt",
		"plots/1.png",
	};
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
		assert_true(autorun_has_name(named[i]));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(autorun_has_name(others[i]));
}

static void each_new_or_changed_name_is_returned_once(void **state)
{
	(void)state;
	struct autorun_marks before;

	assert_int_equal(mkdirat(temp_dir_fd, ".git", 0755), 0);
	assert_int_equal(mkdirat(temp_dir_fd, ".git/hooks", 0755), 0);
	assert_int_equal(mkdirat(temp_dir_fd, ".vscode", 0755), 0);
	put(".git/config", "[core]\n");
	put(".bashrc", "x\n");
	autorun_look(temp_dir_fd, &before);
	assert_string_equal(changes_since(&before), "");

	put("main.c", "int x;\n"); /* no name of the table */
	put(".git/index", "x");    /* git writes it all the time */
	assert_string_equal(changes_since(&before), "");

	put(".git/hooks/pre-commit", "#!/bin/sh\n"); /* not the directory as well */
	put(".vscode/other.json", "{}");             /* the directory alone */
	put(".envrc", "x\n");
	assert_int_equal(mkdirat(temp_dir_fd, ".claude", 0755), 0);
	put(".claude/settings.json", "{}"); /* its directory is new, and named */
	assert_string_equal(changes_since(&before), ".git/hooks/pre-commit .envrc .vscode .claude");
}

static void a_replaced_file_is_a_change(void **state)
{
	(void)state;
	struct autorun_marks before;

	put(".profile", "x\n");
	put(".zshrc", "x\n");
	autorun_look(temp_dir_fd, &before);
	put("new", "y\n");
	assert_int_equal(renameat(temp_dir_fd, "new", temp_dir_fd, ".profile"), 0);
	assert_int_equal(unlinkat(temp_dir_fd, ".zshrc", 0), 0); /* gone: nobody executes it */
	assert_string_equal(changes_since(&before), ".profile");
}

static void a_link_is_recorded_and_not_followed(void **state)
{
	(void)state;
	struct autorun_marks before;

	assert_int_equal(symlinkat("/etc/passwd", temp_dir_fd, ".zshenv"), 0);
	autorun_look(temp_dir_fd, &before);
	assert_string_equal(changes_since(&before), "");
	assert_int_equal(symlinkat("/etc", temp_dir_fd, ".ssh"), 0);
	assert_int_equal(symlinkat("/", temp_dir_fd, ".husky"), 0);
	assert_string_equal(changes_since(&before), ".husky .ssh");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_found_at_any_depth_by_whole_components),
		cmocka_unit_test_setup_teardown(each_new_or_changed_name_is_returned_once,
						temp_dir_make, temp_dir_remove),
		cmocka_unit_test_setup_teardown(a_replaced_file_is_a_change, temp_dir_make,
						temp_dir_remove),
		cmocka_unit_test_setup_teardown(a_link_is_recorded_and_not_followed, temp_dir_make,
						temp_dir_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
