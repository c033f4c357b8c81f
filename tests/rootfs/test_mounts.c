/* SPDX-License-Identifier: Apache-2.0 */
/* Mount points and devices: nothing that looks like one is taken for one. */
/* WRAP: sys_pivot_root */
#include "rootfs/mounts.h"

#include "tests/rootfs/inside.h"

#include <sys/mount.h>
#include <sys/sysmacros.h>

#include "rootfs/rootfs_parts.h"

/* --- places --------------------------------------------------------------------------- */

static void resolve(const char *place, const char *path, int expected)
{
	struct cj_error err = { 0 };
	int root_fd = open(place, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = mounts_resolve(root_fd, path, &err);
	if (expected != 0)
		assert_int_equal(fd, -expected);
	else
		assert_true(fd >= 0);
	cj_close(&fd);
	cj_close(&root_fd);
}

static void no_link_is_followed_to_a_mount_point(void **state)
{
	(void)state;
	char *place = make_place();
	mkdir(at(place, "real"), 0755);
	mkdir(at(place, "real/dir"), 0755);
	make_file(at(place, "real/file"), "");
	assert_int_equal(symlink("real", at(place, "link")), 0);
	assert_int_equal(symlink("/proc/self/cwd", at(place, "magic")), 0);

	resolve(place, "/real/dir", 0);
	resolve(place, "real/file", 0);
	resolve(place, "/link", ELOOP); /* not even the link itself: it is no place */
	resolve(place, "/link/dir", ELOOP);
	resolve(place, "/magic", ELOOP);
	resolve("/proc", "self/fd", ELOOP);
	resolve("/proc/thread-self", "cwd", ELOOP);
	resolve(place, "/nothing", ENOENT);
	end_place(place);
}

static void dot_dot_does_not_leave_the_root(void **state)
{
	(void)state;
	char *place = make_place();
	struct stat expected, found;
	struct cj_error err = { 0 };
	int root_fd = open(place, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = mounts_resolve(root_fd, "/../../..", &err);
	assert_int_equal(fstat(root_fd, &expected), 0);
	assert_int_equal(fstat(fd, &found), 0);
	assert_int_equal(found.st_ino, expected.st_ino);
	assert_int_equal(mounts_resolve(root_fd, "../etc/passwd", &err), -ENOENT);
	cj_close(&fd);
	cj_close(&root_fd);
	end_place(place);
}

/* --- devices -------------------------------------------------------------------------- */

/* The host's /dev is `place`: there the first device that is missing is named. */
static void expect_device_failure(const char *place, const char *part)
{
	struct rootfs_spec spec = host_spec();
	assert_int_equal(mount(place, "/dev", NULL, MS_BIND, NULL), 0);
	expect_failure(&spec, "open", part);
	assert_int_equal(umount2("/dev", MNT_DETACH), 0);
}

static void a_device_is_checked_by_its_number_not_by_its_name(void **state)
{
	(void)state;
	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0) {
		print_message("skipped: only root can replace the host's /dev\n");
		return;
	}
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	char *place = make_place();
	expect_device_failure(place, "open '/dev/null': No such file or directory");
	make_file(at(place, "null"), "");
	expect_device_failure(place, "'/dev/null' is not the device 1:3");
	unlink(at(place, "null"));
	assert_int_equal(symlink("/dev/zero", at(place, "null")), 0);
	expect_device_failure(place, "'/dev/null' is not the device 1:3");
	unlink(at(place, "null"));
	if (mknod(at(place, "null"), S_IFCHR | 0666, makedev(1, 5)) == 0)
		expect_device_failure(place, "'/dev/null' is not the device 1:3");
	end_place(place);
}

static void a_device_is_checked_by_number_and_type(void **state)
{
	(void)state;
	struct cj_error err;
	struct stat null, block;
	assert_int_equal(stat("/dev/null", &null), 0);
	block = null;
	block.st_mode = S_IFBLK | 0666;
	assert_int_equal(mounts_check_device(&null, "a", 1, 3, &err), 0);
	assert_int_equal(mounts_check_device(&null, "a", 1, 5, &err), -EINVAL);
	assert_int_equal(mounts_check_device(&null, "a", 5, 3, &err), -EINVAL);
	assert_int_equal(mounts_check_device(&block, "a", 1, 3, &err), -EINVAL);
}

/* --- what masks stand on ---------------------------------------------------------------- */

static void expect_mask_failure(const char *source, const char *target, const char *part)
{
	struct bind_spec bind = { BIND_READ_ONLY, source, target };
	struct rootfs_spec spec = host_spec();
	spec.binds = &bind;
	spec.nbinds = 1;
	expect_failure(&spec, "mask", part);
}

static void a_fake_dev_null_or_proc_is_refused(void **state)
{
	(void)state;
	char *place = make_place();
	make_file(at(place, "null"), "gotcha");
	char *file = strdup(at(place, "null"));
	expect_mask_failure(file, "/dev/null", "'/dev/null' is not the device 1:3");
	expect_mask_failure(place, "/proc", "'/proc' is no procfs");
	free(file);
	end_place(place);
}

/* --- creation ---------------------------------------------------------------------------- */

static void an_error_of_the_kernel_has_the_kernels_message(void **state)
{
	(void)state;
	struct cj_error err = { 0 };
	assert_int_equal(mounts_create("cejail-no-such-fs", NULL, 0, 0, &err),
			 geteuid() == 0 ? -ENODEV : -EPERM);
	assert_non_null(strstr(err.msg, "open a 'cejail-no-such-fs' file system"));
	if (geteuid() != 0)
		return; /* the options are read before the permission is asked for, but not
			   everywhere */
	const struct mounts_option option = { "cejail-no-such-option", "1" };
	assert_int_equal(mounts_create("tmpfs", &option, 1, 0, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "cejail-no-such-option"));
}

/* --- the root ----------------------------------------------------------------------------- */

/* Then pivot_root(2) fails as it does for a process whose root is an initramfs. */
static bool is_initramfs;
int __real_sys_pivot_root(const char *new_root, const char *put_old);
int __wrap_sys_pivot_root(const char *new_root, const char *put_old);
int __wrap_sys_pivot_root(const char *new_root, const char *put_old)
{
	if (!is_initramfs)
		return __real_sys_pivot_root(new_root, put_old);
	errno = EINVAL;
	return -1;
}

static void an_initramfs_is_refused_with_the_remedy(void **state)
{
	(void)state;
	struct cj_error err = { 0 };
	auto_fd int here_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(here_fd >= 0);
	is_initramfs = true;
	assert_int_equal(mounts_pivot(here_fd, &err), -EINVAL);
	is_initramfs = false;
	assert_non_null(strstr(err.msg, "pivot to the new root: Invalid argument"));
	assert_non_null(strstr(err.hint, "switch_root(8)"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_link_is_followed_to_a_mount_point),
		cmocka_unit_test(an_initramfs_is_refused_with_the_remedy),
		cmocka_unit_test(dot_dot_does_not_leave_the_root),
		cmocka_unit_test(a_device_is_checked_by_its_number_not_by_its_name),
		cmocka_unit_test(a_device_is_checked_by_number_and_type),
		cmocka_unit_test(a_fake_dev_null_or_proc_is_refused),
		cmocka_unit_test(an_error_of_the_kernel_has_the_kernels_message),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
