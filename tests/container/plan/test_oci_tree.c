/* SPDX-License-Identifier: Apache-2.0 */
/* From config.json to the operations on the root. */
#include "runtime/container/plan/oci_tree.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "profiles/paths.h"

#define OPTIONS(...)                                                                               \
	{                                                                                          \
		(const char *[]){ __VA_ARGS__ },                                                   \
		    sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *)                       \
	}
#define MOUNTS(list) .mounts = (list), .nmounts = sizeof(list) / sizeof((list)[0])
#define NAMESPACES                                                                                 \
	.on_linux.namespaces = {                                                                   \
		[OCI_NS_MOUNT] = { .is_wanted = true },                                            \
		[OCI_NS_NETWORK] = { .is_wanted = true },                                          \
		[OCI_NS_IPC] = { .is_wanted = true, .path = "/proc/1/ns/ipc" },                    \
	}

/* --- helpers ------------------------------------------------------------------------------ */

static struct oci_tree plan(const struct oci_config *config, struct arena *a)
{
	struct oci_tree out;
	struct cj_error err = { 0 };
	int rc = oci_tree_plan(config, a, &out, &err);
	if (rc < 0)
		print_error("%s\n", err.msg);
	assert_int_equal(rc, 0);
	return out;
}

static void refuse(const struct oci_config *config, const char *part)
{
	struct arena a = { 0 };
	struct oci_tree out = { .nsysctls = 77 };
	struct cj_error err = { 0 };
	assert_int_equal(oci_tree_plan(config, &a, &out, &err), -EINVAL);
	if (!strstr(err.msg, part))
		print_error("%s\n", err.msg);
	assert_non_null(strstr(err.msg, part));
	assert_int_equal(out.nsysctls, 77);
	arena_fini(&a);
}

static void refuse_mount(struct oci_mount mount, const char *part)
{
	mount.line = 12;
	const struct oci_config config = { NAMESPACES, .mounts = &mount, .nmounts = 1 };
	char whole[256];
	(void)snprintf(whole, sizeof(whole), "line 12: mount '%s': %s", mount.destination, part);
	refuse(&config, whole);
}

/* The only operation with this path. */
static const struct tree_op *find(const struct oci_tree *tree, const char *path)
{
	const struct tree_op *found = NULL;
	for (size_t i = 0; i < tree->tree.nops; i++) {
		if (strcmp(tree->tree.ops[i].path, path) != 0)
			continue;
		assert_null(found);
		found = &tree->tree.ops[i];
	}
	return found;
}

static size_t index_of(const struct oci_tree *tree, const char *path)
{
	const struct tree_op *op = find(tree, path);
	assert_non_null(op);
	return (size_t)(op - tree->tree.ops);
}

static const char *option(const struct tree_op *op, const char *key)
{
	for (size_t i = 0; i < op->noptions; i++)
		if (strcmp(op->options[i].key, key) == 0)
			return op->options[i].value ? op->options[i].value : "(flag)";
	return NULL;
}

/* --- mounts ------------------------------------------------------------------------------- */

static void mounts_keep_their_order_and_paths_are_clean(void **state)
{
	(void)state;
	struct arena a = { 0 };
	const struct oci_mount mounts[] = {
		{ .destination = "/proc", .type = "proc", .source = "proc" },
		{ .destination = "//data/../etc//x/.",
		  .source = "/src",
		  .options = OPTIONS("rbind", "ro") },
		{ .destination = "tmp", .type = "tmpfs", .options = OPTIONS("size=1m") },
	};
	const struct oci_config config = { NAMESPACES, MOUNTS(mounts), .root_path = "rootfs" };
	struct oci_tree tree = plan(&config, &a);
	assert_string_equal(tree.tree.root, "rootfs");
	/* a tmpfs at /dev comes first, as there is none */
	assert_int_equal(index_of(&tree, "/dev"), 0);
	assert_int_equal(index_of(&tree, "/proc"), 1);
	assert_int_equal(index_of(&tree, "/etc/x"), 2);
	assert_int_equal(index_of(&tree, "/tmp"), 3);

	const struct tree_op *op = find(&tree, "/etc/x");
	assert_int_equal(op->kind, TREE_BIND);
	assert_true(op->is_recursive && op->attrs.set == MOUNT_ATTR_RDONLY);
	assert_string_equal(op->source, "/src");
	op = find(&tree, "/tmp");
	assert_int_equal(op->kind, TREE_FS);
	assert_string_equal(option(op, "size"), "1m");
	assert_null(option(op, "source"));
	assert_string_equal(option(find(&tree, "/proc"), "source"), "proc");
	arena_fini(&a);
}

