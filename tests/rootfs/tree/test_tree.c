/* SPDX-License-Identifier: Apache-2.0 */
/* A tree on a given root: what is made, with which attributes, and what never is. */
#include "rootfs/tree/tree.h"

#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/xattr.h>
#include <time.h>

#include "tests/rootfs/tree/inside_tree.h"

/* --- what a container has --------------------------------------------------------------- */

static const struct tree_op usual_ops[] = {
	FS("/proc", "proc", .attrs = { .set = MOUNT_ATTR_NOSUID }),
	FS("/dev", "tmpfs", .attrs = { .set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_STRICTATIME }),
	FS("/dev/pts", "devpts", ),
	FS("/dev/shm", "tmpfs", .attrs = { .set = MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC }),
	FS("/dev/mqueue", "mqueue", ),
	FS("/sys", "sysfs", .attrs = { .set = MOUNT_ATTR_RDONLY }),
	FS("/sys/fs/cgroup", "cgroup2", .attrs = { .set = MOUNT_ATTR_RDONLY }),
	{ .kind = TREE_DEVICE,
	  .path = "/dev/null",
	  .device = { .type = S_IFCHR, .mode = 0666, .major_number = 1, .minor_number = 3 } },
	{ .kind = TREE_LINK, .path = "/dev/fd", .source = "/proc/self/fd" },
	{ .kind = TREE_DIRECTORY, .path = "/made/below" },
	{ .kind = TREE_FILE, .path = "/made/file" },
};

static void look_at_usual(void *arg)
{
	(void)arg;
	check(has_magic("/proc", PROC_SUPER_MAGIC));
	check(has_magic("/sys", SYSFS_MAGIC));
	check(has_magic("/sys/fs/cgroup", CGROUP2_SUPER_MAGIC));
	check(has_magic("/dev/pts", DEVPTS_SUPER_MAGIC));
	check(mount_has("/dev/mqueue", " - mqueue "));
	check(mount_has("/proc", " rw,nosuid,relatime "));
	check(mount_has("/dev", " rw,nosuid "));
	check(mount_has("/dev/shm", " rw,nodev,noexec,relatime "));
	check(mount_has("/sys", " ro,relatime "));
	check(mount_has("/sys/fs/cgroup", " ro,relatime "));
	check(is_device_node("/dev/null", 1, 3));
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	check(fd >= 0 && write(fd, "x", 1) == 1);
	close(fd);
	check(is_link_to("/dev/fd", "/proc/self/fd"));
	check(mkdir("/made/below/it", 0700) == 0 && rmdir("/made/below/it") == 0);
	check(reads_as("/made/file", ""));
	char where[PATH_MAX];
	check(getcwd(where, sizeof(where)) && strcmp(where, "/") == 0);
}

static void a_container_gets_its_file_systems_devices_and_links(void **state)
{
	(void)state;
	char *place = make_place();
	const struct tree_case c = { .spec = { .root = place, OPS(usual_ops) },
				     .body = look_at_usual };
	run_tree(&c);
	end_place(place);
}

/* A second time: what exists stays. */
static void an_entry_that_is_right_stays(void **state)
{
	(void)state;
	char *place = make_place();
	make_dir(place, "dev");
	assert_int_equal(symlink("/proc/self/fd", at(place, "dev/fd")), 0);
	static const struct tree_op ops[] = {
		FS("/proc", "proc", ),
		{ .kind = TREE_LINK, .path = "/dev/fd", .source = "/proc/self/fd" },
		{ .kind = TREE_LINK, .path = "/dev/new", .source = "x" },
		{ .kind = TREE_LINK, .path = "/dev/new", .source = "x" },
	};
	const struct tree_case c = { .spec = { .root = place, OPS(ops) } };
	run_tree(&c);
	assert_true(is_link_to(at(place, "dev/new"), "x"));
	end_place(place);
}

/* --- devices --------------------------------------------------------------------------- */

