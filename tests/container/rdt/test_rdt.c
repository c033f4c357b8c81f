/* SPDX-License-Identifier: Apache-2.0 */
/* rdt: classes in a directory that stands for the resctrl file system. */
/* WRAP: mkdirat unlinkat */
#include "runtime/container/rdt/rdt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "tests/temp_dir.h"

int __real_mkdirat(int dir_fd, const char *path, mode_t mode);
int __real_unlinkat(int dir_fd, const char *path, int flags);
int __wrap_mkdirat(int dir_fd, const char *path, mode_t mode);
int __wrap_unlinkat(int dir_fd, const char *path, int flags);

static struct cj_error err;

static void put(const char *dir, const char *name, const char *text)
{
	char path[128];
	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	int fd = openat(temp_dir_fd, path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	(void)close(fd);
}

static const char *get(const char *path)
{
	static char text[512];
	int fd = openat(temp_dir_fd, path, O_RDONLY | O_CLOEXEC);
	ssize_t size = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	text[size > 0 ? size : 0] = '\0';
	return text;
}

/* The kernel fills a new class and a new group. */
int __wrap_mkdirat(int dir_fd, const char *path, mode_t mode)
{
	char below[128];
	int rc = __real_mkdirat(dir_fd, path, mode);
	if (rc < 0)
		return rc;
	put(path, "tasks", "");
	if (strchr(path, '/'))
		return 0;
	put(path, "schemata", "    MB:0=100;1=100\n    L3:0=fff;1=fff\n");
	(void)snprintf(below, sizeof(below), "%s/mon_groups", path);
	return __real_mkdirat(dir_fd, below, mode);
}

/* And it removes them whole. */
int __wrap_unlinkat(int dir_fd, const char *path, int flags)
{
	static const char *const files[] = { "tasks", "schemata" };
	char below[128];
	for (size_t i = 0; i < 2; i++) {
		(void)snprintf(below, sizeof(below), "%s/%s", path, files[i]);
		(void)__real_unlinkat(dir_fd, below, 0);
	}
	(void)snprintf(below, sizeof(below), "%s/mon_groups", path);
	(void)__real_unlinkat(dir_fd, below, AT_REMOVEDIR);
	return __real_unlinkat(dir_fd, path, flags);
}

static int make(const struct oci_rdt *config, struct rdt_record *r)
{
	err = (struct cj_error){ 0 };
	*r = (struct rdt_record){ 0 };
	int rc = rdt_plan(temp_dir_fd, config, "box", r, &err);
	return rc < 0 ? rc : rdt_make(temp_dir_fd, config, r, &err);
}

static bool is_there(const char *path)
{
	struct stat st;
	return fstatat(temp_dir_fd, path, &st, 0) == 0;
}

static void remove_all(const struct rdt_record *r)
{
	assert_int_equal(rdt_remove(temp_dir_fd, r, &err), 0);
	assert_int_equal(rdt_remove(temp_dir_fd, r, &err), 0); /* a second delete */
}

static void a_class_of_its_own_has_its_schemata_and_tasks_and_goes_again(void **state)
{
	static const char *const lines[] = { "L2:0=f", "MB:1=20" };
	const struct oci_rdt config = { .l3_schema = "L3:0=7f0;1=1f\nMB:0=50",
					.memory_schema = "MB:0=20;1=70",
					.schemata = { (const char **)lines, 2 },
					.has_monitoring = true };
	struct rdt_record r;
	(void)state;
	assert_int_equal(make(&config, &r), 0);
	assert_string_equal(get("box/schemata"), "L3:0=7f0;1=1f\nMB:0=20;1=70\nL2:0=f\nMB:1=20\n");
	assert_int_equal(rdt_join(temp_dir_fd, &r, 77, &err), 0);
	assert_string_equal(get("box/tasks"), "77");
	assert_string_equal(get("box/mon_groups/box/tasks"), "77");
	struct rdt_record again;
	assert_int_equal(make(&config, &again), -EEXIST);
	remove_all(&r);
	assert_false(is_there("box"));
}

static void a_named_class_is_made_or_must_be_as_asked_for(void **state)
{
	const struct oci_rdt config = { .clos_id = "gold", .memory_schema = "MB:0=100;1=100" };
	const struct oci_rdt other = { .clos_id = "gold", .l3_schema = "L3:0=1" };
	const struct oci_rdt joined = { .clos_id = "gold" };
	struct rdt_record r, second;
	(void)state;
	assert_int_equal(make(&joined, &r), -ENOENT);
	assert_int_equal(make(&config, &r), 0);
	assert_true(r.is_made);

	put("gold", "schemata", "    MB:0=100;1=100\n    L3:0=fff;1=fff\n");
	assert_int_equal(make(&config, &second), 0);
	assert_false(second.is_made);
	assert_int_equal(make(&joined, &second), 0);
	assert_int_equal(make(&other, &second), -EINVAL);
	assert_non_null(strstr(err.msg, "the class 'gold' exists, without 'L3:0=1'"));
	remove_all(&second);
	assert_true(is_there("gold"));
	remove_all(&r);
	assert_false(is_there("gold"));
}

static void a_class_that_another_container_made_or_joined_stays(void **state)
{
	const struct oci_rdt config = { .clos_id = "gold", .memory_schema = "MB:0=100;1=100" };
	struct rdt_record first = { 0 }, second = { 0 };
	(void)state;
	assert_int_equal(rdt_plan(temp_dir_fd, &config, "one", &first, &err), 0);
	assert_int_equal(rdt_plan(temp_dir_fd, &config, "two", &second, &err), 0);
	assert_int_equal(rdt_make(temp_dir_fd, &config, &first, &err), 0);
	assert_int_equal(rdt_make(temp_dir_fd, &config, &second, &err), 0);
	assert_true(first.is_made);
	assert_false(second.is_made);
	remove_all(&second);
	assert_true(is_there("gold"));
	put("gold", "tasks", "77\n");
	remove_all(&first);
	assert_true(is_there("gold"));
	put("gold", "tasks", "");
	remove_all(&first);
	assert_false(is_there("gold"));
}

static void schemata_that_do_not_fit_are_refused(void **state)
{
	static char line[10000];
	static const char *lines[] = { line };
	const struct oci_rdt config = { .schemata = { lines, 1 } };
	struct rdt_record r;
	(void)state;
	memset(line, 'x', sizeof(line) - 1);
	assert_int_equal(make(&config, &r), -EINVAL);
	assert_false(is_there("box"));
}

static void a_record_without_a_class_asks_for_nothing(void **state)
{
	const struct rdt_record none = { 0 };
	(void)state;
	assert_int_equal(rdt_join_recorded(&none, 1, &err), 0);
	assert_int_equal(rdt_remove_recorded(&none, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_class_of_its_own_has_its_schemata_and_tasks_and_goes_again),
		cmocka_unit_test(a_named_class_is_made_or_must_be_as_asked_for),
		cmocka_unit_test(a_class_that_another_container_made_or_joined_stays),
		cmocka_unit_test(schemata_that_do_not_fit_are_refused),
		cmocka_unit_test(a_record_without_a_class_asks_for_nothing),
	};
	return cmocka_run_group_tests(tests, temp_dir_make, temp_dir_remove);
}
