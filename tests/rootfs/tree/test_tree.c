/* SPDX-License-Identifier: Apache-2.0 */
/* A tree on a given root: what is made, with which attributes, and what never is. */
#include "rootfs/tree/tree.h"

#include <linux/magic.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_container_gets_its_file_systems_devices_and_links),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
