/* SPDX-License-Identifier: Apache-2.0 */
/* Roots of layers, hostile images, and --writable. */
#include "tests/rootfs/inside.h"

#include <dirent.h>
#include <linux/magic.h>
#include <sys/statfs.h>

struct image {
	char *place;
	struct arena arena;
	struct rootfs_spec spec;
};

static struct image make_image(const char *const *dirs)
{
	struct image image = { .place = make_place(), .spec = host_spec() };
	image.spec.kind = ROOT_LAYERS;
	for (; *dirs; dirs++) {
		assert_int_equal(mkdir(at(image.place, *dirs), 0755), 0);
		if (!strchr(*dirs, '/')) {
			char *path = arena_strdup(&image.arena, at(image.place, *dirs));
			assert_int_equal(strings_add(&image.spec.layers, &image.arena, path), 0);
		}
	}
	return image;
}

static void end_image(struct image *image)
{
	arena_fini(&image->arena);
	end_place(image->place);
}

/* --- reading ----------------------------------------------------------------------- */

static void look_at_layers(void *arg)
{
	(void)arg;
	check(reads_as("/data/both", "upper"));
	check(reads_as("/data/low", "lower"));
	check(!may_create("/data/new") && errno == EROFS);
	check(!may_create("/new") && errno == EROFS);
	check(may_create("/box/new"));
	check(!exists("/usr")); /* the image's, and it has none */
	check(!exists("/bin"));
}

static void the_first_layer_is_on_top_and_all_are_read_only(void **state)
{
	(void)state;
	static const char *const dirs[] = { "one", "two", "one/data", "two/data", NULL };
	struct image image = make_image(dirs);
	make_file(at(image.place, "one/data/both"), "upper");
	make_file(at(image.place, "two/data/both"), "lower");
	make_file(at(image.place, "two/data/low"), "lower");
	run_as_each(&image.spec, look_at_layers, NULL);
	end_image(&image);
}

static void look_behind(void *arg)
{
	(void)arg;
	check(reads_as("/here", "layer"));
	check(reads_as("/srv/bound/here", "layer"));
}

static void paths_that_only_the_caller_may_read_can_be_shown(void **state)
{
	(void)state;
	static const char *const dirs[] = { "closed", NULL };
	struct image image = make_image(dirs);
	mkdir(at(image.place, "closed/layer"), 0755);
	make_file(at(image.place, "closed/layer/here"), "layer");
	assert_int_equal(chmod(at(image.place, "closed"), 0700), 0);

	char *layer = arena_strdup(&image.arena, at(image.place, "closed/layer"));
	const char *layers[] = { layer };
	struct bind_spec bind = { BIND_READ_ONLY, layer, "/srv/bound" };
	image.spec.layers = (struct strings){ .items = layers, .count = 1 };
	image.spec.binds = &bind;
	image.spec.nbinds = 1;
	run_inside(&image.spec, geteuid(), look_behind, NULL);
	if (has_ids()) { /* and what another may not reach can't */
		try_inside(&image.spec, INSIDE_ID, NULL, NULL);
		assert_int_equal(inside_result->end, ENDED_STAGE);
		assert_int_equal(inside_result->err.code, EACCES);
	}
	end_image(&image);
}

static bool is_fs(const char *path, long magic)
{
	struct statfs fs;
	return statfs(path, &fs) == 0 && fs.f_type == magic;
}

