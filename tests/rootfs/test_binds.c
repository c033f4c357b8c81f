/* SPDX-License-Identifier: Apache-2.0 */
/* Host paths in the jail: what they may be, where they may lie, what can be done to them. */
#include "tests/rootfs/inside.h"

#include <sys/socket.h>
#include <sys/un.h>

/* A directory with "file", "dir/inner", "link", "fifo", "sock". */
struct sources {
	char *place;
	int listen_fd;
};

static struct sources make_sources(void)
{
	struct sources s = { .place = make_place() };
	uid_t owner = user_id();
	make_file(at(s.place, "file"), "contents");
	assert_int_equal(mkdir(at(s.place, "dir"), 0755), 0);
	make_file(at(s.place, "dir/inner"), "inner");
	assert_int_equal(chown(at(s.place, "dir"), owner, owner), 0);
	assert_int_equal(chown(at(s.place, "file"), owner, owner), 0);
	assert_int_equal(symlink("file", at(s.place, "link")), 0);
	assert_int_equal(symlink("dir", at(s.place, "dirlink")), 0);
	assert_int_equal(mkfifo(at(s.place, "fifo"), 0666), 0);

	struct sockaddr_un address = { .sun_family = AF_UNIX };
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/sock", s.place);
	s.listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s.listen_fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(s.listen_fd, 4), 0);
	assert_int_equal(chmod(address.sun_path, 0666), 0);
	return s;
}

static void end_sources(struct sources *s)
{
	cj_close(&s->listen_fd);
	end_place(s->place);
}

static struct rootfs_spec with_binds(const struct bind_spec *binds, size_t count)
{
	struct rootfs_spec spec = host_spec();
	spec.binds = binds;
	spec.nbinds = count;
	return spec;
}

/* --- what they show --------------------------------------------------------------- */

/* The mount refuses its owner; others meet the mode first. */
static bool is_refused(const char *path)
{
	int code = errno;
	struct stat st;
	check(stat(path, &st) == 0);
	return code == EROFS || (code == EACCES && st.st_uid != INSIDE_ID);
}

static void look_at_read_only(void *arg)
{
	(void)arg;
	char text[16] = "";
	int fd = open("/srv/file", O_RDONLY | O_CLOEXEC);
	check(fd >= 0 && read(fd, text, sizeof(text)) == 8 && memcmp(text, "contents", 8) == 0);
	check(open("/srv/file", O_WRONLY | O_CLOEXEC) < 0 && is_refused("/srv/file"));
	check(exists("/box/deep/er/inner") && exists("/tmp/d/inner") && exists("/dev/shm/d/inner"));
	check(!may_create("/box/deep/er/new") && is_refused("/box/deep/er"));
	check(!may_create("/tmp/d/new") && is_refused("/tmp/d"));
	check(may_create("/box/deep/new")); /* that one lies on the scratch */
	check(exists("/srv/tree/link") && access("/srv/tree/link", R_OK) == 0);
}

static void read_only_binds_work_at_every_target(void **state)
{
	(void)state;
	struct sources s = make_sources();
	char file[PATH_MAX], dir[PATH_MAX];
	(void)snprintf(file, sizeof(file), "%s", at(s.place, "file"));
	(void)snprintf(dir, sizeof(dir), "%s", at(s.place, "dir"));
	struct bind_spec binds[] = {
		{ BIND_READ_ONLY, file, "/srv/file" },    { BIND_READ_ONLY, dir, "/box/deep/er" },
		{ BIND_READ_ONLY, dir, "/tmp/d" },        { BIND_READ_ONLY, dir, "/dev/shm/d" },
		{ BIND_READ_ONLY, s.place, "/srv/tree" },
	};
	struct rootfs_spec spec = with_binds(binds, sizeof(binds) / sizeof(binds[0]));
	run_as_each(&spec, look_at_read_only, NULL);
	spec.writable = true; /* a writable root makes no bind writable */
	run_as_each(&spec, look_at_read_only, NULL);
	end_sources(&s);
}

static void write_bind(void *arg)
{
	(void)arg;
	check(may_create("/data/new"));
	check(symlink("/etc/passwd", "/data/arrow") == 0);
	check(open("/data/arrow", O_RDONLY | O_CLOEXEC) < 0 && errno == ELOOP);
}

