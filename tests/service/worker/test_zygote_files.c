/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: inotify_add_watch inotify_init1 */
/* Files that a zygote has loaded: each way to change one is noticed, and nothing else is. */
#include "runtime/service/worker/zygote_keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "runtime/base/scope.h"
#include "tests/failing.h"
#include "tests/temp_dir.h"

FAILS(int, inotify_init1, (int flags), (flags), -1, EMFILE)
FAILS(int, inotify_add_watch, (int fd, const char *path, uint32_t mask), (fd, path, mask), -1,
      ENOSPC)

static const char *path_of(const char *name)
{
	static char path[128];
	(void)snprintf(path, sizeof(path), "%s/%s", temp_dir, name);
	return path;
}

static void put(const char *name, const char *text)
{
	FILE *file = fopen(path_of(name), "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* "loaded.py" in a subdirectory; the list names it, a file that is gone, and no file. */
static int set_up(void **state)
{
	if (temp_dir_make(state) < 0 || mkdirat(temp_dir_fd, "lib", 0755) < 0)
		return -1;
	char list[256];
	(void)snprintf(list, sizeof(list), "%s/lib/loaded.py\n[heap]\n\n%s/lib/gone.py\n", temp_dir,
		       temp_dir);
	put(ZYGOTE_FILES_LIST, list);
	put("lib/loaded.py", "value = 1\n");
	put("lib/other.py", "value = 1\n");
	fail_at = calls_here = 0;
	is_armed = true;
	return 0;
}

static int watch(void)
{
	struct cj_error err = { 0 };
	int fd = zygote_files_watch(temp_dir_fd, &err);
	if (fd < 0)
		fail_msg("%s", err.msg);
	return fd;
}

static bool has_changed(int watch_fd)
{
	struct pollfd p = { .fd = watch_fd, .events = POLLIN };
	return poll(&p, 1, 0) == 1;
}

static void write_it(void)
{
	put("lib/loaded.py", "value = 2\n");
}

static void replace_it(void)
{
	assert_int_equal(renameat(temp_dir_fd, "lib/other.py", temp_dir_fd, "lib/loaded.py"), 0);
}

static void remove_it(void)
{
	assert_int_equal(unlinkat(temp_dir_fd, "lib/loaded.py", 0), 0);
}

static void move_it(void)
{
	assert_int_equal(renameat(temp_dir_fd, "lib/loaded.py", temp_dir_fd, "lib/new.py"), 0);
}

static void each_way_to_change_a_loaded_file_is_noticed(void **state)
{
	void (*const ways[])(void) = { write_it, replace_it, remove_it, move_it };
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		assert_int_equal(i == 0 ? 0 : set_up(state), 0);
		auto_fd int held = openat(temp_dir_fd, "lib/loaded.py", O_RDONLY | O_CLOEXEC);
		assert_true(held >= 0); /* as the interpreter may hold it */
		auto_fd int fd = watch();
		assert_false(has_changed(fd));
		ways[i]();
		assert_true(has_changed(fd));
		zygote_files_drain(fd);
		assert_false(has_changed(fd));
		if (i + 1 < sizeof(ways) / sizeof(ways[0]))
			assert_int_equal(temp_dir_remove(state), 0);
	}
}

static void other_files_and_reading_are_no_change(void **state)
{
	(void)state;
	auto_fd int fd = watch();
	put("lib/new.py", "");
	put("lib/other.py", "");
	auto_fd int reader = openat(temp_dir_fd, "lib/loaded.py", O_RDONLY | O_CLOEXEC);
	char byte;
	assert_int_equal(read(reader, &byte, 1), 1);
	assert_false(has_changed(fd));
}

static void without_a_list_nothing_is_watched(void **state)
{
	(void)state;
	assert_int_equal(unlinkat(temp_dir_fd, ZYGOTE_FILES_LIST, 0), 0);
	auto_fd int fd = watch();
	write_it();
	assert_false(has_changed(fd));
}

static void a_list_without_end_is_refused(void **state)
{
	(void)state;
	struct cj_error err = { 0 };
	assert_int_equal(truncate(path_of(ZYGOTE_FILES_LIST), ZYGOTE_FILES_LIST_MAX + 1), 0);
	assert_int_equal(zygote_files_watch(temp_dir_fd, &err), -EFBIG);
	assert_non_null(strstr(err.msg, "which files the zygote has loaded"));
}

static void without_a_free_watch_it_fails_and_names_the_limit(void **state)
{
	static const char *const limits[] = { "max_user_instances", "max_user_watches" };
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct cj_error err = { 0 };
		calls_here = 0;
		fail_at = i + 1;
		assert_true(zygote_files_watch(temp_dir_fd, &err) < 0);
		if (!strstr(err.hint, limits[i]))
			fail_msg("%d: %s (%s)", i, err.msg, err.hint);
	}
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, temp_dir_remove)
	const struct CMUnitTest tests[] = {
		ROW(each_way_to_change_a_loaded_file_is_noticed),
		ROW(other_files_and_reading_are_no_change),
		ROW(without_a_list_nothing_is_watched),
		ROW(a_list_without_end_is_refused),
		ROW(without_a_free_watch_it_fails_and_names_the_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
