/* SPDX-License-Identifier: Apache-2.0 */
/* Root file systems that attack the one who mounts on them: each case is a CVE of a runtime. */
#include "rootfs/tree/tree.h"

#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/syscall.h>

#include "tests/forked.h"
#include "tests/rootfs/tree/inside_tree.h"

/* A root, and beside it what the root must not reach. */
static char root[64], secret[64];

static char *make_root(void)
{
	char *place = make_place();
	(void)snprintf(root, sizeof(root), "%s/r", place);
	(void)snprintf(secret, sizeof(secret), "%s/secret", place);
	make_dir(place, "r");
	make_dir(place, "secret");
	return place;
}

static void in_root(const char *name, const char *target)
{
	assert_int_equal(symlink(target, at(root, name)), 0);
}

static bool is_empty(const char *path)
{
	int count = 0;
	DIR *dir = opendir(path);
	for (struct dirent *e; dir && (e = readdir(dir));)
		count += e->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return dir && count == 0;
}

#define REFUSED(part, ...)                                                                         \
	do {                                                                                       \
		const struct tree_op ops_[] = { __VA_ARGS__ };                                     \
		const struct tree_case case_ = { .spec = { .root = root, OPS(ops_) } };            \
		expect_tree_failure(&case_, "build", part);                                        \
	} while (0)

/* --- CVE-2019-19921, CVE-2023-27561, CVE-2023-28642: /proc and /sys --------------------- */

static void proc_and_sys_must_be_real_directories(void **state)
{
	(void)state;
	char *place = make_root();
	make_dir(root, "vol");
	in_root("proc", "vol");
	in_root("sys", "/vol");
	REFUSED("find '/proc' in the root file system", FS("/proc", "proc", ));
	REFUSED("find '/sys' in the root file system", FS("/sys", "sysfs", ));
	REFUSED("find '/sys/fs/cgroup'", FS("/sys/fs/cgroup", "cgroup2", ));
	unlink(at(root, "proc"));
	make_file(at(root, "proc"), "");
	REFUSED("Not a directory", FS("/proc", "proc", ));
	assert_true(is_empty(at(root, "vol")));
	end_place(place);
}

static void only_procfs_and_sysfs_are_mounted_there(void **state)
{
	(void)state;
	char *place = make_root();
	REFUSED("at '/proc' there may only be a procfs", BIND_AT("/proc", secret, ));
	REFUSED("at '/proc' there may only be a procfs", FS("/proc", "tmpfs", ));
	REFUSED("at '/sys' there may only be a sysfs", FS("/sys", "tmpfs", ));
	REFUSED("at '/sys' there may only be a sysfs", FS("/sys", "proc", ));
	end_place(place);
}

/* CVE-2019-16884: what is mounted over /proc/self/attr decides which label a process gets. */
static void nothing_is_mounted_in_a_procfs(void **state)
{
	(void)state;
	char *place = make_root();
	in_root("data", "/proc/sys/kernel");
	in_root("more", "proc/self");
	REFUSED("'/proc/sys' is in a procfs", FS("/proc", "proc", ), FS("/proc/sys", "tmpfs", ));
	REFUSED("'/proc/1/attr' is in a procfs", FS("/proc", "proc", ),
		BIND_AT("/proc/1/attr", secret, ));
	REFUSED("find '/proc/self/attr'", FS("/proc", "proc", ),
		BIND_AT("/proc/self/attr", secret, ));
	REFUSED("'/data' is in a procfs", FS("/proc", "proc", ), BIND_AT("/data", secret, ));
	REFUSED("'/more/attr' is in a procfs", FS("/proc", "proc", ),
		BIND_AT("/more/attr", secret, ));
	end_place(place);
}

static void look_at_memory_file(void *arg)
{
	(void)arg;
	check(reads_as("/proc/meminfo", "MemTotal: 1 kB\n"));
}

static void a_file_that_informs_may_be_replaced(void **state)
{
	(void)state;
	char *place = make_root();
	char file[80];
	(void)snprintf(file, sizeof(file), "%s/meminfo", secret);
	make_file(file, "MemTotal: 1 kB\n");
	const struct tree_op ops[] = { FS("/proc", "proc", ), BIND_AT("/proc/meminfo", file, ) };
	const struct tree_case c = { .spec = { .root = root, OPS(ops) },
				     .body = look_at_memory_file };
	run_tree(&c);
	end_place(place);
}

static void no_link_leads_a_mount_into_a_sysfs(void **state)
{
	(void)state;
	char *place = make_root();
	in_root("data", "/sys/kernel");
	REFUSED("a link leads '/data' into a sysfs", FS("/sys", "sysfs", ),
		BIND_AT("/data", secret, ));
	end_place(place);
}