#define DEVICE(where, major, minor, ...)                                                           \
	{                                                                                          \
		.kind = TREE_DEVICE, .path = (where), .device = {                                  \
			.type = S_IFCHR,                                                           \
			.mode = 0640,                                                              \
			.major_number = (major),                                                   \
			.minor_number = (minor),                                                   \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}

static void look_at_devices(void *arg)
{
	(void)arg;
	struct stat st;
	check(is_device_node("/dev/zero", 1, 5));
	check(lstat("/dev/pipe", &st) == 0 && S_ISFIFO(st.st_mode));
	check(is_device_node("/dev/sub/full", 1, 7));
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	char byte = 'x';
	check(fd >= 0 && read(fd, &byte, 1) == 1 && byte == 0);
	close(fd);
	check(stat("/dev/zero", &st) == 0 && (st.st_mode & 07777) == 0640);
}

static void devices_are_made_with_mode_and_number(void **state)
{
	(void)state;
	if (!has_ids())
		skip();
	char *place = make_place();
	static const struct tree_op ops[] = {
		FS("/proc", "proc", ),
		FS("/dev", "tmpfs", ),
		DEVICE("/dev/zero", 1, 5),
		DEVICE("/dev/sub/full", 1, 7),
		{ .kind = TREE_DEVICE,
		  .path = "/dev/pipe",
		  .device = { .type = S_IFIFO, .mode = 0600 } },
	};
	const struct tree_case c = { .spec = { .root = place, OPS(ops) }, .body = look_at_devices };
	run_tree_once(&c, false);
	end_place(place);
}

static void look_at_bound_devices(void *arg)
{
	(void)arg;
	char byte = 'x';
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	check(is_device_node("/dev/zero", 1, 5));
	check(fd >= 0 && read(fd, &byte, 1) == 1 && byte == 0);
	close(fd);
	check(mount_has("/dev/zero", " ro,nosuid,noexec"));
	check(chmod("/dev/zero", 0666) < 0 && (errno == EROFS || errno == EPERM));
}

static void in_a_user_namespace_the_host_s_device_is_bound(void **state)
{
	(void)state;
	char *place = make_place();
	static const struct tree_op ops[] = {
		FS("/proc", "proc", ),
		FS("/dev", "tmpfs", ),
		DEVICE("/dev/zero", 1, 5),
	};
	const struct tree_case c = { .spec = { .root = place, OPS(ops) },
				     .body = look_at_bound_devices };
	run_tree_once(&c, true);
	end_place(place);
}

static void a_host_device_of_another_number_is_not_bound(void **state)
{
	(void)state;
	char *place = make_place();
	static const struct tree_op ops[] = { FS("/dev", "tmpfs", ), DEVICE("/dev/zero", 1, 8) };
	const struct tree_case c = { .spec = { .root = place, OPS(ops) } };
	try_tree(&c, true);
	assert_int_equal(inside_result->end, ENDED_STAGE);
	assert_non_null(strstr(inside_result->err.msg, "is not the device 1:8"));
	end_place(place);
}

/* --- binds ------------------------------------------------------------------------------- */

/* A directory of the host, and a root beside it. */
static char source[64], root[64];

static void make_source(const char *place)
{
	(void)snprintf(source, sizeof(source), "%s/source", place);
	(void)snprintf(root, sizeof(root), "%s/r", place);
	make_dir(place, "source");
	make_file(at(place, "source/file"), "content");
	make_dir(place, "source/below");
	make_dir(place, "r");
}

static void look_at_binds(void *arg)
{
	(void)arg;
	check(reads_as("/data/file", "content"));
	check(may_create("/data/new") && unlink("/data/new") == 0);
	check(mount_has("/data", " rw,") && !mount_has("/data", "shared:") &&
	      !mount_has("/data", "master:"));
	check(reads_as("/etc/one", "content"));
	check(mount_has("/etc/one", " ro,nosuid,nodev,noexec"));
	check(!may_create("/ro/new") && errno == EROFS);
	check(mount_has("/slave", "master:") || !mount_has("/slave", "shared:"));
}

static void a_bind_has_its_options_and_is_private(void **state)
{
	(void)state;
	char *place = make_place();
	make_source(place);
	char file[80];
	(void)snprintf(file, sizeof(file), "%s/file", source);
	const struct tree_op ops[] = {
		FS("/proc", "proc", ),
		BIND_AT("/data", source, .is_recursive = true),
		BIND_AT("/etc/one", file, .is_recursive = true,
			.attrs = { .set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
					  MOUNT_ATTR_NOEXEC }),
		BIND_AT("/ro", source, .is_recursive = true,
			.attrs = { .set_below = MOUNT_ATTR_RDONLY }),
		BIND_AT("/slave", source, .is_recursive = true,
			.attrs = { .propagation = MS_SLAVE, .propagates_below = true }),
	};
	const struct tree_case c = { .spec = { .root = root, OPS(ops) }, .body = look_at_binds };
	run_tree(&c);
	end_place(place);
}

static void mount_below_source(void *arg)
{
	(void)arg;
	check(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	check(mount("tmpfs", at(source, "below"), "tmpfs", 0, NULL) == 0);
	check(may_create(at(source, "below/inner")));
}

static void look_at_recursion(void *arg)
{
	(void)arg;
	check(exists("/all/below/inner"));
	check(!exists("/one/below/inner"));
	check(may_create("/all/below/new1"));
	check(!may_create("/rro/below/new3") && errno == EROFS);
	check(!may_create("/ro/new") && errno == EROFS);
	check(may_create("/ro/below/new2"));
}

static void recursion_is_as_asked(void **state)
{
	(void)state;
	if (!has_ids())
		skip();
	char *place = make_place();
	make_source(place);
	const struct tree_op ops[] = {
		FS("/proc", "proc", ),
		BIND_AT("/all", source, .is_recursive = true),
		BIND_AT("/one", source, ),
		BIND_AT("/rro", source, .is_recursive = true,
			.attrs = { .set_below = MOUNT_ATTR_RDONLY }),
		BIND_AT("/ro", source, .is_recursive = true, .attrs = { .set = MOUNT_ATTR_RDONLY }),
	};
	const struct tree_case c = { .spec = { .root = root, OPS(ops) },
				     .host = mount_below_source,
				     .body = look_at_recursion };
	run_tree_once(&c, false);
	end_place(place);
}

static void a_missing_source_is_an_error_with_its_name(void **state)
{
	(void)state;
	char *place = make_place();
	const struct tree_op ops[] = { BIND_AT("/data", "/nowhere/at/all", ) };
	const struct tree_case c = { .spec = { .root = place, OPS(ops) } };
	expect_tree_failure(&c, "open", "mount '/data': open '/nowhere/at/all': No such file");
	const struct tree_case none = { .spec = { .root = "/nowhere/at/all" } };
	expect_tree_failure(&none, "open", "open the root file system '/nowhere/at/all'");
	end_place(place);
}

/* --- propagation ------------------------------------------------------------------------- */

static void share_source(void *arg)
{
	(void)arg;
	check(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	check(mount(source, source, NULL, MS_BIND, NULL) == 0);
	check(mount(NULL, source, NULL, MS_SHARED, NULL) == 0);
	/* lost, if the old root is detached while its mounts are peers */
	check(mkdir(at(source, "kept"), 0755) == 0 || errno == EEXIST);
	check(mount("tmpfs", at(source, "kept"), "tmpfs", 0, NULL) == 0);
	check(may_create(at(source, "kept/file")));
	check(mount(NULL, "/", NULL, MS_SHARED, NULL) == 0);
}

static void mount_inside(void *arg)
{
	(void)arg;
	check(mount("tmpfs", "/data/below", "tmpfs", 0, NULL) == 0);
	check(may_create("/data/below/from-inside"));
}

static bool is_mounted(const char *part)
{
	char line[1024];
	bool found = false;
	FILE *file = fopen("/proc/self/mountinfo", "re");
	while (file && fgets(line, sizeof(line), file))
		found = found || strstr(line, part);
	if (file)
		fclose(file);
	return found;
}

static void look_from_host(void *arg)
{
	check(exists(at(source, "below/from-inside")) == (arg != NULL));
	check(exists(at(source, "kept/file")));
	/* of all the other mounts the host has none, and it has lost none of its own */
	check(!is_mounted(root));
	check(has_magic("/proc", PROC_SUPER_MAGIC) && exists("/dev/null"));
}

static void only_a_shared_bind_shows_its_mounts_on_the_host(void **state)
{
	(void)state;
	if (!has_ids())
		skip();
	char *place = make_place();
	make_source(place);
	struct tree_op ops[] = {
		FS("/proc", "proc", ),
		FS("/dev", "tmpfs", ),
		BIND_AT("/data", source, .is_recursive = true,
			.attrs = { .propagation = MS_SHARED, .propagates_below = true }),
	};
	struct tree_case c = {
		.spec = { .root = root, OPS(ops), .keeps_peers = true, .propagation = MS_SHARED },
		.host = share_source,
		.body = mount_inside,
		.after = look_from_host,
		.arg = place,
	};
	run_tree_once(&c, false);

	ops[2].attrs.propagation = 0; /* private beside peers */
	c.arg = NULL;
	run_tree_once(&c, false);
	c.spec.keeps_peers = false;
	c.spec.propagation = 0;
	run_tree_once(&c, false);
	ops[2].attrs.propagation = MS_SLAVE;
	run_tree_once(&c, false);
	end_place(place);
}

static void look_at_root_propagation(void *arg)
{
	check(mount_has("/", arg));
	check(!mount_has("/proc", "shared:") && !mount_has("/proc", "master:"));
}

static void the_root_has_the_propagation_that_is_asked_for(void **state)
{
	(void)state;
	char *place = make_place();
	static const struct tree_op ops[] = { FS("/proc", "proc", ) };
	static const struct {
		unsigned long kind;
		const char *text;
	} rows[] = {
		{ MS_SHARED, " shared:" },
		{ MS_UNBINDABLE, " unbindable " },
		{ MS_PRIVATE, "relatime - " },
		{ 0, "relatime - " },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct tree_case c = {
			.spec = { .root = place, OPS(ops), .propagation = rows[i].kind },
			.body = look_at_root_propagation,
			.arg = (void *)rows[i].text,
		};
		run_tree(&c);
	}
	end_place(place);
}

/* --- masks ------------------------------------------------------------------------------- */

static void look_at_masks(void *arg)
{
	(void)arg;
	struct stat st;
	char byte;
	check(is_device_node("/secret", 1, 3) && is_device_node("/other", 1, 3));
	int fd = open("/secret", O_RDONLY | O_CLOEXEC);
	check(fd >= 0 && read(fd, &byte, 1) == 0);
	close(fd);
	check(chmod("/secret", 0) < 0 && (errno == EROFS || errno == EPERM));
	check(stat("/hidden", &st) == 0 && S_ISDIR(st.st_mode) && st.st_nlink == 2);
	check(!exists("/hidden/file") && !may_create("/hidden/new"));
	check(!exists("/hidden2/file") && !may_create("/hidden2/new"));
	check(!may_create("/kept/new") && errno == EROFS && exists("/kept/file"));
	check(mount_has("/proc/sys", " ro,"));
	fd = open("/proc/kcore", O_RDONLY | O_CLOEXEC);
	check(fd < 0 || (read(fd, &byte, 1) == 0 && is_device_node("/proc/kcore", 1, 3)));
	cj_close(&fd);
	check(may_create("/new") && unlink("/new") == 0);
}

static void masked_and_read_only_paths_are_so(void **state)
{
	(void)state;
	char *place = make_place();
	make_file(at(place, "secret"), "secret");
	make_file(at(place, "other"), "secret");
	make_dir(place, "hidden"), make_file(at(place, "hidden/file"), "");
	make_dir(place, "hidden2"), make_file(at(place, "hidden2/file"), "");
	make_dir(place, "kept"), make_file(at(place, "kept/file"), "");
	static const struct tree_op ops[] = { FS("/proc", "proc", ), FS("/dev", "tmpfs", ) };
	static const char *masked[] = { "/secret", "/other",    "/hidden",    "/hidden2",
					"/none",   "/secret/x", "/proc/none", "/proc/kcore" };
	static const char *read_only[] = { "/kept", "/proc/sys", "/none/at/all" };
	const struct tree_case c = { .spec = { .root = place,
					       OPS(ops),
					       .masked = { masked, 8 },
					       .read_only = { read_only, 3 } },
				     .body = look_at_masks };
	run_tree(&c);
	end_place(place);
}

static void look_at_read_only_root(void *arg)
{
	(void)arg;
	check(!may_create("/new") && errno == EROFS);
	check(may_create("/tmp/new"));
	check(mount_has("/", " ro,"));
}

static void a_read_only_root_has_its_mount_points_all_the_same(void **state)
{
	(void)state;
	char *place = make_place();
	static const struct tree_op ops[] = { FS("/proc", "proc", ), FS("/tmp", "tmpfs", ) };
	const struct tree_case c = { .spec = { .root = place, OPS(ops), .is_read_only = true },
				     .body = look_at_read_only_root };
	run_tree(&c);
	end_place(place);
}

/* --- tmpcopyup --------------------------------------------------------------------------- */

static void look_at_copy(void *arg)
{
	(void)arg;
	struct stat st;
	check(has_magic("/var", TMPFS_MAGIC));
	check(reads_as("/var/file", "text"));
	check(is_link_to("/var/sub/link", "../file"));
	check(stat("/var/sub", &st) == 0 && (st.st_mode & 07777) == 0710);
	check(stat("/var/file", &st) == 0 && (st.st_mode & 07777) == 0604);
	check(stat("/var", &st) == 0 && (st.st_mode & 07777) == 01777);
	check(!may_create("/var/new") && errno == EROFS);
}

static const struct timespec copy_times[] = { { 1000000000, 1 }, { 1000000002, 3 } };
static bool has_user_attribute, has_capability;

static bool is_of_that_time(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0 && st.st_mtim.tv_sec == copy_times[1].tv_sec &&
	       st.st_mtim.tv_nsec == copy_times[1].tv_nsec;
}

static void look_at_properties(void *arg)
{
	(void)arg;
	char value[64];
	struct stat one, two, three;
	check(is_of_that_time("/var/file") && is_of_that_time("/var/link") &&
	      is_of_that_time("/var/sub") && is_of_that_time("/var"));
	check(stat("/var/file", &one) == 0 && stat("/var/sub/again", &two) == 0 &&
	      stat("/var/sub/third", &three) == 0);
	check(one.st_ino == two.st_ino && one.st_ino == three.st_ino && one.st_nlink == 3);
	check(access("/var/.cejail-links.0", F_OK) == 0); /* the image's */
	check(access("/var/.cejail-links.1", F_OK) < 0);
	check(getxattr("/var/file", "user.mark", value, sizeof(value)) ==
	      (has_user_attribute ? 4 : -1));
	check(getxattr("/var/file", "security.capability", value, sizeof(value)) ==
	      (has_capability ? 20 : -1));
}

/* The effective CAP_NET_RAW, as setcap(8) writes it: <linux/capability.h>, version 2. */
static bool set_capability(const char *path)
{
	static const uint32_t value[5] = { 0x02000001, 1u << 13, 0, 0, 0 };
	return setxattr(path, "security.capability", value, sizeof(value), 0) == 0;
}

/* Older kernels have no user.* in a tmpfs: Linux 6.6 added it. */
static bool has_tmpfs_user_attributes(void)
{
	int fd = memfd_create("attributes", MFD_CLOEXEC);
	bool has = fd >= 0 && fsetxattr(fd, "user.mark", "x", 1, 0) == 0;
	close(fd);
	return has;
}

static void tmpcopyup_copies_links_times_and_attributes(void **state)
{
	(void)state;
	char *place = make_place();
	make_dir(place, "var"), make_dir(place, "var/sub"), make_dir(place, "var/.cejail-links.0");
	make_file(at(place, "var/file"), "text");
	char *file = strdup(at(place, "var/file"));
	assert_int_equal(link(file, at(place, "var/sub/again")), 0);
	assert_int_equal(link(file, at(place, "var/sub/third")), 0);
	assert_int_equal(symlink("file", at(place, "var/link")), 0);
	has_user_attribute = setxattr(file, "user.mark", "here", 4, 0) == 0 &&
			     has_tmpfs_user_attributes();
	has_capability = set_capability(file);
	for (const char *const *name =
		 (const char *const[]){ "var/file", "var/link", "var/sub", "var", NULL };
	     *name; name++)
		assert_int_equal(
		    utimensat(AT_FDCWD, at(place, *name), copy_times, AT_SYMLINK_NOFOLLOW), 0);
	static const struct tree_op ops[] = { FS("/var", "tmpfs", .copies_up = true) };
	const struct tree_case c = { .spec = { .root = place, OPS(ops) },
				     .body = look_at_properties };
	run_tree(&c);
	free(file);
	end_place(place);
}

static void tmpcopyup_begins_with_what_was_there(void **state)
{
	(void)state;
	char *place = make_place();
	make_dir(place, "var"), make_dir(place, "var/sub");
	make_file(at(place, "var/file"), "text");
	assert_int_equal(symlink("../file", at(place, "var/sub/link")), 0);
	assert_int_equal(chmod(at(place, "var/sub"), 0710), 0);
	assert_int_equal(chmod(at(place, "var/file"), 0604), 0);
	assert_int_equal(chmod(at(place, "var"), 01777), 0);
	static const struct tree_op ops[] = {
		FS("/var", "tmpfs", .copies_up = true, .attrs = { .set = MOUNT_ATTR_RDONLY }),
	};
	const struct tree_case c = { .spec = { .root = place, OPS(ops) }, .body = look_at_copy };
	run_tree(&c);
	end_place(place);
}

static void tmpcopyup_opens_no_device_and_no_fifo(void **state)
{
	(void)state;
	char *place = make_place();
	make_dir(place, "var");
	assert_int_equal(mkfifo(at(place, "var/pipe"), 0600), 0);
	static const struct tree_op ops[] = { FS("/var", "tmpfs", .copies_up = true) };
	const struct tree_case c = { .spec = { .root = place, OPS(ops) } };
	expect_tree_failure(&c, "build", "'pipe' is a device, a fifo or a socket");
	end_place(place);
}

/* fcntl(2): without O_NONBLOCK the open waits for /proc/sys/fs/lease-break-time, 45 s. */
static void tmpcopyup_waits_for_no_lease(void **state)
{
	(void)state;
	char *place = make_place();
	make_dir(place, "var");
	make_file(at(place, "var/leased"), "text");
	void (*saved)(int) = signal(SIGIO, SIG_IGN);
	int fd = open(at(place, "var/leased"), O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_SETLEASE, F_WRLCK), 0);
	static const struct tree_op ops[] = { FS("/var", "tmpfs", .copies_up = true) };
	const struct tree_case c = { .spec = { .root = place, OPS(ops) } };
	time_t began = time(NULL);
	expect_tree_failure(&c, "build", "copy 'leased' below");
	assert_true(time(NULL) - began < 20);
	close(fd);
	(void)signal(SIGIO, saved);
	end_place(place);
}

static void tmpcopyup_ends_at_the_size_of_the_tmpfs_and_at_a_depth(void **state)
{
	(void)state;
	char *place = make_place();
	make_dir(place, "var");
	make_file(at(place, "var/huge"), "");
	assert_int_equal(truncate(at(place, "var/huge"), (off_t)1 << 40), 0);
	static const struct mounts_option options[] = { { "size", "64k" } };
	static const struct tree_op ops[] = {
		FS("/var", "tmpfs", .copies_up = true, .options = options, .noptions = 1),
	};
	const struct tree_case c = { .spec = { .root = place, OPS(ops) } };
	expect_tree_failure(&c, "build", "No space left on device");
	end_place(place);

	place = make_place();
	char path[PATH_MAX];
	(void)snprintf(path, sizeof(path), "%s/var", place);
	for (int depth = 0; depth < 70; depth++) {
		assert_int_equal(mkdir(path, 0755), 0);
		(void)snprintf(path + strlen(path), sizeof(path) - strlen(path), "/d");
	}
	const struct tree_case deep = { .spec = { .root = place, OPS(ops) } };
	expect_tree_failure(&deep, "build", "more than 64 directories deep");
	end_place(place);
}

/* --- ids --------------------------------------------------------------------------------- */

static void look_at_ids(void *arg)
{
	(void)arg;
	struct stat st;
	check(stat("/data/file", &st) == 0 && st.st_uid == 5000 && st.st_gid == 6000);
	check(stat("/data", &st) == 0 && st.st_uid == 5000);
}

static void a_bind_has_the_ids_of_its_map(void **state)
{
	(void)state;
	if (!has_ids())
		skip();
	char *place = make_place();
	make_source(place);
	const struct tree_op ops[] = {
		BIND_AT("/data", source,
			.ids = { .uid_map = "0 5000 10\n", .gid_map = "0 6000 10\n" }),
	};
	const struct tree_case c = { .spec = { .root = root, OPS(ops) }, .body = look_at_ids };
	run_tree_once(&c, false);
	end_place(place);
}

static void a_map_that_the_kernel_refuses_is_an_error(void **state)
{
	(void)state;
	char *place = make_place();
	const struct tree_op ops[] = {
		BIND_AT("/data", "/proc", .ids = { .uid_map = "0 0 1\n", .gid_map = "0 0 1\n" }),
	};
	const struct tree_case c = { .spec = { .root = place, OPS(ops) } };
	expect_tree_failure(&c, "outside", "mount '/data': ");
	end_place(place);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_container_gets_its_file_systems_devices_and_links),
		cmocka_unit_test(an_entry_that_is_right_stays),
		cmocka_unit_test(devices_are_made_with_mode_and_number),
		cmocka_unit_test(in_a_user_namespace_the_host_s_device_is_bound),
		cmocka_unit_test(a_host_device_of_another_number_is_not_bound),
		cmocka_unit_test(a_bind_has_its_options_and_is_private),
		cmocka_unit_test(recursion_is_as_asked),
		cmocka_unit_test(a_missing_source_is_an_error_with_its_name),
		cmocka_unit_test(only_a_shared_bind_shows_its_mounts_on_the_host),
		cmocka_unit_test(the_root_has_the_propagation_that_is_asked_for),
		cmocka_unit_test(masked_and_read_only_paths_are_so),
		cmocka_unit_test(a_read_only_root_has_its_mount_points_all_the_same),
		cmocka_unit_test(tmpcopyup_begins_with_what_was_there),
		cmocka_unit_test(tmpcopyup_copies_links_times_and_attributes),
		cmocka_unit_test(tmpcopyup_opens_no_device_and_no_fifo),
		cmocka_unit_test(tmpcopyup_waits_for_no_lease),
		cmocka_unit_test(tmpcopyup_ends_at_the_size_of_the_tmpfs_and_at_a_depth),
		cmocka_unit_test(a_bind_has_the_ids_of_its_map),
		cmocka_unit_test(a_map_that_the_kernel_refuses_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
