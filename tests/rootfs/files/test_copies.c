/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: openat fstat fstatat mkdirat symlinkat readlinkat fchmod getdents64 pread close */
/* WRAP: futimens utimensat */
/* WRAP: sys_read sys_write sys_openat2 renameat getrandom malloc calloc */
/*
 * Files in and artefacts out while every call fails once, with an input/output error or for
 * want of memory: nobody takes a part for the whole.
 */
#include "tests/rootfs/inside.h"

#include <sys/random.h>

#include "rootfs/files/artifacts.h"
#include "rootfs/files/inputs.h"
#include "runtime/base/sys.h"
#include "tests/failing.h"

FAILS(int, openat, (int fd, const char *path, int flags, mode_t mode), (fd, path, flags, mode), -1,
      EIO)
FAILS(int, fstat, (int fd, struct stat *st), (fd, st), -1, EIO)
FAILS(int, fstatat, (int fd, const char *path, struct stat *st, int flags), (fd, path, st, flags),
      -1, EIO)
FAILS(int, mkdirat, (int fd, const char *path, mode_t mode), (fd, path, mode), -1, EIO)
FAILS(int, symlinkat, (const char *target, int fd, const char *path), (target, fd, path), -1, EIO)
FAILS(ssize_t, readlinkat, (int fd, const char *path, char *out, size_t size),
      (fd, path, out, size), -1, EIO)
FAILS(int, fchmod, (int fd, mode_t mode), (fd, mode), -1, EIO)
FAILS(int, futimens, (int fd, const struct timespec times[2]), (fd, times), -1, EIO)
FAILS(int, utimensat, (int fd, const char *path, const struct timespec times[2], int flags),
      (fd, path, times, flags), -1, EIO)
FAILS(ssize_t, getdents64, (int fd, void *bytes, size_t size), (fd, bytes, size), -1, EIO)
FAILS(ssize_t, pread, (int fd, void *bytes, size_t size, off_t at), (fd, bytes, size, at), -1, EIO)
FAILS(ssize_t, sys_read, (int fd, void *bytes, size_t size), (fd, bytes, size), -1, EIO)
FAILS(ssize_t, sys_write, (int fd, const void *bytes, size_t size), (fd, bytes, size), -1, EIO)
FAILS(int, sys_openat2, (int fd, const char *path, int flags, mode_t mode, uint64_t resolve),
      (fd, path, flags, mode, resolve), -1, EIO)
FAILS(int, renameat, (int from, const char *old, int to, const char *new), (from, old, to, new), -1,
      EIO)
FAILS(ssize_t, getrandom, (void *bytes, size_t size, unsigned flags), (bytes, size, flags), -1, EIO)
FAILS(void *, malloc, (size_t size), (size), NULL, ENOMEM)
FAILS(void *, calloc, (size_t count, size_t size), (count, size), NULL, ENOMEM)

/* Of what is written outside the last word comes at close(2): NFS, quotas.  A tmpfs has said it
 * all. */
static bool may_close_fail;
int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
	bool is_written = may_close_fail && is_armed &&
			  (fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY;
	int rc = __real_close(fd);
	return is_written && is_next(EIO) ? -1 : rc;
}

static bool says_why(const char *text)
{
	return strstr(text, "Input/output error") || strstr(text, "Cannot allocate memory");
}

/* Nothing that begins as our temporary files do. */
static bool has_temp(const char *path)
{
	bool found = false;
	DIR *dir = opendir(path);
	for (struct dirent *e; dir && (e = readdir(dir));)
		found = found || strncmp(e->d_name, ".cejail-", 8) == 0;
	if (dir)
		closedir(dir);
	return found;
}

static char *make_tree(void)
{
	char *place = make_place();
	mkdir(at(place, "out"), 0755);
	mkdir(at(place, "out/sub"), 0755);
	make_file(at(place, "out/a.txt"), "first");
	make_file(at(place, "out/sub/b.txt"), "second");
	return place;
}

/* --- in ------------------------------------------------------------------------------ */

static int write_through(void *context, const struct input *in, int fd, struct cj_error *err)
{
	return input_write(*(int *)context, in, fd, err);
}

static int copy_in(const char *source, int root_fd, struct cj_error *err)
{
	*calls = 0;
	is_armed = true;
	int rc = inputs_walk(source, "/box/new/out", 100, write_through, &root_fd, err);
	is_armed = false;
	return rc;
}