static bool is_directory(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static void look_for_detours(void *arg)
{
	(void)arg;
	check(is_directory("/proc") && is_fs("/proc", PROC_SUPER_MAGIC));
	check(is_directory("/box") && is_fs("/box", TMPFS_MAGIC));
	check(is_directory("/tmp") && is_fs("/tmp", TMPFS_MAGIC));
	check(is_directory("/dev") && is_directory("/etc") && is_directory("/dev/shm"));
	check(is_fs("/dev/shm", TMPFS_MAGIC) && is_fs("/dev/pts", DEVPTS_SUPER_MAGIC));
	check(is_fs("/srv/bound", TMPFS_MAGIC) || reads_as("/srv/bound/here", "bound"));

	DIR *evil = opendir("/evil");
	int entries = 0;
	check(evil != NULL);
	while (readdir(evil))
		entries++;
	check(entries == 2); /* "." and "..": nothing was mounted or made here */
	closedir(evil);
}

static void links_and_files_of_an_image_redirect_no_mount(void **state)
{
	(void)state;
	static const char *const dirs[] = { "image", "image/evil", "image/srv", NULL };
	static const char *const links[] = { "proc", "dev", "box", "tmp", NULL };
	struct image image = make_image(dirs);
	char path[64];
	for (size_t i = 0; links[i]; i++) {
		(void)snprintf(path, sizeof(path), "image/%s", links[i]);
		assert_int_equal(symlink("/evil", at(image.place, path)), 0);
	}
	assert_int_equal(symlink("../../../../../etc", at(image.place, "image/etc")), 0);
	make_file(at(image.place, "image/run"), "a file where a directory should be");

	assert_int_equal(mkdir(at(image.place, "bound"), 0755), 0);
	make_file(at(image.place, "bound/here"), "bound");
	make_file(at(image.place, "image/srv/bound"), "a file where a mount point should be");
	struct bind_spec bind = { BIND_READ_ONLY, strdup(at(image.place, "bound")), "/srv/bound" };
	image.spec.binds = &bind;
	image.spec.nbinds = 1;

	run_as_each(&image.spec, look_for_detours, NULL);
	free((void *)bind.source);
	end_image(&image);
}

/* Whatever it leads to: beside it, to our own, to the host's, out of the image, nowhere. */
static void a_bind_target_through_a_link_of_the_image_is_refused(void **state)
{
	(void)state;
	static const char *const dirs[] = { "image", "image/real", "image/etc", "outside", NULL };
	struct image image = make_image(dirs);
	const char *const targets[] = {
		"real",
		"/etc",
		"../outside",
		"../../../../../../../../etc",
		"/proc/self/root/etc",
		"/run",
		"nowhere",
		strdup(at(image.place, "outside")),
	};
	const size_t count = sizeof(targets) / sizeof(targets[0]);
	struct bind_spec bind = { .kind = BIND_READ_ONLY, .source = "/usr" };
	image.spec.binds = &bind;
	image.spec.nbinds = 1;
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(symlink(targets[i], at(image.place, "image/link")), 0);
		bind.target = "/link/usr";
		expect_failure(&image.spec, "open",
			       "'/link/usr' goes through a symbolic link of the image");
		bind.target = "/link";
		expect_failure(&image.spec, "open",
			       "'/link' goes through a symbolic link of the image");
		assert_int_equal(unlink(at(image.place, "image/link")), 0);
	}
	assert_int_equal(rmdir(at(image.place, "outside")), 0); /* nothing was made in it */
	free((void *)targets[count - 1]);
	end_image(&image);
}

static void look_at_own_links(void *arg)
{
	(void)arg;
	check(is_directory("/run"));
	check(reads_as("/var/run/bound/here", "bound"));
	check(reads_as("/run/bound/here", "bound"));
	check(reads_as("/var/lock/bound/here", "bound"));
	check(reads_as("/up/here", "image"));
	check(access("/gone/here", F_OK) < 0 && errno == ENOENT);
}

