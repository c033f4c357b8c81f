/* SPDX-License-Identifier: Apache-2.0 */
/* Locks on the layers of an image. */
/* WRAP: flock */
#include "rootfs/image/image_store.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "runtime/base/scope.h"
#include "tests/temp_dir.h"

static const char *names[] = { "one", "two" };

/* The absolute paths of the layers; each directory exists. */
static struct strings make_layers(struct arena *a)
{
	struct strings paths = { 0 };
	for (size_t i = 0; i < 2; i++) {
		const char *path = arena_printf(a, "%s/%s", temp_dir, names[i]);
		assert_true(path && (mkdir(path, 0755) == 0 || errno == EEXIST));
		assert_int_equal(strings_add(&paths, a, path), 0);
	}
	return paths;
}

static bool is_claimed(int dir_fd, const char *name)
{
	struct cj_error err = { 0 };
	auto_fd int fd = -1;
	assert_int_equal(image_use_claim(dir_fd, name, &fd, &err), 0);
	return fd >= 0;
}

static void a_layer_in_use_is_not_claimed(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct cj_error err = { 0 };
	struct image_use one, two;
	struct strings paths = make_layers(&a);
	struct strings first = { paths.items, 1 };
	assert_true(is_claimed(temp_dir_fd, "one"));
	assert_int_equal(image_use_begin(&one, &paths, &a, &err), 0);
	assert_int_equal(image_use_begin(&two, &first, &a, &err), 0);
	assert_false(is_claimed(temp_dir_fd, "one") || is_claimed(temp_dir_fd, "two"));
	image_use_end(&one);
	assert_true(is_claimed(temp_dir_fd, "two"));
	assert_false(is_claimed(temp_dir_fd, "one"));
	image_use_end(&two);
	image_use_end(&two);
	assert_true(is_claimed(temp_dir_fd, "one"));
}

static void a_removed_layer_is_an_error_and_none_stays_locked(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct cj_error err = { 0 };
	struct image_use use;
	struct strings paths = make_layers(&a);
	auto_fd int claimed_fd = -1;
	assert_int_equal(image_use_claim(temp_dir_fd, "two", &claimed_fd, &err), 0);
	assert_int_equal(image_use_begin(&use, &paths, &a, &err),
			 -ENOENT); /* about to be removed */
	assert_int_equal(use.count, 0);
	assert_true(is_claimed(temp_dir_fd, "one"));
	assert_int_equal(renameat(temp_dir_fd, "two", temp_dir_fd, "away"), 0);
	assert_int_equal(image_use_begin(&use, &paths, &a, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "/two' was removed"));
	assert_true(is_claimed(temp_dir_fd, "one"));
	assert_int_equal(unlinkat(temp_dir_fd, "away", AT_REMOVEDIR), 0);
}

/* Between open(2) and flock(2) of a jail. */
static const char *renames; /* NULL: nothing */
int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);
int __wrap_flock(int fd, int operation)
{
	if (renames) {
		const char *from = renames;
		char to[512];
		renames = NULL;
		(void)snprintf(to, sizeof(to), "%s.old", from);
		assert_int_equal(rename(from, to), 0);
		assert_int_equal(mkdir(from, 0755), 0); /* imported again */
		assert_int_equal(rmdir(to), 0);
	}
	return __real_flock(fd, operation);
}

static void a_layer_that_is_renamed_before_its_lock_is_an_error(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct cj_error err = { 0 };
	struct image_use use;
	struct strings paths = make_layers(&a);
	renames = paths.items[0];
	assert_int_equal(image_use_begin(&use, &paths, &a, &err), -ENOENT);
	assert_int_equal(image_use_begin(&use, &paths, &a, &err), 0);
	image_use_end(&use);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_layer_in_use_is_not_claimed),
		cmocka_unit_test(a_removed_layer_is_an_error_and_none_stays_locked),
		cmocka_unit_test(a_layer_that_is_renamed_before_its_lock_is_an_error),
	};
	return cmocka_run_group_tests(tests, temp_dir_make, temp_dir_remove);
}
