/* SPDX-License-Identifier: Apache-2.0 */
/* Which files of the host are public: a made-up /etc, and what host_open takes of it. */
#include "tests/rootfs/inside.h"

#include <sys/mount.h>

#include "rootfs/rootfs_parts.h"
#include "rootfs/skeleton.h"
#include "tests/forked.h"

static void put_file(const char *path, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	check(fd >= 0 && fchmod(fd, mode) == 0);
	close(fd);
}

static void put_folder(const char *path, mode_t mode)
{
	check(mkdir(path, 0700) == 0 && chmod(path, mode) == 0);
}

static void make_java(const char *place, mode_t mode)
{
	char path[128];
	static const char *const folders[] = { "", "/security", "/management" };
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s%s", place, folders[i]);
		put_folder(path, i == 1 ? mode : 0755);
	}
	(void)snprintf(path, sizeof(path), "%s/jvm-amd64.cfg", place);
	put_file(path, 0644);
}

static void make_etc(void)
{
	check(mount("none", "/etc", "tmpfs", 0, "mode=0755") == 0);
	put_file("/etc/matplotlibrc", 0644);
	put_file("/etc/shadow", 0644);
	put_file("/etc/mime.types", 0640);
	put_folder("/etc/fonts", 0755);
	put_folder("/etc/xml", 0750);
	put_folder("/etc/ssl", 0700);
	put_folder("/etc/ssl/certs", 0755);
	put_folder("/etc/ssl/private", 0755);
	make_java("/etc/java-17-openjdk", 0755);
	make_java("/etc/java-21-openjdk", 0700);
	make_java("/etc/java-x", 0755);
	check(symlink("alternatives/fpc.cfg", "/etc/fpc.cfg") == 0);
	put_file("/etc/fpc-3.2.2.cfg", 0644);
	put_file("/etc/fpc-.cfgs", 0644);
}

static bool is_shown(const struct rootfs_entries *view, const char *path)
{
	for (size_t i = 0; i < view->count; i++)
		if (strcmp(view->items[i].path, path) == 0)
			return true;
	return false;
}

static size_t count_below(const struct rootfs_entries *view, const char *start)
{
	size_t count = 0;
	for (size_t i = 0; i < view->count; i++)
		count += strncmp(view->items[i].path, start, strlen(start)) == 0;
	return count;
}

static void close_all(struct rootfs_entries *view)
{
	for (size_t i = 0; i < view->count; i++)
		cj_close(&view->items[i].fd);
	fd_bag_close(&view->opened);
}

static void look_at_view(void)
{
	auto_arena struct arena arena = { 0 };
	struct rootfs_entries view = { .arena = &arena };
	struct cj_error err = { 0 };
	int before = open_count();
	check(host_open(&view, &err) == 0);
	check(strcmp(view.items[0].path, "/usr") == 0);
	check(is_shown(&view, "/etc/matplotlibrc") && is_shown(&view, "/etc/fonts"));
	check(is_shown(&view, "/etc/fpc.cfg") && is_shown(&view, "/etc/fpc-3.2.2.cfg"));
	check(count_below(&view, "/etc/java-17-openjdk/") == 2);
	check(is_shown(&view, "/etc/java-17-openjdk/security"));
	check(is_shown(&view, "/etc/java-17-openjdk/jvm-amd64.cfg"));
	check(count_below(&view, "/etc/java-21-openjdk/") == 1); /* not "security" */
	/* not readable by everybody, or not in the tables */
	check(count_below(&view, "/etc/java-x") == 0 && !is_shown(&view, "/etc/fpc-.cfgs"));
	check(!is_shown(&view, "/etc/mime.types") && !is_shown(&view, "/etc/xml"));
	check(!is_shown(&view, "/etc/ssl/certs")); /* "ssl" is closed */
	check(!is_shown(&view, "/etc/ssl/private") && !is_shown(&view, "/etc/shadow"));
	close_all(&view);
	check(open_count() == before);
}

/* Enough families for the view's last place; the view stays within it. */
static void look_at_many(void)
{
	char path[64];
	for (int i = 0; i < 200; i++) {
		(void)snprintf(path, sizeof(path), "/etc/fpc-%d.cfg", i);
		put_file(path, 0644);
	}
	auto_arena struct arena arena = { 0 };
	struct rootfs_entries view = { .arena = &arena };
	struct cj_error err = { 0 };
	check(host_open(&view, &err) == 0);
	size_t count = count_below(&view, "/etc/fpc-");
	check(count > 20 && count < 200);
	close_all(&view);
}

static const struct rootfs_entry *entry_at(const struct rootfs_entries *view, const char *path)
{
	for (size_t i = 0; i < view->count; i++)
		if (strcmp(view->items[i].path, path) == 0)
			return &view->items[i];
	return NULL;
}

static void set_size(const char *path, off_t size)
{
	check(truncate(path, size) == 0);
}

/* A copy of all these would fill the skeleton. */
static void look_at_copies(void)
{
	char path[64];
	set_size("/etc/matplotlibrc", 16 << 10);
	set_size("/etc/fpc-3.2.2.cfg", (16 << 10) + 1);
	for (int i = 0; i < 40; i++) {
		(void)snprintf(path, sizeof(path), "/etc/fpc-%d.cfg", i);
		put_file(path, 0644);
		set_size(path, 10 << 10);
	}
	auto_arena struct arena arena = { 0 };
	struct rootfs_entries view = { .arena = &arena };
	struct cj_error err = { 0 };
	int before = open_count();
	check(host_open(&view, &err) == 0);
	const struct rootfs_entry *large = entry_at(&view, "/etc/fpc-3.2.2.cfg");
	check(large && !large->is_copied && large->fd >= 0);
	const size_t page = (size_t)getpagesize();
	size_t taken = 0;
	for (size_t i = 0; i < view.count; i++) {
		taken += (view.items[i].size + page - 1) / page * page;
		check(view.items[i].is_copied == (view.items[i].size > 0));
	}
	check(taken > (240u << 10) - page && taken <= (256u << 10));
	close_all(&view);
	check(open_count() == before);
}

