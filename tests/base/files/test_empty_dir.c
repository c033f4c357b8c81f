/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/files/empty_dir.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "runtime/base/scope.h"

/* Deeper than a path can be, and closed to its owner. */
static void make_deep(int top_fd)
{
	auto_fd int fd = openat(top_fd, "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < 3000; i++) {
		assert_int_equal(mkdirat(fd, "d", 0700), 0);
		int next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		assert_int_equal(fchmod(fd, 0), 0);
		(void)close(fd);
		fd = next;
	}
	assert_int_equal(mkdirat(fd, ".up-0", 0), 0); /* a name that the function would choose */
	assert_int_equal(symlinkat("/", fd, "link"), 0);
	assert_int_equal(mkfifoat(fd, "fifo", 0), 0);
}

static void all_that_is_in_a_directory_goes_and_nothing_else(void **state)
{
	char top[] = "/tmp/cejail-empty-XXXXXX", kept[] = "/tmp/cejail-kept-XXXXXX";
	(void)state;

	assert_non_null(mkdtemp(kept));
	assert_non_null(mkdtemp(top));
	auto_fd int top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(top_fd, "deep", 0700), 0);
	assert_int_equal(symlinkat(kept, top_fd, "deep/to-kept"), 0);
	assert_int_equal(symlinkat(kept, top_fd, "to-kept"), 0);
	assert_int_equal(mkdirat(top_fd, ".up-1", 0700), 0);
	assert_int_equal(mknodat(top_fd, "whiteout", S_IFCHR, 0), 0);
	make_deep(top_fd);
	assert_int_equal(chmod(top, 0), 0);
	assert_int_equal(empty_dir(AT_FDCWD, top), 0);
	assert_int_equal(empty_dir(AT_FDCWD, top), 0);
	assert_int_equal(rmdir(top), 0);
	assert_int_equal(rmdir(kept), 0); /* it is there */
}

static void only_a_directory_is_emptied(void **state)
{
	char top[] = "/tmp/cejail-empty-XXXXXX";
	(void)state;

	assert_non_null(mkdtemp(top));
	auto_fd int top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(top_fd, "d", 0700), 0);
	assert_int_equal(mkdirat(top_fd, "d/kept", 0700), 0);
	assert_int_equal(symlinkat("d", top_fd, "link"), 0);
	assert_int_equal(empty_dir(top_fd, "none"), -ENOENT);
	assert_true(empty_dir(top_fd, "link") < 0);
	assert_int_equal(faccessat(top_fd, "d/kept", F_OK, 0), 0);
	assert_int_equal(empty_dir(AT_FDCWD, top), 0);
	assert_int_equal(rmdir(top), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_that_is_in_a_directory_goes_and_nothing_else),
		cmocka_unit_test(only_a_directory_is_emptied),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
