/* SPDX-License-Identifier: Apache-2.0 */
/* Files that get their name when they are whole, with and without O_TMPFILE. */
#include "runtime/base/files/atomic_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "runtime/base/scope.h"

/* WRAP: openat linkat */

static char place[] = "/tmp/cejail-test-XXXXXX";
static int dir_fd = -1;
static bool has_no_tmpfile, is_crowded;

int __real_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...)
{
	if (has_no_tmpfile && (flags & O_TMPFILE) == O_TMPFILE) {
		errno = EOPNOTSUPP;
		return -1;
	}
	va_list ap;
	va_start(ap, flags);
	mode_t mode = va_arg(ap, mode_t);
	va_end(ap);
	return __real_openat(dir, path, flags, mode);
}

int __real_linkat(int from, const char *path, int to, const char *name, int flags);
int __wrap_linkat(int from, const char *path, int to, const char *name, int flags);
int __wrap_linkat(int from, const char *path, int to, const char *name, int flags)
{
	if (!is_crowded)
		return __real_linkat(from, path, to, name, flags);
	errno = EEXIST; /* another publishes before us each time */
	return -1;
}

static int begin(void **state)
{
	(void)state;
	has_no_tmpfile = is_crowded = false;
	memcpy(place, "/tmp/cejail-test-XXXXXX", sizeof(place));
	if (!mkdtemp(place))
		return -1;
	dir_fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir_fd < 0 ? -1 : 0;
}

static size_t count_files(void)
{
	size_t count = 0;
	auto_dir DIR *dir = opendir(place);
	while (dir && readdir(dir))
		count++;
	return count - 2;
}

static int end(void **state)
{
	(void)state;
	if (unlinkat(dir_fd, "x", 0) < 0)
		(void)unlinkat(dir_fd, "x", AT_REMOVEDIR);
	cj_close(&dir_fd);
	return rmdir(place);
}

static void put(struct atomic_file *f, const char *text)
{
	assert_int_equal(atomic_file_open(dir_fd, 0600, f), 0);
	assert_int_equal(write(f->fd, text, strlen(text)), strlen(text));
}

static void assert_reads(const char *text)
{
	char got[64] = "";
	auto_fd int fd = openat(dir_fd, "x", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_true(read(fd, got, sizeof(got) - 1) >= 0);
	assert_string_equal(got, text);
}

static void nothing_is_there_until_it_is_published(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct atomic_file f;
		struct stat st;
		has_no_tmpfile = i == 1;
		(void)unlinkat(dir_fd, "x", 0);
		put(&f, "new");
		assert_int_equal(count_files(), 0);
		assert_int_equal(fchmod(f.fd, 0640), 0);
		assert_int_equal(atomic_file_publish(&f, dir_fd, "x"), 0);
		assert_int_equal(f.fd, -1);
		atomic_file_fini(&f);
		assert_int_equal(count_files(), 1);
		assert_reads("new");
		assert_int_equal(fstatat(dir_fd, "x", &st, AT_SYMLINK_NOFOLLOW), 0);
		assert_int_equal(st.st_mode & 07777, 0640);
	}
}

static void a_file_of_the_name_is_replaced_and_a_link_not_followed(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct atomic_file f, old;
		has_no_tmpfile = i % 2;
		if (i < 2) {
			put(&old, "old and longer");
			assert_int_equal(atomic_file_publish(&old, dir_fd, "x"), 0);
		} else {
			(void)unlinkat(dir_fd, "x", 0);
			assert_int_equal(symlinkat("/etc/hostname", dir_fd, "x"), 0);
		}
		put(&f, "new");
		assert_int_equal(atomic_file_publish(&f, dir_fd, "x"), 0);
		atomic_file_fini(&f);
		assert_int_equal(count_files(), 1);
		assert_reads("new");
	}
}

static void a_directory_keeps_its_name(void **state)
{
	(void)state;
	assert_int_equal(mkdirat(dir_fd, "x", 0700), 0);
	for (int i = 0; i < 2; i++) {
		struct atomic_file f;
		has_no_tmpfile = i == 1;
		put(&f, "new");
		assert_int_equal(atomic_file_publish(&f, dir_fd, "x"), -EISDIR);
		atomic_file_fini(&f);
		assert_int_equal(count_files(), 1);
	}
}

static void an_unpublished_file_leaves_nothing(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct atomic_file f;
		has_no_tmpfile = i == 1;
		put(&f, "new");
		assert_int_equal(count_files(), 0);
		atomic_file_fini(&f);
		atomic_file_fini(&f);
		assert_int_equal(count_files(), 0);
	}
}

static void a_file_that_cannot_be_made_gives_the_reason(void **state)
{
	(void)state;
	struct atomic_file f;
	assert_int_equal(atomic_file_open(-1, 0600, &f), -EBADF);
	assert_int_equal(f.fd, -1);
	has_no_tmpfile = true;
	assert_int_equal(atomic_file_open(-1, 0600, &f), -EBADF);
	assert_int_equal(f.fd, -1);
}

static void it_does_not_try_for_ever(void **state)
{
	(void)state;
	struct atomic_file f;
	is_crowded = true;
	put(&f, "new");
	assert_int_equal(atomic_file_publish(&f, dir_fd, "x"), -EEXIST);
	atomic_file_fini(&f);
	assert_int_equal(count_files(), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_there_until_it_is_published),
		TEST(a_file_of_the_name_is_replaced_and_a_link_not_followed),
		TEST(a_directory_keeps_its_name),
		TEST(an_unpublished_file_leaves_nothing),
		TEST(a_file_that_cannot_be_made_gives_the_reason),
		TEST(it_does_not_try_for_ever),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