/* --- CVE-2025-31133: /dev/null ----------------------------------------------------------- */

static void look_at_mask(void *arg)
{
	(void)arg;
	check(is_device_node("/masked", 1, 3));
	check(reads_as("/target", "target"));
}

static void masks_do_not_come_from_the_image(void **state)
{
	(void)state;
	char *place = make_root();
	make_dir(root, "dev");
	in_root("dev/null", "/target");
	make_file(at(root, "target"), "target");
	make_file(at(root, "masked"), "secret");
	static const char *masked[] = { "/masked" };
	const struct tree_case c = { .spec = { .root = root, .masked = { masked, 1 } },
				     .body = look_at_mask };
	run_tree(&c);
	unlink(at(root, "dev/null"));
	make_file(at(root, "dev/null"), "not masked");
	run_tree(&c);
	end_place(place);
}

/* --- CVE-2026-41579 and three more: nodes and /dev through links -------------------------- */

#define NULL_DEVICE(where, user)                                                                   \
	{                                                                                          \
		.kind = TREE_DEVICE, .path = (where), .device = {                                  \
			.type = S_IFCHR,                                                           \
			.mode = 0666,                                                              \
			.major_number = 1,                                                         \
			.minor_number = 3,                                                         \
			.uid = (user)                                                              \
		}                                                                                  \
	}
#define LINK_AT(where, target)                                                                     \
	{                                                                                          \
		.kind = TREE_LINK, .path = (where), .source = (target)                             \
	}

static void no_node_is_made_through_a_link(void **state)
{
	(void)state;
	char *place = make_root();
	struct stat st;
	make_dir(root, "vol");
	in_root("dev", "vol");
	REFUSED("find '/dev' in the root", FS("/dev", "tmpfs", ));
	REFUSED("find '/dev/null' in the root", NULL_DEVICE("/dev/null", 0));
	REFUSED("find '/dev/fd' in the root", LINK_AT("/dev/fd", "/proc/self/fd"));
	REFUSED("find '/dev/shm' in the root", FS("/dev/shm", "tmpfs", ));
	assert_true(is_empty(at(root, "vol")));

	unlink(at(root, "dev"));
	make_dir(root, "dev");
	make_file(at(root, "victim"), "");
	in_root("dev/null", "/victim");
	REFUSED("'/dev/null' exists and is not the device 1:3", NULL_DEVICE("/dev/null", 1000));
	REFUSED("'/dev/null' exists and is not a link", LINK_AT("/dev/null", "/proc/self/fd"));
	assert_int_equal(stat(at(root, "victim"), &st), 0);
	assert_int_equal(st.st_uid, geteuid());
	end_place(place);
}

/* --- CVE-2021-30465: exchanges while mounts are made --------------------------------------- */

struct exchange {
	const char *one, *other; /* in the root */
};

static pid_t exchange_for_ever(void *arg)
{
	struct exchange *x = arg;
	char one[PATH_MAX], other[PATH_MAX];
	(void)snprintf(one, sizeof(one), "%s/%s", root, x->one);
	(void)snprintf(other, sizeof(other), "%s/%s", root, x->other);
	pid_t pid = test_fork();
	if (pid != 0)
		return pid;
	for (;;)
		(void)syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE);
}

static void look_at_exchanged(void *arg)
{
	(void)arg;
	/* Masked and read-only, whatever has which name now. */
	for (int i = 0; i < 2; i++) {
		const char *file = i == 0 ? "/proc/kcore" : "/evil/kcore";
		const char *setting = i == 0 ? "/proc/sys/kernel/threads-max"
					     : "/evil/sys/kernel/threads-max";
		check(!exists(file) || is_device_node(file, 1, 3));
		int fd = open(setting, O_WRONLY | O_CLOEXEC);
		check(fd < 0);
	}
}

#define ROUNDS 40

static void an_exchange_never_leads_a_mount_outside(void **state)
{
	(void)state;
	char *place = make_root();
	int built = 0;
	make_dir(root, "data");
	in_root("evil", secret);
	static const struct tree_op ops[] = {
		FS("/data", "tmpfs", ),
		FS("/data/a/b", "tmpfs", ),
		{ .kind = TREE_FILE, .path = "/data/file" },
	};
	struct exchange x = { "data", "evil" };
	const struct tree_case c = { .spec = { .root = root, OPS(ops) },
				     .attack = exchange_for_ever,
				     .arg = &x };
	for (int i = 0; i < ROUNDS; i++) {
		try_tree(&c, !has_ids() || i % 2);
		built += inside_result->end == ENDED_FINE;
		if (inside_result->end != ENDED_FINE)
			assert_int_equal(inside_result->end, ENDED_STAGE);
	}
	print_message("%d of %d trees were built\n", built, ROUNDS);
	assert_true(is_empty(secret));
	end_place(place);
}