static void a_writable_bind_writes_to_the_host_and_follows_no_link(void **state)
{
	(void)state;
	struct sources s = make_sources();
	struct bind_spec bind = { BIND_WRITABLE, strdup(at(s.place, "dir")), "/data" };
	struct rootfs_spec spec = with_binds(&bind, 1);
	run_inside(&spec, user_id(), write_bind, NULL);
	assert_true(exists(at(s.place, "dir/new")));
	free((void *)bind.source);
	end_sources(&s);
}

static void write_kept(void *arg)
{
	(void)arg;
	check(may_create("/data/new"));
	check(symlink("new", "/data/arrow") == 0 && symlink("/../../..", "/data/out") == 0);
	check(open("/data/arrow", O_RDONLY | O_CLOEXEC) >= 0);
	struct stat root, out;
	check(stat("/", &root) == 0 && stat("/data/out", &out) == 0);
	check(root.st_dev == out.st_dev && root.st_ino == out.st_ino);
}

static void a_kept_directory_follows_links_within_the_jail(void **state)
{
	(void)state;
	struct sources s = make_sources();
	struct bind_spec bind = { BIND_KEPT, strdup(at(s.place, "dir")), "/data" };
	struct rootfs_spec spec = with_binds(&bind, 1);
	run_inside(&spec, user_id(), write_kept, NULL);
	assert_true(exists(at(s.place, "dir/new")));
	free((void *)bind.source);
	end_sources(&s);
}