/* As root of a user namespace: what root's own /etc has stays as it is. */
static void run_with_etc(void (*body)(void))
{
	share_result();
	*inside_result = (struct inside_result){ .end = ENDED_NO_NAMESPACES };
	uid_t uid = geteuid();
	gid_t gid = getegid();
	pid_t pid = test_fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		char map[64];
		if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
			_exit(0);
		put_text("/proc/self/setgroups", "deny");
		(void)snprintf(map, sizeof(map), "0 %u 1", uid);
		put_text("/proc/self/uid_map", map);
		(void)snprintf(map, sizeof(map), "0 %u 1", gid);
		put_text("/proc/self/gid_map", map);
		(void)umask(0);
		make_etc();
		body();
		inside_result->end = ENDED_FINE;
		_exit(0);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (inside_result->end == ENDED_NO_NAMESPACES && !getenv("CEJAIL_TEST_STRICT")) {
		print_message("skipped: this host allows no user namespaces\n");
		skip();
	}
	if (inside_result->end == ENDED_CHECK)
		fail_msg("line %d: %s", inside_result->line, inside_result->check);
	assert_int_equal(inside_result->end, ENDED_FINE);
}

static void only_paths_that_all_users_may_read_are_shown(void **state)
{
	(void)state;
	run_with_etc(look_at_view);
}

static void only_small_files_are_copied_and_not_too_many(void **state)
{
	(void)state;
	run_with_etc(look_at_copies);
}

static void add_copy(struct skeleton *s, const char *path, int from_fd, size_t size,
		     const char *expected)
{
	char text[64];
	struct cj_error err = { 0 };
	assert_int_equal(lseek(from_fd, 0, SEEK_SET), 0);
	assert_int_equal(skeleton_add_copy(s, path, from_fd, size, &err), 0);
	auto_fd int fd = openat(s->fd, path, O_RDONLY | O_CLOEXEC);
	ssize_t got = read(fd, text, sizeof(text) - 1);
	assert_true(got >= 0);
	text[got] = '\0';
	assert_string_equal(text, expected);
}

static void a_copy_has_the_bytes_that_were_counted_and_parents_that_are_missing(void **state)
{
	(void)state;
	char *place = make_place();
	struct cj_error err = { 0 };
	make_file(at(place, "from"), "twelve bytes");
	const int dir_fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_skeleton struct skeleton s = { .fd = dir_fd };
	auto_fd int from_fd = openat(dir_fd, "from", O_RDONLY | O_CLOEXEC);
	add_copy(&s, "whole", from_fd, 12, "twelve bytes");
	add_copy(&s, "grown", from_fd, 6, "twelve"); /* since it was counted */
	add_copy(&s, "a/b/c/shrunk", from_fd, 99, "twelve bytes");
	add_copy(&s, "a/b/d/empty", from_fd, 0, "");
	/* nothing of a name is replaced or followed */
	assert_int_equal(symlinkat("whole", dir_fd, "link"), 0);
	assert_int_equal(skeleton_add_copy(&s, "whole", from_fd, 6, &err), -EEXIST);
	assert_int_equal(skeleton_add_copy(&s, "link", from_fd, 6, &err), -EEXIST);
	assert_int_equal(skeleton_add_copy(&s, "whole/x", from_fd, 6, &err), -ENOTDIR);
	assert_int_equal(skeleton_add_copy(&s, "no", dir_fd, 6, &err), -EISDIR);
	end_place(place);
}

static void the_number_of_rows_has_a_limit(void **state)
{
	(void)state;
	run_with_etc(look_at_many);
}

static void no_public_path_is_a_place_for_secrets(void **state)
{
	(void)state;
	static const char *const closed[] = {
		"/etc/ssl/private/key",
		"/etc/pki/tls/private/key",
		"/etc/maven/settings.xml",
		"/etc/R/Renviron.site",
		"/etc/gitconfig",
		"/etc/npmrc",
		"/etc/shadow",
		"/etc/passwd",
		"/etc/wgetrc",
		"/etc/php/8.2/cli/php.ini",
		"/etc/ssh/ssh_config",
		"/var/lib/private/x",
	};
	for (size_t i = 0; i < host_paths_count; i++)
		for (size_t k = 0; k < sizeof(closed) / sizeof(closed[0]); k++) {
			size_t size = strlen(host_paths[i]);
			assert_false(strncmp(closed[k], host_paths[i], size) == 0 &&
				     (closed[k][size] == '/' || closed[k][size] == '\0'));
		}
	for (size_t i = 0; i < host_families_count; i++)
		for (size_t k = 0; host_families[i].names[k]; k++) {
			assert_string_not_equal(host_families[i].names[k], "management");
			assert_string_not_equal(host_families[i].names[k], "policy.xml");
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_paths_that_all_users_may_read_are_shown),
		cmocka_unit_test(the_number_of_rows_has_a_limit),
		cmocka_unit_test(only_small_files_are_copied_and_not_too_many),
		cmocka_unit_test(
		    a_copy_has_the_bytes_that_were_counted_and_parents_that_are_missing),
		cmocka_unit_test(no_public_path_is_a_place_for_secrets),
	};
	return cmocka_run_group_tests_name("host", tests, NULL, NULL);
}