static void an_exchange_of_proc_never_leaves_it_without_masks(void **state)
{
	(void)state;
	char *place = make_root();
	int built = 0;
	make_dir(root, "proc");
	make_dir(root, "evil");
	static const struct tree_op ops[] = { FS("/proc", "proc", ) };
	static const char *masked[] = { "/proc/kcore" };
	static const char *read_only[] = { "/proc/sys" };
	struct exchange x = { "proc", "evil" };
	const struct tree_case c = { .spec = { .root = root,
					       OPS(ops),
					       .masked = { masked, 1 },
					       .read_only = { read_only, 1 } },
				     .attack = exchange_for_ever,
				     .body = look_at_exchanged,
				     .arg = &x };
	for (int i = 0; i < ROUNDS; i++) {
		try_tree(&c, !has_ids() || i % 2);
		built += inside_result->end == ENDED_FINE;
		if (inside_result->end == ENDED_CHECK)
			print_error("line %d: %s\n", inside_result->line, inside_result->check);
		assert_int_not_equal(inside_result->end, ENDED_CHECK);
	}
	assert_true(built > 0);
	end_place(place);
}

/* --- between two steps ------------------------------------------------------------------------ */

/* Another container with the same root renames /proc, which it does not see as a mount. */
static pid_t rename_proc(void *arg)
{
	int *go = arg;
	char from[80], to[80];
	(void)snprintf(from, sizeof(from), "%s/proc", root);
	(void)snprintf(to, sizeof(to), "%s/evil", root);
	pid_t pid = test_fork();
	if (pid != 0)
		return pid;
	while (!__atomic_load_n(go, __ATOMIC_ACQUIRE))
		(void)usleep(100);
	check(rename(from, to) == 0 && mkdir(from, 0755) == 0);
	__atomic_store_n(go, 0, __ATOMIC_RELEASE);
	_exit(0);
}

static void wait_for_rename(void *arg)
{
	int *go = arg;
	__atomic_store_n(go, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(go, __ATOMIC_ACQUIRE))
		(void)usleep(100);
}

static void look_at_renamed(void *arg)
{
	(void)arg;
	check(has_magic("/evil", PROC_SUPER_MAGIC));
	check(!exists("/evil/kcore") || is_device_node("/evil/kcore", 1, 3));
	check(is_device_node("/evil/version", 1, 3));
	check(open("/evil/sys/kernel/threads-max", O_WRONLY | O_CLOEXEC) < 0);
}

static void a_renamed_proc_is_masked_all_the_same(void **state)
{
	(void)state;
	static const struct tree_op ops[] = { FS("/proc", "proc", ) };
	static const char *masked[] = { "/proc/kcore", "/proc/version" };
	static const char *read_only[] = { "/proc/sys" };
	int *go =
	    mmap(NULL, sizeof(*go), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(go, MAP_FAILED);
	for (int has_user_ns = !has_ids(); has_user_ns <= 1; has_user_ns++) {
		char *place = make_root();
		*go = 0;
		const struct tree_case c = { .spec = { .root = root,
						       OPS(ops),
						       .masked = { masked, 2 },
						       .read_only = { read_only, 1 } },
					     .attack = rename_proc,
					     .hook = wait_for_rename,
					     .body = look_at_renamed,
					     .arg = go };
		run_tree_once(&c, has_user_ns);
		end_place(place);
	}
	munmap(go, sizeof(*go));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(proc_and_sys_must_be_real_directories),
		cmocka_unit_test(only_procfs_and_sysfs_are_mounted_there),
		cmocka_unit_test(nothing_is_mounted_in_a_procfs),
		cmocka_unit_test(a_file_that_informs_may_be_replaced),
		cmocka_unit_test(no_link_leads_a_mount_into_a_sysfs),
		cmocka_unit_test(masks_do_not_come_from_the_image),
		cmocka_unit_test(no_node_is_made_through_a_link),
		cmocka_unit_test(an_exchange_never_leads_a_mount_outside),
		cmocka_unit_test(an_exchange_of_proc_never_leaves_it_without_masks),
		cmocka_unit_test(a_renamed_proc_is_masked_all_the_same),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
