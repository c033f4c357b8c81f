/* SPDX-License-Identifier: Apache-2.0 */
/* What mountinfo, /proc/self/cgroup and cgroup files may say, friendly or not. */
#include "runtime/kernel/cgroup/cgroup_text.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define PURE_V2                                                                                    \
	"24 1 8:1 / / rw - ext4 /dev/sda1 rw\n"                                                    \
	"31 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
#define HYBRID                                                                                     \
	"31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"                               \
	"35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"                        \
	"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"

static struct cgroup_mount mount_of(const char *mountinfo)
{
	struct cgroup_mount mount;
	cgroup_text_mount(mountinfo, &mount);
	return mount;
}

static void the_unified_mount_is_found(void **state)
{
	(void)state;
	assert_string_equal(mount_of(PURE_V2).point, "/sys/fs/cgroup");
	assert_string_equal(mount_of(PURE_V2).root, "/");
	assert_string_equal(mount_of(HYBRID).point, "/sys/fs/cgroup/unified");
	assert_string_equal(mount_of("").point, "");
	assert_string_equal(mount_of("35 31 0:32 / /a rw - cgroup cgroup rw,memory\n").point, "");
}

static void the_usual_place_wins_over_others(void **state)
{
	(void)state;
	struct cgroup_mount mount = mount_of("1 2 0:1 /x /mnt/a rw - cgroup2 c rw\n" PURE_V2
					     "1 2 0:1 /y /mnt/b rw - cgroup2 c rw\n");
	assert_string_equal(mount.point, "/sys/fs/cgroup");
	mount =
	    mount_of("1 2 0:1 /x /mnt/a rw - cgroup2 c rw\n1 2 0:1 /y /mnt/b rw - cgroup2 c rw\n");
	assert_string_equal(mount.point, "/mnt/a");
	assert_string_equal(mount.root, "/x");
}

static void a_path_with_blanks_is_unescaped(void **state)
{
	(void)state;
	struct cgroup_mount mount =
	    mount_of("1 2 0:1 /a\\040b /mnt/c\\011d\\134 rw - cgroup2 c rw\n");
	assert_string_equal(mount.root, "/a b");
	assert_string_equal(mount.point, "/mnt/c\td\\");
}

static void a_mount_point_cannot_pretend_to_be_another_field(void **state)
{
	(void)state;
	/* A directory called " - cgroup2 " is written with escapes, and a tag is one word. */
	assert_string_equal(mount_of("1 2 0:1 / /x\\040-\\040cgroup2\\040y rw - ext4 d rw\n").point,
			    "");
	assert_string_equal(mount_of("1 2 0:1 / /x rw cgroup2 - ext4 cgroup2 rw\n").point, "");
}

static void malformed_lines_are_skipped(void **state)
{
	(void)state;
	assert_string_equal(mount_of("\n\n -\ngarbage\n1 2 3 - cgroup2\n" PURE_V2).point,
			    "/sys/fs/cgroup");
	assert_string_equal(mount_of("1 2 0:1 / /a\\000b rw - cgroup2 c rw").point, "");
	assert_string_equal(mount_of("1 2 0:1 / /a rw - cgroup2").point, "/a");
}

static void a_path_that_does_not_fit_is_no_mount(void **state)
{
	(void)state;
	char line[CGROUP_PATH_MAX * 2] = "1 2 0:1 / /";
	size_t used = strlen(line);
	memset(line + used, 'x', CGROUP_PATH_MAX);
	memcpy(line + used + CGROUP_PATH_MAX, " rw - cgroup2 c rw\n", 20);
	assert_string_equal(mount_of(line).point, "");
}

static void our_cgroup_and_the_v1_controllers_are_read(void **state)
{
	(void)state;
	struct cgroup_self self;
	cgroup_text_self("9:name=systemd:/\n8:pids:/\n4:memory:/a/b\n2:cpuacct:/\n"
			 "0::/user.slice/s.scope\n",
			 &self);
	assert_string_equal(self.path, "/user.slice/s.scope");
	assert_true(self.on_v1[CGROUP_MEMORY]);
	assert_true(self.on_v1[CGROUP_PIDS]);
	assert_false(self.on_v1[CGROUP_CPU]);

	cgroup_text_self("3:cpu,cpuacct:/x\n0::/with:colon\n", &self);
	assert_true(self.on_v1[CGROUP_CPU]);
	assert_false(self.on_v1[CGROUP_MEMORY]);
	assert_string_equal(self.path, "/with:colon");
}

static void a_host_without_the_unified_hierarchy_has_no_path(void **state)
{
	(void)state;
	struct cgroup_self self;
	cgroup_text_self("", &self);
	assert_string_equal(self.path, "");
	cgroup_text_self("1:memory:/a\nno colons\n0:odd:/b\n:\n::\n", &self);
	assert_string_equal(self.path, "");
}

static bool locate(const char *root, const char *path, char out[static CGROUP_PATH_MAX])
{
	struct cgroup_mount mount = { .point = "/sys/fs/cgroup" };
	memcpy(mount.root, root, strlen(root) + 1);
	return cgroup_text_locate(&mount, path, out);
}

static void our_cgroup_is_located_below_the_mount(void **state)
{
	(void)state;
	char out[CGROUP_PATH_MAX];
	assert_true(locate("/", "/", out));
	assert_string_equal(out, "/sys/fs/cgroup");
	assert_true(locate("/", "/a/b", out));
	assert_string_equal(out, "/sys/fs/cgroup/a/b");
	assert_true(locate("/a", "/a/b", out));
	assert_string_equal(out, "/sys/fs/cgroup/b");
	assert_true(locate("/a", "/a", out));
	assert_string_equal(out, "/sys/fs/cgroup");
}