static void a_bind_is_one_by_type_or_option(void **state)
{
	(void)state;
	struct arena a = { 0 };
	const struct oci_mount mounts[] = {
		{ .destination = "/a", .type = "bind", .source = "s" },
		{ .destination = "/b", .type = "none", .source = "s", .options = OPTIONS("bind") },
		{ .destination = "/c", .source = "s", .options = OPTIONS("rbind", "rshared") },
	};
	const struct oci_config config = { NAMESPACES, MOUNTS(mounts) };
	struct oci_tree tree = plan(&config, &a);
	assert_true(find(&tree, "/a")->kind == TREE_BIND && !find(&tree, "/a")->is_recursive);
	assert_true(find(&tree, "/b")->kind == TREE_BIND);
	assert_true(find(&tree, "/c")->is_recursive);
	assert_true(tree.tree.keeps_peers);
	arena_fini(&a);
}

static void options_of_a_file_system_in_a_bind_are_warnings(void **state)
{
	(void)state;
	struct arena a = { 0 };
	const struct oci_mount mount = { .destination = "/a",
					 .source = "s",
					 .options = OPTIONS("bind", "mode=1", "ro", "sync") };
	const struct oci_config config = { NAMESPACES, .mounts = &mount, .nmounts = 1 };
	struct oci_tree tree = plan(&config, &a);
	assert_int_equal(find(&tree, "/a")->noptions, 0);
	assert_true(find(&tree, "/a")->attrs.set == MOUNT_ATTR_RDONLY);
	assert_int_equal(tree.warnings.count, 2);
	assert_non_null(strstr(tree.warnings.items[0], "mount '/a': option 'mode'"));
	assert_non_null(strstr(tree.warnings.items[1], "mount '/a': option 'sync'"));
	arena_fini(&a);
}

