/* SPDX-License-Identifier: Apache-2.0 */
/* Which links a path may lead through.  Another user's directory needs root: chown(2). */
#include "runtime/base/files/owned_dir.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "runtime/base/scope.h"
#include "tests/forked.h"
#include "tests/temp_dir.h"

#define OTHER_UID 54321
#define OWN_UID   54322
#define SKIPPED   250 /* an exit status that is no errno */

static struct cj_error err;

/* 0 or the negative errno. */
static int try_open(const char *name, mode_t last)
{
	char path[256];
	(void)snprintf(path, sizeof(path), "%s/%s", temp_dir, name);
	auto_fd int fd = owned_dir_open(path, 0750, last, &err);
	return fd < 0 ? fd : 0;
}

static mode_t mode_of(const char *name)
{
	struct stat st;
	assert_int_equal(fstatat(temp_dir_fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_mode & 07777;
}

static void make_dir(const char *name, uid_t uid, mode_t mode)
{
	assert_int_equal(mkdirat(temp_dir_fd, name, 0755), 0);
	assert_int_equal(fchmodat(temp_dir_fd, name, mode, 0), 0);
	if (uid != geteuid() && fchownat(temp_dir_fd, name, uid, uid, 0) < 0)
		skip();
}

static void make_link(const char *name, const char *target, uid_t uid)
{
	assert_int_equal(symlinkat(target, temp_dir_fd, name), 0);
	if (uid != geteuid() && fchownat(temp_dir_fd, name, uid, uid, AT_SYMLINK_NOFOLLOW) < 0)
		skip();
}

static void missing_directories_are_created_each_with_its_mode(void **state)
{
	(void)state;
	assert_int_equal(try_open("a//b/c", 0), -ENOENT);
	assert_int_equal(try_open("a//b/c", 0700), 0);
	assert_int_equal(try_open("a/b/c", 0755), 0); /* it stays */
	assert_int_equal(mode_of("a/b"), 0750);
	assert_int_equal(mode_of("a/b/c"), 0700);
	assert_int_equal(close(openat(temp_dir_fd, "file", O_CREAT | O_WRONLY, 0644)), 0);
	assert_int_equal(try_open("file/d", 0700), -ENOTDIR);
	assert_non_null(strstr(err.msg, "file/d'"));
}

static void a_relative_path_begins_in_the_working_directory(void **state)
{
	(void)state;
	make_dir("here", geteuid(), 0755);
	assert_int_equal(fchdir(temp_dir_fd), 0);
	auto_fd int fd = owned_dir_open("./here/../here/", 0, 0, &err);
	assert_true(fd >= 0);
	assert_int_equal(chdir("/"), 0);
}

static void links_of_this_user_are_followed(void **state)
{
	(void)state;
	char absolute[128];
	(void)snprintf(absolute, sizeof(absolute), "%s/real", temp_dir);
	make_dir("real", geteuid(), 0755);
	make_link("one", "real", geteuid());
	make_link("two", absolute, geteuid());
	make_link("three", "../real/..//two", geteuid());
	assert_int_equal(try_open("one", 0), 0);
	assert_int_equal(try_open("two/below", 0700), 0);
	assert_int_equal(try_open("real/below", 0), 0);
	make_link("loop", "loop", geteuid());
	assert_int_equal(try_open("loop/x", 0700), -ELOOP);
	make_link("dangling", "nowhere/x", geteuid());
	assert_int_equal(try_open("dangling", 0700), -ENOENT);
}

static void no_link_that_another_user_can_change_is_followed(void **state)
{
	(void)state;
	make_dir("real", geteuid(), 0755);
	make_dir("open", geteuid(), 0777);
	make_link("open/link", "../real", geteuid());
	assert_int_equal(try_open("open/link", 0), -EPERM);
	assert_non_null(strstr(err.msg, "open/link' leads through a symbolic link"));
	assert_non_null(strstr(err.hint, "name the directory itself"));
	assert_int_equal(try_open("open/link/new", 0700), -EPERM);
	assert_int_equal(faccessat(temp_dir_fd, "real/new", F_OK, 0), -1);
	assert_int_equal(fchmodat(temp_dir_fd, "open", 01777, 0), 0);
	assert_int_equal(try_open("open/link", 0), 0);
}

static void no_link_below_a_directory_of_another_user_is_followed(void **state)
{
	(void)state;
	make_dir("real", geteuid(), 0755);
	make_dir("theirs", OTHER_UID, 0755);
	make_dir("theirs/ours", geteuid(), 0755);
	make_link("theirs/ours/link", "../../real", geteuid());
	assert_int_equal(try_open("theirs/ours/link", 0), -EPERM);
	assert_int_equal(try_open("theirs/ours", 0), 0);
	assert_int_equal(try_open("theirs/ours/new/one", 0700), 0);
	make_link("by another", "real", OTHER_UID);
	assert_int_equal(try_open("by another", 0), -EPERM);
	make_link("through", "theirs/ours/link", geteuid());
	assert_int_equal(try_open("through", 0), -EPERM);
}

/* As OWN_UID, who is root there: / and what other users have are nobody's. */
static void become_user_in_namespace(void)
{
	static const char map[] = "0 54322 1";
	if (setresuid(OWN_UID, OWN_UID, OWN_UID) < 0 || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0 ||
	    unshare(CLONE_NEWUSER) < 0)
		_exit(SKIPPED);
	int fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
	if (write(fd, map, sizeof(map) - 1) < 0)
		_exit(SKIPPED);
}

static int open_in_user_namespace(const char *name)
{
	int status = -1;
	pid_t pid = test_fork();
	if (pid == 0) {
		become_user_in_namespace();
		_exit(-try_open(name, 0));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == SKIPPED)
		skip();
	return -WEXITSTATUS(status);
}

static void a_user_without_an_id_here_does_not_count_as_root_where_all_may_write(void **state)
{
	(void)state;
	make_dir("real", geteuid(), 0755);
	make_dir("shared", geteuid(), 01777);
	assert_int_equal(fchmod(temp_dir_fd, 0755), 0);
	make_link("shared/theirs", "../real", OTHER_UID);
	make_dir("shared/dir", OTHER_UID, 0755);
	make_link("shared/dir/link", "../../real", OTHER_UID);
	assert_int_equal(open_in_user_namespace("shared/theirs"), -EPERM);
	assert_int_equal(open_in_user_namespace("shared/dir/link"), -EPERM);
	assert_int_equal(open_in_user_namespace("shared"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, temp_dir_make, temp_dir_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(missing_directories_are_created_each_with_its_mode),
		TEST(a_relative_path_begins_in_the_working_directory),
		TEST(links_of_this_user_are_followed),
		TEST(no_link_that_another_user_can_change_is_followed),
		TEST(a_user_without_an_id_here_does_not_count_as_root_where_all_may_write),
		TEST(no_link_below_a_directory_of_another_user_is_followed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