static void a_cgroup_outside_the_mount_is_not_located(void **state)
{
	(void)state;
	char out[CGROUP_PATH_MAX];
	assert_false(locate("/", "/../x", out));
	assert_false(locate("/", "/..", out));
	assert_false(locate("/a", "/ab", out));
	assert_false(locate("/a", "/b", out));
	assert_false(locate("/", "/gone (deleted)", out));
	assert_false(locate("/", "", out));
	assert_false(cgroup_text_locate(&(struct cgroup_mount){ 0 }, "/a", out));
	assert_true(locate("/", "/..a/b..", out));
}

static void a_key_is_found_only_at_the_beginning_of_a_line(void **state)
{
	(void)state;
	const char *text = "low 0\nhigh 1\nmax 22\noom 3\noom_kill 4\noom_group_kill 5\n";
	uint64_t value = 99;
	assert_true(cgroup_text_value(text, "max", &value));
	assert_int_equal(value, 22);
	assert_true(cgroup_text_value(text, "oom_kill", &value));
	assert_int_equal(value, 4);
	assert_false(cgroup_text_value(text, "kill", &value));
	assert_false(cgroup_text_value(text, "oom_", &value));
	assert_false(cgroup_text_value("max\n", "max", &value));
	assert_false(cgroup_text_value("max 1x\n", "max", &value));
	assert_false(cgroup_text_value("max 99999999999999999999999999\n", "max", &value));
	assert_false(cgroup_text_value("", "max", &value));
	assert_int_equal(value, 4);
	assert_true(cgroup_text_value("oom 2\noom_kill 3", "oom_kill", &value));
	assert_int_equal(value, 3);
}

static void a_number_is_whole_or_refused(void **state)
{
	(void)state;
	uint64_t value = 7;
	assert_true(cgroup_text_number("18446744073709551615\n", &value));
	assert_true(value == UINT64_MAX);
	assert_false(cgroup_text_number("18446744073709551616\n", &value));
	assert_false(cgroup_text_number("max\n", &value));
	assert_false(cgroup_text_number("1 2\n", &value));
	assert_false(cgroup_text_number("", &value));
}

static void a_word_is_not_its_prefix(void **state)
{
	(void)state;
	assert_true(cgroup_text_has_word("cpuset cpu io memory pids\n", "cpu"));
	assert_true(cgroup_text_has_word("cpuset memory pids\n", "pids"));
	assert_false(cgroup_text_has_word("cpuset io\n", "cpu"));
	assert_false(cgroup_text_has_word("\n", "cpu"));
	assert_false(cgroup_text_has_word("", "cpu"));
}

static void only_whole_lines_are_pids(void **state)
{
	(void)state;
	pid_t pids[4];
	assert_int_equal(cgroup_text_pids("12\n0\nx\n99999999999\n345\n67", pids, 4), 3);
	assert_int_equal(pids[0], 12);
	assert_int_equal(pids[1], 0);
	assert_int_equal(pids[2], 345);
	assert_int_equal(cgroup_text_pids("1\n2\n3\n4\n5\n", pids, 4), 4);
	assert_int_equal(cgroup_text_pids("", pids, 4), 0);
}

static void a_leaf_is_recognised_by_its_name(void **state)
{
	(void)state;
	assert_string_equal(cgroup_text_leaf_id("/sys/fs/cgroup/cejail/cejail-01JX"), "01JX");
	assert_string_equal(cgroup_text_leaf_id("cejail-a_b-c"), "a_b-c");
	static const char *const others[] = { "",
					      "/",
					      "/cejail",
					      "/cejail-",
					      "/cejail-a/",
					      "/xcejail-a",
					      "/cejail-a.b",
					      "/cejail-supervisor",
					      "cejail-x23456789012345678901234567890123" };
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_null(cgroup_text_leaf_id(others[i]));
}

static void only_the_supervisors_leaf_is_left(void **state)
{
	(void)state;
	static const char *const rows[][2] = {
		{ "/a/x.scope/cejail-supervisor", "/a/x.scope" },
		{ "/cejail-supervisor", "" },
		{ "/a/cejail-supervisor/b", "/a/cejail-supervisor/b" },
		{ "/a/cejail-supervisors", "/a/cejail-supervisors" },
		{ "", "" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char path[64];
		memcpy(path, rows[i][0], strlen(rows[i][0]) + 1);
		cgroup_text_leave_supervisor(path);
		assert_string_equal(path, rows[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_unified_mount_is_found),
		cmocka_unit_test(the_usual_place_wins_over_others),
		cmocka_unit_test(a_path_with_blanks_is_unescaped),
		cmocka_unit_test(a_mount_point_cannot_pretend_to_be_another_field),
		cmocka_unit_test(malformed_lines_are_skipped),
		cmocka_unit_test(a_path_that_does_not_fit_is_no_mount),
		cmocka_unit_test(our_cgroup_and_the_v1_controllers_are_read),
		cmocka_unit_test(a_host_without_the_unified_hierarchy_has_no_path),
		cmocka_unit_test(our_cgroup_is_located_below_the_mount),
		cmocka_unit_test(a_cgroup_outside_the_mount_is_not_located),
		cmocka_unit_test(a_key_is_found_only_at_the_beginning_of_a_line),
		cmocka_unit_test(a_number_is_whole_or_refused),
		cmocka_unit_test(a_word_is_not_its_prefix),
		cmocka_unit_test(only_whole_lines_are_pids),
		cmocka_unit_test(a_leaf_is_recognised_by_its_name),
		cmocka_unit_test(only_the_supervisors_leaf_is_left),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