/* As Debian's images have them; inside, an absolute link starts at the jail's root. */
static void links_of_an_image_resolve_inside_the_jail(void **state)
{
	(void)state;
	static const char *const dirs[] = { "image", "image/var", "image/run", "bound", NULL };
	struct image image = make_image(dirs);
	make_file(at(image.place, "bound/here"), "bound");
	make_file(at(image.place, "image/here"), "image");
	assert_int_equal(symlink("/run", at(image.place, "image/var/run")), 0);
	assert_int_equal(symlink("../run", at(image.place, "image/var/lock")), 0);
	assert_int_equal(symlink("../../../../../..", at(image.place, "image/up")), 0);
	assert_int_equal(symlink(at(image.place, "bound"), at(image.place, "image/gone")), 0);
	struct bind_spec bind = { BIND_READ_ONLY, strdup(at(image.place, "bound")), "/run/bound" };
	image.spec.binds = &bind;
	image.spec.nbinds = 1;
	run_as_each(&image.spec, look_at_own_links, NULL);
	free((void *)bind.source);
	end_image(&image);
}

static void look_at_names(void *arg)
{
	(void)arg;
	char text[512];
	int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	ssize_t got = read(fd, text, sizeof(text) - 1);
	check(got > 0);
	text[got] = '\0';
	check(strstr(text, "jail:x:1000") && !strstr(text, "mallory"));
	check(reads_as("/etc/resolv.conf", ""));
	check(reads_as("/etc/motd", "welcome"));
}

static void files_of_the_skeleton_override_those_of_the_image(void **state)
{
	(void)state;
	static const char *const dirs[] = { "image", "image/etc", NULL };
	struct image image = make_image(dirs);
	make_file(at(image.place, "image/etc/passwd"), "mallory:x:0:0::/:/bin/sh\n");
	make_file(at(image.place, "image/etc/resolv.conf"), "nameserver 10.0.0.1\n");
	make_file(at(image.place, "image/etc/motd"), "welcome");
	run_as_each(&image.spec, look_at_names, NULL);
	end_image(&image);
}

static void look_at_device(void *arg)
{
	(void)arg;
	struct stat st;
	check(stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode));
	char byte;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	check(fd >= 0 && read(fd, &byte, 1) == 0);
	fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	check(fd < 0 || read(fd, &byte, 1) == 0);
}

static void a_fake_dev_null_of_an_image_is_not_used_as_a_mask(void **state)
{
	(void)state;
	static const char *const dirs[] = { "image", "image/dev", NULL };
	struct image image = make_image(dirs);
	make_file(at(image.place, "image/dev/null"), "gotcha");
	run_as_each(&image.spec, look_at_device, NULL);
	end_image(&image);
}

/* --- refusals ------------------------------------------------------------------------ */

static void a_layer_that_is_a_link_or_no_directory_is_refused(void **state)
{
	(void)state;
	static const char *const dirs[] = { "image", NULL };
	struct image image = make_image(dirs);
	assert_int_equal(symlink("image", at(image.place, "link")), 0);
	make_file(at(image.place, "file"), "");

	const char *layer = at(image.place, "link");
	image.spec.layers = (struct strings){ .items = &layer, .count = 1 };
	expect_failure(&image.spec, "open", "/link' has a symbolic link in its path");
	layer = at(image.place, "file");
	expect_failure(&image.spec, "open", "/file': Not a directory");
	layer = at(image.place, "nothing");
	expect_failure(&image.spec, "open", "/nothing': No such file or directory");
	image.spec.layers.count = 0;
	expect_failure(&image.spec, "open", "needs at least one");
	end_image(&image);
}

static void many_layers_fit_and_too_many_are_refused(void **state)
{
	(void)state;
	static const char *const dirs[] = { "image", NULL };
	struct image image = make_image(dirs);
	char name[16];
	for (int i = 1; i < 60; i++) {
		(void)snprintf(name, sizeof(name), "l%d", i);
		assert_int_equal(mkdir(at(image.place, name), 0755), 0);
		char *path = arena_strdup(&image.arena, at(image.place, name));
		assert_int_equal(strings_add(&image.spec.layers, &image.arena, path), 0);
	}
	make_file(at(image.place, "l59/bottom"), "");
	run_as_each(&image.spec, NULL, NULL);

	assert_int_equal(strings_add(&image.spec.layers, &image.arena, "/usr"), 0);
	expect_failure(&image.spec, "open", "61 layers; at most 60");
	end_image(&image);
}