static void a_misspelled_option_of_a_bind_is_refused(void **state)
{
	(void)state;
	static const struct {
		const char *option, *message, *hint;
	} cases[] = {
		{ "nosuidd", "unknown option 'nosuidd' of a bind mount", "did you mean 'nosuid'?" },
		{ "noexce", "unknown option 'noexce' of a bind mount", "did you mean 'noexec'?" },
		{ "nosuid=1", "unknown option 'nosuid=1'", "did you mean 'nosuid'?" },
		{ "nr_inods=5", "unknown option 'nr_inods=5'", "did you mean 'nr_inodes'?" },
		{ "NODEV", "unknown option 'NODEV'", "" },
		{ "copy-symlink", "unknown option 'copy-symlink'", "" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct arena a = { 0 };
		struct oci_tree tree;
		struct cj_error err = { 0 };
		const struct oci_mount mount = { .destination = "/a",
						 .source = "s",
						 .line = 12,
						 .options = OPTIONS("bind", cases[i].option) };
		const struct oci_config config = { NAMESPACES, .mounts = &mount, .nmounts = 1 };
		assert_int_equal(oci_tree_plan(&config, &a, &tree, &err), -EINVAL);
		assert_non_null(strstr(err.msg, "line 12: mount '/a': "));
		assert_non_null(strstr(err.msg, cases[i].message));
		assert_string_equal(err.hint, cases[i].hint);
		arena_fini(&a);
	}
}

static void only_the_paths_of_an_overlay_may_be_long(void **state)
{
	(void)state;
	struct arena a = { 0 };
	char lower[1000] = "lowerdir=";
	memset(lower + strlen(lower), 'x', sizeof(lower) - strlen(lower) - 1);
	struct oci_mount mount = { .destination = "/a",
				   .type = "overlay",
				   .options = OPTIONS(lower) };
	const struct oci_config config = { NAMESPACES, .mounts = &mount, .nmounts = 1 };
	struct oci_tree tree = plan(&config, &a);
	assert_string_equal(option(find(&tree, "/a"), "lowerdir"), lower + strlen("lowerdir="));
	arena_fini(&a);
	mount.type = "tmpfs";
	mount.line = 12;
	refuse(&config, "option 'lowerdir' is longer than 255 bytes");
}

static void a_cgroup_mount_is_version_2_and_read_only_unless_rw(void **state)
{
	(void)state;
	struct arena a = { 0 };
	const struct oci_mount mounts[] = {
		{ .destination = "/a",
		  .type = "cgroup",
		  .source = "cgroup",
		  .options = OPTIONS("nosuid") },
		{ .destination = "/b", .type = "cgroup2", .options = OPTIONS("rw") },
		{ .destination = "/c", .type = "cgroup", .options = OPTIONS("ro") },
	};
	struct oci_config config = { NAMESPACES, MOUNTS(mounts) };
	config.on_linux.namespaces[OCI_NS_CGROUP].is_wanted = true;
	struct oci_tree tree = plan(&config, &a);
	assert_string_equal(find(&tree, "/a")->type, "cgroup2");
	assert_int_equal(find(&tree, "/a")->attrs.set, MOUNT_ATTR_NOSUID | MOUNT_ATTR_RDONLY);
	assert_string_equal(find(&tree, "/b")->type, "cgroup2");
	assert_int_equal(find(&tree, "/b")->attrs.set, 0);
	/* "ro" is the mount's: the superblock is the host's, too */
	assert_int_equal(find(&tree, "/c")->attrs.set, MOUNT_ATTR_RDONLY);
	assert_null(option(find(&tree, "/c"), "ro"));
	arena_fini(&a);
}

/* CVE-2023-25809 */
static void without_a_cgroup_namespace_only_a_privileged_container_may_write(void **state)
{
	(void)state;
	static const char *one[] = { "CAP_KILL" }, *two[] = { "CAP_KILL", "CAP_SYS_ADMIN" };
	struct arena a = { 0 };
	const struct oci_mount mounts[] = {
		{ .destination = "/a", .type = "cgroup", .options = OPTIONS("rw"), .line = 3 },
	};
	struct oci_config config = { NAMESPACES, MOUNTS(mounts) };
	struct strings *bounding = &config.process.capabilities.bounding;
	struct oci_tree tree = plan(&config, &a);
	assert_int_equal(find(&tree, "/a")->attrs.set, MOUNT_ATTR_RDONLY);
	assert_non_null(strstr(tree.warnings.items[0], "mount '/a' is read-only"));
	*bounding = (struct strings){ one, 1 };
	tree = plan(&config, &a);
	assert_int_equal(find(&tree, "/a")->attrs.set, MOUNT_ATTR_RDONLY);
	*bounding = (struct strings){ two, 2 };
	tree = plan(&config, &a);
	assert_int_equal(find(&tree, "/a")->attrs.set, 0);
	assert_int_equal(tree.warnings.count, 0);
	*bounding = (struct strings){ 0 };
	config.on_linux.namespaces[OCI_NS_USER].is_wanted = true; /* then it gets one */
	tree = plan(&config, &a);
	assert_int_equal(find(&tree, "/a")->attrs.set, 0);
	arena_fini(&a);
}

static void other_file_systems_are_read_only_themselves(void **state)
{
	(void)state;
	struct arena a = { 0 };
	const struct oci_mount mounts[] = {
		{ .destination = "/a",
		  .type = "overlay",
		  .source = "overlay",
		  .options = OPTIONS("ro", "lowerdir=/x:/y") },
	};
	const struct oci_config config = { NAMESPACES, MOUNTS(mounts) };
	struct oci_tree tree = plan(&config, &a);
	const struct tree_op *op = find(&tree, "/a");
	assert_string_equal(option(op, "ro"), "(flag)");
	assert_string_equal(option(op, "lowerdir"), "/x:/y");
	assert_string_equal(option(op, "source"), "overlay");
	assert_int_equal(op->attrs.set, MOUNT_ATTR_RDONLY);
	arena_fini(&a);
}

/* CVE-2023-25809: the host's cgroups come with its /sys. */
static void a_read_only_bind_of_sys_is_so_as_a_whole(void **state)
{
	(void)state;
	struct arena a = { 0 };
	const struct oci_mount mounts[] = {
		{ .destination = "/sys/",
		  .type = "bind",
		  .source = "/sys",
		  .options = OPTIONS("rbind", "ro") },
		{ .destination = "/data",
		  .type = "bind",
		  .source = "/sys",
		  .options = OPTIONS("rbind", "ro") },
	};
	const struct oci_config config = { NAMESPACES, MOUNTS(mounts) };
	struct oci_tree tree = plan(&config, &a);
	assert_int_equal(find(&tree, "/sys")->attrs.set_below, MOUNT_ATTR_RDONLY);
	assert_int_equal(find(&tree, "/data")->attrs.set_below, 0);
	arena_fini(&a);
}

static void mounts_that_mean_nothing_are_refused(void **state)
{
	(void)state;
	char value[300];
	memset(value, 'x', sizeof(value));
	memcpy(value, "size=", 5);
	value[sizeof(value) - 1] = '\0';
	refuse_mount((struct oci_mount){ .destination = "/.", .type = "tmpfs" },
		     "nothing can be mounted on the root itself");
	refuse_mount((struct oci_mount){ .destination = "/a" }, "it has no type and is no bind");
	refuse_mount((struct oci_mount){ .destination = "/a", .type = "bind" },
		     "a bind needs a source");
	refuse_mount((struct oci_mount){ .destination = "/a",
					 .source = "s",
					 .options = OPTIONS("bind", "tmpcopyup") },
		     "'tmpcopyup' is for tmpfs, and this is a bind");
	refuse_mount((struct oci_mount){ .destination = "/a",
					 .type = "proc",
					 .options = OPTIONS("tmpcopyup") },
		     "'tmpcopyup' is for tmpfs, and this is 'proc'");
	refuse_mount(
	    (struct oci_mount){ .destination = "/a", .type = "tmpfs", .options = OPTIONS(value) },
	    "option 'size' is longer than 255 bytes");
	refuse_mount((struct oci_mount){ .destination = "/a",
					 .type = "tmpfs",
					 .options = OPTIONS("ro", "rw") },
		     "option 'rw' contradicts an earlier one");
	refuse_mount((struct oci_mount){ .destination = "/a",
					 .source = "s",
					 .options = OPTIONS("bind", "idmap") },
		     "an ID-mapped mount needs uidMappings and gidMappings");
	refuse_mount(
	    (struct oci_mount){ .destination = "/a", .type = "tmpfs", .options = OPTIONS("idmap") },
	    "ids can only be mapped in a bind");
}

static void ids_come_from_the_mount_or_the_container(void **state)
{
	(void)state;
	struct arena a = { 0 };
	const struct oci_id_map own[] = { { 0, 1000, 1 }, { 1, UINT32_MAX - 1, 1 } };
	const struct oci_id_map containers[] = { { 0, 100000, 65536 } };
	const struct oci_mount mounts[] = {
		{ .destination = "/a",
		  .source = "s",
		  .options = OPTIONS("bind"),
		  .uid_maps = { own, 2 },
		  .gid_maps = { own, 1 } },
		{ .destination = "/b", .source = "s", .options = OPTIONS("bind", "ridmap") },
		{ .destination = "/c", .source = "s", .options = OPTIONS("bind") },
	};
	struct oci_config config = { NAMESPACES, MOUNTS(mounts) };
	config.on_linux.uid_maps = config.on_linux.gid_maps = (struct oci_id_maps){ containers, 1 };
	struct oci_tree tree = plan(&config, &a);
	assert_string_equal(find(&tree, "/a")->ids.uid_map, "0 1000 1\n1 4294967294 1\n");
	assert_string_equal(find(&tree, "/a")->ids.gid_map, "0 1000 1\n");
	assert_false(find(&tree, "/a")->ids.is_recursive);
	assert_string_equal(find(&tree, "/b")->ids.gid_map, "0 100000 65536\n");
	assert_true(find(&tree, "/b")->ids.is_recursive);
	assert_null(find(&tree, "/c")->ids.uid_map);
	arena_fini(&a);
}

static void new_file_systems_have_the_label_of_their_mounts(void **state)
{
	(void)state;
	struct arena a = { 0 };
	const struct oci_mount mounts[] = {
		{ .destination = "/proc", .type = "proc" },
		{ .destination = "/dev/pts", .type = "devpts", .options = OPTIONS("mode=0620") },
		{ .destination = "/dev/mqueue", .type = "mqueue" },
		{ .destination = "/own", .type = "tmpfs", .options = OPTIONS("context=own") },
		{ .destination = "/bind", .source = "/src", .options = OPTIONS("bind") },
	};
	const struct oci_config config = {
		.on_linux = { .namespaces = { [OCI_NS_MOUNT] = { .is_wanted = true } },
			      .mount_label = "u:r:t:s0:c1,c2" },
		MOUNTS(mounts)
	};
	struct oci_tree tree = plan(&config, &a);
	assert_string_equal(option(find(&tree, "/dev"), "context"), "u:r:t:s0:c1,c2");
	assert_string_equal(option(find(&tree, "/dev"), "size"), "65536k");
	assert_string_equal(option(find(&tree, "/dev/pts"), "context"), "u:r:t:s0:c1,c2");
	assert_string_equal(option(find(&tree, "/own"), "context"), "own");
	assert_null(option(find(&tree, "/proc"), "context"));
	assert_null(option(find(&tree, "/dev/mqueue"), "context"));
	assert_string_equal(find(&tree, "/dev/mqueue")->label, "u:r:t:s0:c1,c2");
	assert_null(find(&tree, "/dev/pts")->label);
	assert_int_equal(find(&tree, "/bind")->noptions, 0);
	assert_string_equal(tree.tree.mount_label, "u:r:t:s0:c1,c2");
	arena_fini(&a);
}

/* --- /dev ---------------------------------------------------------------------------------- */

static const char *const default_nodes[] = { "/dev/null",   "/dev/zero",    "/dev/full",
					     "/dev/random", "/dev/urandom", "/dev/tty" };

static void the_default_devices_and_links_follow_the_mounts(void **state)
{
	(void)state;
	struct arena a = { 0 };
	const struct oci_mount mounts[] = { { .destination = "/dev", .type = "tmpfs" } };
	const struct oci_config config = { NAMESPACES, MOUNTS(mounts) };
	struct oci_tree tree = plan(&config, &a);
	for (size_t i = 0; i < sizeof(default_nodes) / sizeof(default_nodes[0]); i++) {
		const struct tree_op *op = find(&tree, default_nodes[i]);
		assert_true(op && op->kind == TREE_DEVICE && op->device.type == S_IFCHR);
		assert_int_equal(op->device.mode, 0666);
		assert_false(op->device.is_given);
	}
	assert_int_equal(find(&tree, "/dev/null")->device.minor_number, 3);
	assert_string_equal(find(&tree, "/dev/ptmx")->source, "pts/ptmx");
	assert_string_equal(find(&tree, "/dev/fd")->source, "/proc/self/fd");
	assert_int_equal(index_of(&tree, "/dev"), 0);
	arena_fini(&a);
}

static void listed_devices_replace_the_default_ones(void **state)
{
	(void)state;
	struct arena a = { 0 };
	const struct oci_device devices[] = {
		{ .path = "/dev/zero",
		  .type = 'c',
		  .major = 1,
		  .minor = 5,
		  .file_mode = { true, 0100600 },
		  .uid = { true, 7 },
		  .gid = { true, 8 } },
		{ .path = "/dev//loop0", .type = 'b', .major = 7, .minor = 0 },
		{ .path = "/dev/pipe", .type = 'p' },
		{ .path = "/dev/u", .type = 'u', .major = 9, .minor = 9 },
		{ .path = "/dev/ptmx", .type = 'c', .major = 5, .minor = 2 },
	};
	struct oci_config config = { NAMESPACES };
	config.on_linux.devices = devices;
	config.on_linux.ndevices = 5;
	struct oci_tree tree = plan(&config, &a);
	const struct tree_device *zero = &find(&tree, "/dev/zero")->device;
	assert_true(zero->mode == 0600 && zero->uid == 7 && zero->gid == 8);
	assert_int_equal(find(&tree, "/dev/loop0")->device.type, S_IFBLK);
	assert_int_equal(find(&tree, "/dev/loop0")->device.mode, 0666);
	assert_int_equal(find(&tree, "/dev/pipe")->device.type, S_IFIFO);
	assert_int_equal(find(&tree, "/dev/u")->device.type, S_IFCHR);
	/* the host's devpts stays out */
	assert_int_equal(find(&tree, "/dev/ptmx")->kind, TREE_LINK);
	arena_fini(&a);
}

static void nothing_is_made_in_a_dev_of_the_host(void **state)
{
	(void)state;
	struct arena a = { 0 };
	const struct oci_mount mounts[] = {
		{ .destination = "/dev", .source = "/dev", .options = OPTIONS("rbind") },
	};
	const struct oci_device devices[] = { { .path = "/dev/x", .type = 'c' } };
	struct oci_config config = { NAMESPACES, MOUNTS(mounts) };
	config.on_linux.devices = devices;
	config.on_linux.ndevices = 1;
	struct oci_tree tree = plan(&config, &a);
	assert_int_equal(tree.tree.nops, 2);
	assert_true(find(&tree, "/dev/x")->device.is_given);
	arena_fini(&a);
}

/* --- the rest -------------------------------------------------------------------------------- */

static void masks_propagation_and_read_only_root_are_taken_over(void **state)
{
	(void)state;
	struct arena a = { 0 };
	struct oci_config config = { NAMESPACES, .root_is_readonly = true };
	config.on_linux.masked_paths = (struct strings)OPTIONS("/proc//kcore", "/a/../b");
	config.on_linux.readonly_paths = (struct strings)OPTIONS("/proc/sys/");
	config.on_linux.rootfs_propagation = MS_SLAVE | MS_REC;
	struct oci_tree tree = plan(&config, &a);
	assert_string_equal(tree.tree.masked.items[0], "/proc/kcore");
	assert_string_equal(tree.tree.masked.items[1], "/b");
	assert_string_equal(tree.tree.read_only.items[0], "/proc/sys");
	assert_int_equal(tree.tree.propagation, MS_SLAVE);
	assert_true(tree.tree.is_read_only);
	assert_false(tree.tree.keeps_peers);
	arena_fini(&a);
}

static void without_a_mount_namespace_nothing_is_planned(void **state)
{
	(void)state;
	struct oci_config config = { 0 };
	refuse(&config, "a new mount namespace is needed");
	config.on_linux.namespaces[OCI_NS_MOUNT] =
	    (struct oci_namespace){ .is_wanted = true, .path = "/proc/1/ns/mnt" };
	refuse(&config, "a new mount namespace is needed");
}

static struct oci_config with_sysctl(const struct oci_pair *pair)
{
	struct oci_config config = { NAMESPACES };
	config.on_linux.sysctl = (struct oci_pairs){ pair, 1 };
	return config;
}

static void sysctls_are_those_of_the_container_s_namespaces(void **state)
{
	(void)state;
	static const struct {
		const char *name, *path;
		enum sysctl_namespace space;
	} rows[] = {
		{ "net.ipv4.ip_forward", "net/ipv4/ip_forward", SYSCTL_NET },
		{ "net/ipv4/conf/eth0.1/rp_filter", "net/ipv4/conf/eth0.1/rp_filter", SYSCTL_NET },
		{ "net.ipv4.conf.eth0/1.rp_filter", "net/ipv4/conf/eth0.1/rp_filter", SYSCTL_NET },
		{ "kernel.msgmax", "kernel/msgmax", SYSCTL_IPC },
		{ "fs.mqueue.msg_max", "fs/mqueue/msg_max", SYSCTL_IPC },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct arena a = { 0 };
		const struct oci_pair pair = { rows[i].name, "1" };
		const struct oci_config config = with_sysctl(&pair);
		struct oci_tree tree = plan(&config, &a);
		assert_int_equal(tree.nsysctls, 1);
		assert_string_equal(tree.sysctls[0].name, rows[i].name);
		assert_string_equal(tree.sysctls[0].path, rows[i].path);
		assert_int_equal(tree.sysctls[0].space, rows[i].space);
		arena_fini(&a);
	}
}

static void sysctls_of_the_host_are_refused(void **state)
{
	(void)state;
	static const char *const names[] = {
		"kernel.core_pattern",
		"kernel.msgmaxx",
		"kernel.sysrq",
		"vm.overcommit_memory",
		"fs.file-max",
		"net",
		"net.",
		"net..ipv4",
		"net/../kernel/core_pattern",
		"net./.kernel.core_pattern",
		"net.ipv4.//.x",
		"/net/ipv4/ip_forward",
		"",
		"user",
	};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct oci_pair pair = { names[i], "1" };
		const struct oci_config config = with_sysctl(&pair);
		refuse(&config, "belongs to no namespace: it would change the host");
	}
	static const struct oci_pair absent[] = { { "kernel.hostname", "x" },
						  { "user.max_ipc_namespaces", "1" } };
	struct oci_config config = with_sysctl(&absent[0]);
	refuse(&config, "sysctl 'kernel.hostname' needs a uts namespace of the container's own");
	config = with_sysctl(&absent[1]);
	refuse(&config, "needs a user namespace");
}