static void connect_socket(void *arg)
{
	(void)arg;
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "/run/call/back.sock" };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	check(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	memcpy(address.sun_path, "/box/s", sizeof("/box/s")); /* above the tmpfs, not below it */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	check(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	check(unlink("/box/s") < 0);
}

static void a_socket_can_be_connected_to(void **state)
{
	(void)state;
	struct sources s = make_sources();
	char *sock = strdup(at(s.place, "sock"));
	struct bind_spec binds[] = { { BIND_SOCKET, sock, "/run/call/back.sock" },
				     { BIND_SOCKET, sock, "/box/s" } };
	struct rootfs_spec spec = with_binds(binds, 2);
	run_as_each(&spec, connect_socket, NULL);
	free(sock);
	end_sources(&s);
}

static void look_at_nested(void *arg)
{
	(void)arg;
	check(exists("/data/link") && exists("/data/dir/inner"));
	check(exists("/data/dir/inner") && !may_create("/data/dir/x"));
	struct stat file, over;
	check(stat("/data/file", &file) == 0 && stat("/data/dir/inner", &over) == 0);
	check(file.st_ino == over.st_ino); /* the later bind lies on top */
}

static void binds_are_stacked_in_the_order_given(void **state)
{
	(void)state;
	struct sources s = make_sources();
	char *file = strdup(at(s.place, "file"));
	struct bind_spec binds[] = { { BIND_READ_ONLY, s.place, "/data" },
				     { BIND_READ_ONLY, file, "/data/dir/inner" } };
	struct rootfs_spec spec = with_binds(binds, 2);
	run_as_each(&spec, look_at_nested, NULL);
	free(file);
	end_sources(&s);
}

/* --- what is refused ----------------------------------------------------------------- */

static void refuse(const char *source, enum bind_kind kind, const char *part)
{
	struct bind_spec bind = { kind, source, "/srv/x" };
	struct rootfs_spec spec = with_binds(&bind, 1);
	expect_failure(&spec, "open", part);
}

static void sources_of_the_wrong_kind_are_refused_by_name(void **state)
{
	(void)state;
	struct sources s = make_sources();
	refuse(at(s.place, "link"), BIND_READ_ONLY, "/link': there is a symbolic link in it");
	refuse(at(s.place, "dirlink/inner"), BIND_READ_ONLY, "inner': there is a symbolic link");
	refuse(at(s.place, "link"), BIND_WRITABLE, "--bind '");
	refuse(at(s.place, "fifo"), BIND_READ_ONLY, "/fifo': it is a fifo");
	refuse(at(s.place, "sock"), BIND_WRITABLE, "/sock': it is a socket");
	refuse(at(s.place, "file"), BIND_SOCKET, "/file': it is a regular file");
	refuse(at(s.place, "nothing"), BIND_READ_ONLY, "/nothing': No such file or directory");
	refuse("/dev/null", BIND_READ_ONLY, "--ro-bind '/dev/null': it is a device");
	refuse("/proc/self/exe", BIND_READ_ONLY, "there is a symbolic link in it");
	end_sources(&s);
}

static void a_missing_mount_point_in_a_tree_of_the_hosts_is_not_made(void **state)
{
	(void)state;
	struct sources s = make_sources();
	struct bind_spec binds[] = { { BIND_WRITABLE, strdup(at(s.place, "dir")), "/box/w" },
				     { BIND_READ_ONLY, "/usr/lib", "/box/w/sub" } };
	struct rootfs_spec spec = with_binds(binds, 2);
	expect_failure(&spec, "build", "find the mount point '/box/w/sub'");
	assert_non_null(strstr(inside_result->err.hint, "create it there first"));
	assert_false(exists(at(s.place, "dir/sub")));

	struct bind_spec in_usr = { BIND_READ_ONLY, "/usr/lib", "/usr/cejail-test-nothing" };
	spec = with_binds(&in_usr, 1);
	expect_failure(&spec, "build", "find the mount point '/usr/cejail-test-nothing'");
	free((void *)binds[0].source);
	end_sources(&s);
}

static void invalid_targets_are_refused(void **state)
{
	(void)state;
	struct bind_spec bind = { BIND_READ_ONLY, "/usr", "" };
	struct rootfs_spec spec = with_binds(&bind, 1);
	expect_failure(&spec, "open", "the target '' is not absolute");
	bind.target = "srv";
	expect_failure(&spec, "open", "the target 'srv' is not absolute");
	bind.target = "/";
	expect_failure(&spec, "build", "mount point '/'");
	bind.target = "/box/../../x";
	expect_failure(&spec, "open", "/box/../../x");
	bind.target = "/box/..";
	expect_failure(&spec, "open", "/box/..");
	bind.target = "/var/tmp/x"; /* a link of our own skeleton */
	expect_failure(&spec, "build", "/var/tmp/x");
	bind.target = "/etc/passwd"; /* a directory over a file */
	expect_failure(&spec, "build", "/etc/passwd");
}

static void only_a_writable_bind_may_not_lead_to_a_guarded_directory(void **state)
{
	(void)state;
	struct sources s = make_sources();
	char dir[PATH_MAX], inner[PATH_MAX], file[PATH_MAX];
	(void)snprintf(dir, sizeof(dir), "%s", at(s.place, "dir"));
	(void)snprintf(inner, sizeof(inner), "%s", at(s.place, "dir/inner"));
	(void)snprintf(file, sizeof(file), "%s", at(s.place, "file"));
	const struct {
		struct bind_spec bind;
		const char *says, *hint;
	} rows[] = {
		{ { BIND_WRITABLE, s.place, "/x" }, "': it contains '/own'", "--ro-bind" },
		{ { BIND_WRITABLE, "/", "/x" }, "--bind '/': it contains '/own'", "--ro-bind" },
		{ { BIND_WRITABLE, dir, "/x" }, "/dir': it is part of '/own'", "--ro-bind" },
		{ { BIND_WRITABLE, inner, "/x" }, "/inner': it is part of '/own'", "--ro-bind" },
		{ { BIND_KEPT, s.place, "/x" }, "it contains '/own'", "XDG_CACHE_HOME" },
		{ { BIND_WRITABLE, file, "/x" }, NULL, NULL },
		{ { BIND_READ_ONLY, s.place, "/x" }, NULL, NULL },
		{ { BIND_READ_ONLY, inner, "/x" }, NULL, NULL },
	};
	auto_arena struct arena a = { 0 };
	struct cj_error err = { 0 };
	struct guard guard = { 0 };
	auto_fd int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(guard_add(&guard, fd, 1, "/own", &a, &err), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rootfs_spec spec = with_binds(&rows[i].bind, 1);
		spec.guard = guard;
		if (!rows[i].says) {
			run_inside(&spec, user_id(), NULL, NULL);
			continue;
		}
		expect_failure(&spec, "open", rows[i].says);
		assert_non_null(strstr(inside_result->err.hint, rows[i].hint));
	}
	end_sources(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read_only_binds_work_at_every_target),
		cmocka_unit_test(a_writable_bind_writes_to_the_host_and_follows_no_link),
		cmocka_unit_test(a_kept_directory_follows_links_within_the_jail),
		cmocka_unit_test(a_socket_can_be_connected_to),
		cmocka_unit_test(binds_are_stacked_in_the_order_given),
		cmocka_unit_test(sources_of_the_wrong_kind_are_refused_by_name),
		cmocka_unit_test(a_missing_mount_point_in_a_tree_of_the_hosts_is_not_made),
		cmocka_unit_test(invalid_targets_are_refused),
		cmocka_unit_test(only_a_writable_bind_may_not_lead_to_a_guarded_directory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
