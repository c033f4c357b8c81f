/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a layer: hostile names, replaced entries, whiteouts. */
#include "runtime/front/image/image_unpack.c"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/xattr.h>

#include "runtime/base/files/empty_dir.h"
#include "runtime/base/scope.h"

static char top[32];
static struct image_tree tree;
static struct cj_error err;

static int setup(void **state)
{
	(void)state;
	(void)umask(0);
	err = (struct cj_error){ 0 };
	(void)snprintf(top, sizeof(top), "/tmp/cejail-tree-XXXXXX");
	if (!mkdtemp(top))
		return -1;
	tree = (struct image_tree){ .root_fd = -1, .last_fd = -1 };
	tree.root_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return tree.root_fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	(void)state;
	tree_fini(&tree);
	cj_close(&tree.root_fd);
	return empty_dir(AT_FDCWD, top) < 0 ? -1 : rmdir(top);
}

static struct image_file file(const char *dir, const char *name)
{
	return (struct image_file){ .dir = dir, .name = name, .mode = 0644, .mtime = { 1000, 5 } };
}

static int put(const char *dir, const char *name)
{
	const struct image_file f = file(dir, name);
	auto_fd int fd = tree_make_file(&tree, &f, &err);
	return fd < 0 ? fd : tree_finish_file(fd, &f, &err);
}

static mode_t mode_at(const char *path)
{
	struct stat st;
	assert_int_equal(fstatat(tree.root_fd, path, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_mode;
}

static void permissions_are_the_owners_for_all(void **state)
{
	(void)state;
	assert_int_equal(tree_mode(0600, false), 0644);
	assert_int_equal(tree_mode(0700, false), 0755);
	assert_int_equal(tree_mode(04755, false), 0755);
	assert_int_equal(tree_mode(06511, false), 0555);
	assert_int_equal(tree_mode(0, false), 0444);
	assert_int_equal(tree_mode(0, true), 0755);
	assert_int_equal(tree_mode(01777, true), 0755);
}

static void missing_directories_are_made(void **state)
{
	(void)state;
	struct stat st;
	assert_int_equal(put("a/b/c", "f"), 0);
	assert_int_equal(tree.made, 3);
	assert_int_equal(mode_at("a/b"), S_IFDIR | 0755);
	assert_int_equal(mode_at("a/b/c/f"), S_IFREG | 0644);
	assert_int_equal(fstatat(tree.root_fd, "a/b/c/f", &st, 0), 0);
	assert_int_equal(st.st_mtim.tv_sec, 1000);
	assert_int_equal(put("a/b/c", "g"), 0);
	assert_int_equal(tree.made, 3);
}

static void nothing_is_reached_through_a_link(void **state)
{
	(void)state;
	const struct image_file link = file("", "l"), hard = file("", "h"), dir = file("l", "d");
	assert_int_equal(tree_make_link(&tree, &link, "/tmp", &err), 0);
	assert_int_equal(put("l", "f"), -EINVAL);
	assert_non_null(strstr(err.msg, "symbolic link"));
	assert_int_equal(put("l/x", "f"), -EINVAL);
	assert_int_equal(tree_make_dir(&tree, &dir, &err), -EINVAL);
	assert_int_equal(tree_hide(&tree, &dir, &err), -EINVAL);
	assert_int_equal(tree_hide_all(&tree, "l", &err), -EINVAL);
	assert_int_equal(tree_make_hard_link(&tree, &hard, "l", "x", &err), -EINVAL);
	assert_int_equal(put("..", "f"), -EXDEV);
	assert_int_equal(tree_set_time(&tree, "l", (struct timespec){ 0 }, &err), 0);
}

static void the_later_entry_counts(void **state)
{
	(void)state;
	const struct image_file f = file("", "f"), d = file("d", "x");
	assert_int_equal(tree_make_link(&tree, &f, "/etc/passwd", &err), 0);
	assert_int_equal(put("", "f"), 0);
	assert_true(S_ISREG(mode_at("f")));
	assert_int_equal(tree_make_dir(&tree, &f, &err), 0);
	assert_true(S_ISDIR(mode_at("f")));
	assert_int_equal(put("", "f"), 0);
	assert_true(S_ISREG(mode_at("f")));
	assert_int_equal(put("f", "below"), -EINVAL);
	/* the directory that was used last is replaced */
	assert_int_equal(tree_make_dir(&tree, &d, &err), 0);
	assert_true(tree_enter(&tree, "d/x", &err) >= 0);
	assert_int_equal(put("d", "x"), 0);
	assert_int_equal(put("d/x", "y"), -EINVAL);
	assert_int_equal(put("", "d"), -EINVAL);
	assert_non_null(strstr(err.msg, "not empty"));
}

static void hard_links_lead_to_files(void **state)
{
	(void)state;
	const struct image_file h = file("", "h"), l = file("", "l");
	assert_int_equal(put("d", "f"), 0);
	assert_int_equal(tree_make_hard_link(&tree, &h, "d", "f", &err), 0);
	assert_int_equal(tree_make_hard_link(&tree, &h, "", "d", &err), -EINVAL);
	assert_int_equal(tree_make_hard_link(&tree, &h, "", "none", &err), -ENOENT);
	assert_int_equal(tree_make_hard_link(&tree, &h, "", "h", &err), -EINVAL);
	assert_int_equal(tree_hide(&tree, &l, &err), 0);
	assert_int_equal(tree_make_hard_link(&tree, &h, "", "l", &err), -EINVAL);
}

static bool is_opaque(const char *path)
{
	char value[2];
	auto_fd int fd = openat(tree.root_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fgetxattr(fd, "user.overlay.opaque", value, sizeof(value)) == 1 && value[0] == 'y';
}

static bool has_attributes(void)
{
	bool has = fsetxattr(tree.root_fd, "user.test", "y", 1, 0) == 0;
	(void)fremovexattr(tree.root_fd, "user.test");
	return has;
}

static void a_whiteout_and_a_directory_are_an_opaque_directory(void **state)
{
	(void)state;
	const struct image_file a = file("", "a"), b = file("", "b"), c = file("", "c");
	assert_int_equal(tree_hide(&tree, &a, &err), 0);
	assert_true(S_ISCHR(mode_at("a")));
	assert_int_equal(put("", "c"), 0);
	assert_int_equal(tree_hide(&tree, &c, &err), 0);
	assert_true(S_ISREG(mode_at("c")));
	if (!has_attributes())
		skip();
	assert_int_equal(tree_make_dir(&tree, &a, &err), 0);
	assert_true(is_opaque("a"));
	assert_int_equal(tree_make_dir(&tree, &b, &err), 0);
	assert_false(is_opaque("b"));
	assert_int_equal(tree_hide(&tree, &b, &err), 0);
	assert_true(is_opaque("b"));
	assert_int_equal(tree_hide_all(&tree, "new/dir", &err), 0);
	assert_true(is_opaque("new/dir"));
	assert_int_equal(tree_hide_all(&tree, "", &err), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(permissions_are_the_owners_for_all),
		TEST(missing_directories_are_made),
		TEST(nothing_is_reached_through_a_link),
		TEST(the_later_entry_counts),
		TEST(hard_links_lead_to_files),
		TEST(a_whiteout_and_a_directory_are_an_opaque_directory),
#undef TEST
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
