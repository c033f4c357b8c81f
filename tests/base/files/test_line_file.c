/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: write */
/* Whole lines in a file that others append to as well. */
#include "runtime/base/files/line_file.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <sys/stat.h>

#include "tests/temp_dir.h"

/* What write(2) to the file does. */
static struct {
	int fd, code;
	size_t room; /* bytes it takes; 0: all */
} disk;

ssize_t __real_write(int fd, const void *bytes, size_t size);
ssize_t __wrap_write(int fd, const void *bytes, size_t size);
ssize_t __wrap_write(int fd, const void *bytes, size_t size)
{
	if (fd == disk.fd && disk.code) {
		errno = disk.code;
		return -1;
	}
	if (fd == disk.fd && disk.room > 0 && disk.room < size)
		size = disk.room;
	return __real_write(fd, bytes, size);
}

static const char *path_of(const char *name)
{
	static char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", temp_dir, name);
	return path;
}

static struct line_file open_file(const char *name)
{
	struct line_file f = LINE_FILE_NULL;
	struct cj_error err = { 0 };

	assert_int_equal(line_file_open(path_of(name), 0600, &f, &err), 0);
	return f;
}

static void append(struct line_file *f, const char *text)
{
	struct cj_error err = { 0 };

	if (line_file_append(f, text, strlen(text), &err) < 0)
		fail_msg("%s", err.msg);
}

static void assert_content(const char *name, const char *wanted)
{
	char text[256] = "";
	FILE *file = fopen(path_of(name), "re");

	assert_non_null(file);
	(void)!fread(text, 1, sizeof(text) - 1, file);
	(void)fclose(file);
	assert_string_equal(text, wanted);
}

static void two_writers_append_whole_lines(void **state)
{
	(void)state;
	struct line_file one = open_file("shared"), other = open_file("shared");
	struct stat st;

	append(&one, "1");
	append(&other, "2");
	append(&one, "3");
	assert_content("shared", "1\n2\n3\n");
	assert_int_equal(fstat(one.fd, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(fcntl(one.fd, F_GETFD), FD_CLOEXEC);
	line_file_close(&one);
	line_file_close(&other);
	assert_int_equal(one.fd, -1);
}

static void a_link_a_fifo_and_a_directory_are_refused(void **state)
{
	(void)state;
	static const char *const names[] = { "link", "fifo", "." };
	struct line_file f = LINE_FILE_NULL;

	assert_int_equal(symlinkat("target", temp_dir_fd, "link"), 0);
	assert_int_equal(mkfifoat(temp_dir_fd, "fifo", 0600), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct cj_error err = { 0 };
		assert_true(line_file_open(path_of(names[i]), 0600, &f, &err) < 0);
		assert_non_null(strstr(err.msg, path_of(names[i])));
		assert_int_equal(f.fd, -1);
	}
	assert_int_equal(faccessat(temp_dir_fd, "target", F_OK, 0), -1);
}

static void a_line_after_half_a_line_begins_anew(void **state)
{
	(void)state;
	struct line_file f = open_file("torn");
	struct cj_error err = { 0 };

	disk.fd = f.fd;
	disk.room = 2;
	assert_int_equal(line_file_append(&f, "first", 5, &err), -ENOSPC);
	disk.room = 0;
	assert_content("torn", "fi\n"); /* for other processes that write here */
	append(&f, "second");
	append(&f, "third");
	assert_content("torn", "fi\nsecond\nthird\n");
	line_file_close(&f);
}

static void a_write_that_fails_writes_nothing(void **state)
{
	(void)state;
	struct line_file f = open_file("full");
	struct cj_error err = { 0 };

	disk.fd = f.fd;
	disk.code = ENOSPC;
	assert_int_equal(line_file_append(&f, "lost", 4, &err), -ENOSPC);
	assert_non_null(strstr(err.msg, "full"));
	disk.code = 0;
	append(&f, "kept");
	assert_content("full", "kept\n");
	line_file_close(&f);
}

static void opening_again_follows_a_rotation(void **state)
{
	(void)state;
	struct line_file f = open_file("log"), none = LINE_FILE_NULL;
	struct cj_error err = { 0 };

	append(&f, "old");
	assert_int_equal(renameat(temp_dir_fd, "log", temp_dir_fd, "log.1"), 0);
	assert_int_equal(line_file_reopen(&f, 0600, &err), 0);
	append(&f, "new");
	assert_content("log.1", "old\n");
	assert_content("log", "new\n");

	assert_int_equal(unlinkat(temp_dir_fd, "log", 0), 0);
	assert_int_equal(mkdirat(temp_dir_fd, "log", 0700), 0);
	assert_true(line_file_reopen(&f, 0600, &err) < 0);
	append(&f, "still open");
	line_file_close(&f);
	assert_int_equal(line_file_reopen(&none, 0600, &err), 0);
	assert_int_equal(none.fd, -1);
}

static int reset(void **state)
{
	(void)state;
	disk = (typeof(disk)){ .fd = -1 };
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(two_writers_append_whole_lines, reset),
		cmocka_unit_test_setup(a_link_a_fifo_and_a_directory_are_refused, reset),
		cmocka_unit_test_setup(a_line_after_half_a_line_begins_anew, reset),
		cmocka_unit_test_setup(a_write_that_fails_writes_nothing, reset),
		cmocka_unit_test_setup(opening_again_follows_a_rotation, reset),
	};
	return cmocka_run_group_tests(tests, temp_dir_make, temp_dir_remove);
}