static void every_failing_call_fails_a_pack_of_files(void **state)
{
	(void)state;
	/* two files: "/d/a" and "/d/b", of three bytes each */
	struct {
		struct packed_file file;
		char path[5], bytes[3];
	} pack[2] = { { .path = "/d/a", .bytes = "one" }, { .path = "/d/b", .bytes = "two" } };
	for (size_t i = 0; i < 2; i++)
		pack[i].file = (struct packed_file){ .mode = 0644, .size = 3, .path_size = 5 };
	int rc = -1;
	for (fail_at = 1; rc != 0 || *calls >= fail_at; fail_at++) {
		struct cj_error err = { 0 };
		char *root = make_place();
		auto_fd int root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		int before = open_count();
		*calls = 0;
		is_armed = true;
		rc = input_pack_write(root_fd, (const char *)pack, sizeof(pack), true, &err);
		is_armed = false;
		assert_int_equal(open_count(), before);
		if (*calls >= fail_at && (rc >= 0 || !says_why(err.msg)))
			fail_msg("call %d went unnoticed: %d '%s'", fail_at, rc, err.msg);
		assert_false(has_temp(at(root, "d")));
		assert_true(rc < 0 || reads_as(at(root, "d/b"), "two"));
		end_place(root);
	}
	assert_true(fail_at > 10);
}

static void every_failing_call_fails_a_copy_in(void **state)
{
	(void)state;
	char *tree = make_tree();
	assert_int_equal(symlink("a.txt", at(tree, "out/link")), 0);
	int rc = -1;
	for (fail_at = 1; rc != 0 || *calls >= fail_at; fail_at++) {
		struct cj_error err = { 0 };
		char *root = make_place();
		int root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		int before = open_count();
		rc = copy_in(at(tree, "out"), root_fd, &err);
		assert_int_equal(open_count(), before);
		if (*calls >= fail_at && (rc >= 0 || !says_why(err.msg)))
			fail_msg("call %d went unnoticed: %d '%s'", fail_at, rc, err.msg);
		assert_true(*calls >= fail_at || rc == 0);
		assert_true(rc < 0 || reads_as(at(root, "box/new/out/sub/b.txt"), "second"));
		close(root_fd);
		end_place(root);
	}
	assert_true(fail_at > 50);
	fail_at = 0;
	end_place(tree);
}

/* --- out ----------------------------------------------------------------------------- */

/* What the result lists is in the directory, whole; what is not is named with the reason. */
static void assert_honest(const struct artifacts *out, const char *dest)
{
	for (size_t i = 0; i < out->count; i++) {
		const char *path = out->items[i].path;
		bool is_first = strcmp(path, "a.txt") == 0;
		assert_true(reads_as(at(dest, path), is_first ? "first" : "second"));
		assert_int_equal(out->items[i].bytes, is_first ? 5 : 6);
	}
	assert_false(has_temp(dest));
	assert_false(has_temp(at(dest, "sub")));
}

static bool tells_why(const struct artifacts *out)
{
	bool told = false;
	for (size_t i = 0; i < out->skipped.count; i++)
		told = told || says_why(out->skipped.items[i]);
	return told;
}

static int copy_out(int box_fd, int dest_fd, struct arena *a, struct artifacts *out,
		    struct cj_error *err)
{
	*calls = 0;
	is_armed = true;
	int rc =
	    artifacts_collect(&(struct artifacts_from){ .box_fd = box_fd }, dest_fd, a, out, err);
	is_armed = false;
	return rc;
}

static void every_failing_call_of_a_copy_out_is_reported(void **state)
{
	(void)state;
	char *tree = make_tree();
	int box_fd = open(tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = -1;
	may_close_fail = true;
	for (fail_at = 1; rc != 0 || *calls >= fail_at; fail_at++) {
		struct cj_error err = { 0 };
		auto_arena struct arena arena = { 0 };
		struct artifacts out = { 0 };
		char *dest = make_place();
		int dest_fd = open(dest, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		int before = open_count();
		rc = copy_out(box_fd, dest_fd, &arena, &out, &err);
		assert_int_equal(open_count(), before);
		if (*calls >= fail_at && !(rc < 0 ? says_why(err.msg) : tells_why(&out)))
			fail_msg("call %d went unnoticed: %d '%s'", fail_at, rc, err.msg);
		if (*calls < fail_at)
			assert_int_equal(out.count, 2);
		assert_honest(&out, dest);
		close(dest_fd);
		end_place(dest);
	}
	assert_true(fail_at > 30);
	fail_at = 0;
	may_close_fail = false;
	close(box_fd);
	end_place(tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_failing_call_fails_a_copy_in),
		cmocka_unit_test(every_failing_call_fails_a_pack_of_files),
		cmocka_unit_test(every_failing_call_of_a_copy_out_is_reported),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