static void paths_lose_what_is_not_a_name(void **state)
{
	(void)state;
	static const char *const rows[][2] = {
		{ "/", "/" },           { "", "/" },
		{ "a", "/a" },          { "//a//b/", "/a/b" },
		{ "/a/./b", "/a/b" },   { "/a/../b", "/b" },
		{ "/..", "/" },         { "/../../a", "/a" },
		{ "/a/b/../..", "/" },  { "/...", "/..." },
		{ "/a/..b", "/a/..b" },
	};
	struct arena a = { 0 };
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(paths_clean(rows[i][0], &a), rows[i][1]);
	arena_fini(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mounts_keep_their_order_and_paths_are_clean),
		cmocka_unit_test(a_bind_is_one_by_type_or_option),
		cmocka_unit_test(options_of_a_file_system_in_a_bind_are_warnings),
		cmocka_unit_test(a_misspelled_option_of_a_bind_is_refused),
		cmocka_unit_test(only_the_paths_of_an_overlay_may_be_long),
		cmocka_unit_test(a_cgroup_mount_is_version_2_and_read_only_unless_rw),
		cmocka_unit_test(without_a_cgroup_namespace_only_a_privileged_container_may_write),
		cmocka_unit_test(other_file_systems_are_read_only_themselves),
		cmocka_unit_test(a_read_only_bind_of_sys_is_so_as_a_whole),
		cmocka_unit_test(mounts_that_mean_nothing_are_refused),
		cmocka_unit_test(ids_come_from_the_mount_or_the_container),
		cmocka_unit_test(new_file_systems_have_the_label_of_their_mounts),
		cmocka_unit_test(the_default_devices_and_links_follow_the_mounts),
		cmocka_unit_test(listed_devices_replace_the_default_ones),
		cmocka_unit_test(nothing_is_made_in_a_dev_of_the_host),
		cmocka_unit_test(masks_propagation_and_read_only_root_are_taken_over),
		cmocka_unit_test(without_a_mount_namespace_nothing_is_planned),
		cmocka_unit_test(sysctls_are_those_of_the_container_s_namespaces),
		cmocka_unit_test(sysctls_of_the_host_are_refused),
		cmocka_unit_test(paths_lose_what_is_not_a_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