/* --- writable ------------------------------------------------------------------------ */

static void write_everywhere(void *arg)
{
	(void)arg;
	check(may_create("/new") && may_create("/etc/new"));
	check(unlink("/etc/hosts") == 0 && !exists("/etc/hosts"));
	check(mkdir("/opt", 0755) == 0 && may_create("/opt/new"));
	check(may_create("/usr/new"));      /* /usr itself is the upper layer's directory */
	check(!may_create("/usr/bin/new")); /* the host's root owns it, copied up or not */
	check(exists("/usr/bin/env"));
}

static void files_written_to_a_writable_root_end_with_the_jail(void **state)
{
	(void)state;
	bool had_hosts = exists("/etc/hosts");
	struct rootfs_spec spec = host_spec();
	spec.writable = true;
	run_as_each(&spec, write_everywhere, NULL);
	assert_false(exists("/new"));
	assert_false(exists("/usr/new"));
	assert_false(exists("/opt/new"));
	assert_int_equal(exists("/etc/hosts"), had_hosts);
}

static void write_to_image(void *arg)
{
	(void)arg;
	check(may_create("/data/new"));
	int fd = open("/data/old", O_WRONLY | O_TRUNC | O_CLOEXEC);
	check(fd >= 0 && write(fd, "changed", 7) == 7);
	close(fd);
	check(reads_as("/data/old", "changed"));
	check(rename("/data/old", "/data/older") == 0);
}

static void a_writable_image_is_never_changed_itself(void **state)
{
	(void)state;
	static const char *const dirs[] = { "image", "image/data", NULL };
	struct image image = make_image(dirs);
	image.spec.writable = true;
	make_file(at(image.place, "image/data/old"), "old");
	uid_t owner = user_id();
	assert_int_equal(chown(at(image.place, "image/data"), owner, owner), 0);
	assert_int_equal(chown(at(image.place, "image/data/old"), owner, owner), 0);

	run_inside(&image.spec, owner, write_to_image, NULL);
	assert_true(reads_as(at(image.place, "image/data/old"), "old"));
	assert_false(exists(at(image.place, "image/data/new")));
	end_image(&image);
}

static void fill_root(void *arg)
{
	(void)arg;
	static char block[4096];
	int fd = open("/big", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	size_t done = 0;
	while (fd >= 0 && write(fd, block, sizeof(block)) == sizeof(block))
		done += sizeof(block);
	check(errno == ENOSPC && done > 500 << 10 && done <= 1 << 20);
	int box_fd = open("/box/more", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	check(write(box_fd, block, sizeof(block)) < 0 && errno == ENOSPC);
}

static void writes_to_a_writable_root_count_in_the_scratch(void **state)
{
	(void)state;
	struct rootfs_spec spec = host_spec();
	spec.writable = true;
	spec.scratch_bytes = 1 << 20;
	run_as_each(&spec, fill_root, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_layer_is_on_top_and_all_are_read_only),
		cmocka_unit_test(paths_that_only_the_caller_may_read_can_be_shown),
		cmocka_unit_test(links_and_files_of_an_image_redirect_no_mount),
		cmocka_unit_test(a_bind_target_through_a_link_of_the_image_is_refused),
		cmocka_unit_test(links_of_an_image_resolve_inside_the_jail),
		cmocka_unit_test(files_of_the_skeleton_override_those_of_the_image),
		cmocka_unit_test(a_fake_dev_null_of_an_image_is_not_used_as_a_mask),
		cmocka_unit_test(a_layer_that_is_a_link_or_no_directory_is_refused),
		cmocka_unit_test(many_layers_fit_and_too_many_are_refused),
		cmocka_unit_test(files_written_to_a_writable_root_end_with_the_jail),
		cmocka_unit_test(a_writable_image_is_never_changed_itself),
		cmocka_unit_test(writes_to_a_writable_root_count_in_the_scratch),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
