/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of the host, copy on write: what a jail can change, and what it can't. */
#include "rootfs/rootfs_parts.h"

#include "tests/rootfs/inside.h"

static const char *const whole[] = { "file", "inner/file" };

/* A directory with some files, all of them `owner`'s. */
static char *make_tree(uid_t owner)
{
	char *place = make_place();
	assert_int_equal(mkdir(at(place, "inner"), 0755), 0);
	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
		make_file(at(place, whole[i]), "before");
		assert_int_equal(chown(at(place, whole[i]), owner, owner), 0);
	}
	assert_int_equal(chown(at(place, "inner"), owner, owner), 0);
	assert_int_equal(chown(place, owner, owner), 0);
	return place;
}

static bool has_text(const char *path, const char *wanted)
{
	char text[32] = "";
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, text, sizeof(text) - 1) >= 0 && strcmp(text, wanted) == 0;
}

static void change_tree(void *arg)
{
	(void)arg;
	check(has_text("/srv/src/file", "before"));
	put_text("/srv/src/file", "after!");
	check(has_text("/srv/src/file", "after!"));
	check(unlink("/srv/src/inner/file") == 0 && rmdir("/srv/src/inner") == 0);
	check(mkdir("/srv/src/made", 0755) == 0);
	check(chmod("/srv/src", 0700) == 0);
}

static void changes_stay_in_the_jail(void **state)
{
	(void)state;
	struct stat st;
	char *place = make_tree(user_id());
	struct bind_spec bind = { BIND_OVERLAY, place, "/srv/src" };
	struct rootfs_spec spec = host_spec();
	spec.binds = &bind;
	spec.nbinds = 1;
	run_inside(&spec, user_id(), change_tree, NULL);
	spec.writable = true;
	run_inside(&spec, user_id(), change_tree, NULL);

	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
		assert_true(has_text(at(place, whole[i]), "before"));
	assert_int_equal(stat(at(place, "made"), &st), -1);
	assert_int_equal(stat(place, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0755);
	end_place(place);
}

static void check_quotas(void *arg)
{
	(void)arg;
	static char block[1 << 16];
	auto_fd int fd = open("/srv/src/new", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	check(fd >= 0);
	size_t written = 0;
	while (written < (16u << 20) && write(fd, block, sizeof(block)) == (ssize_t)sizeof(block))
		written += sizeof(block);
	check(written > 0 && written <= (8u << 20) && errno == ENOSPC);
}

static void writes_to_an_overlay_count_in_the_scratch(void **state)
{
	(void)state;
	char *place = make_tree(user_id());
	struct bind_spec bind = { BIND_OVERLAY, place, "/srv/src" };
	struct rootfs_spec spec = host_spec();
	spec.binds = &bind;
	spec.nbinds = 1;
	run_inside(&spec, user_id(), check_quotas, NULL);
	end_place(place);
}

/* As a jail of root's would meet it without the supervisor's ID-mapped clone. */
static void a_directory_of_another_owner_is_refused(void **state)
{
	(void)state;
	if (!has_ids())
		skip();
	char *place = make_tree(4321);
	struct bind_spec bind = { BIND_OVERLAY, place, "/srv/src" };
	struct rootfs_spec spec = host_spec();
	spec.binds = &bind;
	spec.nbinds = 1;
	expect_failure(&spec, "build", "its owner is not the jail's");
	assert_int_equal(chown(place, INSIDE_ID, 4321), 0);
	try_inside(&spec, INSIDE_ID, NULL, NULL);
	assert_int_equal(inside_result->end, ENDED_STAGE);
	assert_non_null(strstr(inside_result->err.msg, "its group is not the jail's"));
	end_place(place);
}

static void a_file_or_a_directory_with_mounts_below_is_refused(void **state)
{
	(void)state;
	char *place = make_tree(user_id());
	char file[PATH_MAX];
	(void)snprintf(file, sizeof(file), "%s/file", place);
	struct bind_spec bind = { BIND_OVERLAY, file, "/srv/src" };
	struct rootfs_spec spec = host_spec();
	spec.binds = &bind;
	spec.nbinds = 1;
	expect_failure(&spec, "open", "/file': it is a regular file");
	bind.source = "/";
	expect_failure(&spec, "open", "--overlay '/': other file systems are mounted below it");
	end_place(place);
}

/* What a supervisor hands over must be the directory that init has opened. */
static void a_replaced_directory_is_not_adopted(void **state)
{
	(void)state;
	const struct bind_spec binds[] = { { BIND_READ_ONLY, "/usr", "/a" },
					   { BIND_OVERLAY, "/usr", "/b" },
					   { BIND_OVERLAY, "/tmp", "/c" } };
	const struct rootfs_spec spec = { .binds = binds, .nbinds = 3 };
	struct rootfs_entry items[3] = { { .fd = -1 } };
	struct rootfs_entries sources = { .items = items, .count = 3 };
	for (int i = 1; i < 3; i++)
		items[i].fd = open(binds[i].source, O_PATH | O_CLOEXEC);
	int same = open("/usr", O_PATH | O_CLOEXEC), other = open("/usr", O_PATH | O_CLOEXEC);
	int fds[] = { same, other };
	struct cj_error err = { 0 };
	assert_int_equal(binds_adopt_lowers(&sources, &spec, fds, 2, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "--overlay '/tmp': it was replaced by another directory"));
	assert_int_equal(items[1].fd, same);
	assert_true(items[1].is_detached && !items[2].is_detached);
	assert_int_equal(fds[0], -1);
	assert_int_equal(fds[1], other);
	cj_close(&fds[1]), cj_close(&items[1].fd), cj_close(&items[2].fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changes_stay_in_the_jail),
		cmocka_unit_test(writes_to_an_overlay_count_in_the_scratch),
		cmocka_unit_test(a_directory_of_another_owner_is_refused),
		cmocka_unit_test(a_replaced_directory_is_not_adopted),
		cmocka_unit_test(a_file_or_a_directory_with_mounts_below_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
