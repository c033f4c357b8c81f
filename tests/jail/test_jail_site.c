/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: fcntl cgroup_parent_reports */
/* What many jails have from one look at the host is what each of them would have found. */
#include "runtime/jail/jail_site.h"

#include <sys/stat.h>

#include "runtime/base/child.h"
#include "runtime/base/scope.h"
#include "runtime/kernel/cgroup/cgroup_parent.h"
#include "tests/jail/whole_jail.h"

static bool has_no_descriptor_left;

int __real_fcntl(int fd, int command, long argument);
int __wrap_fcntl(int fd, int command, long argument);
int __wrap_fcntl(int fd, int command, long argument)
{
	if (command == F_DUPFD_CLOEXEC && has_no_descriptor_left) {
		errno = EMFILE;
		return -1;
	}
	return __real_fcntl(fd, command, argument);
}

static bool has_user_manager;

size_t __real_cgroup_parent_reports(struct cgroup_parent_report *out, size_t max);
size_t __wrap_cgroup_parent_reports(struct cgroup_parent_report *out, size_t max);
size_t __wrap_cgroup_parent_reports(struct cgroup_parent_report *out, size_t max)
{
	if (!has_user_manager)
		return __real_cgroup_parent_reports(out, max);
	out[0] = (struct cgroup_parent_report){ .name = "delegated" };
	out[1] = (struct cgroup_parent_report){ .name = "user manager", .serves = true };
	return 2;
}

/* Skips the test where no directory for leaves serves many jails. */
static struct jail_site found(void)
{
	struct jail_site site;
	jail_site_find(&site, "site");
	if (site.cgroup.parent_fd < 0)
		skip();
	return site;
}

static void a_site_has_the_cgroup_that_each_jail_would_find(void **state)
{
	(void)state;
	struct jail_site site = found();
	struct cj_error err = { 0 };
	struct cgroup own = CGROUP_NULL, of_site = CGROUP_NULL;
	struct stat parent, parent_of_site;
	assert_int_equal(cgroup_find(NULL, "jail", &own, &err), 0);
	for (int turn = 0; turn < 2; turn++) {
		assert_true(jail_site_cgroup(&site, "jail", &of_site));
		assert_string_equal(of_site.path, own.path);
		assert_string_equal(of_site.origin, own.origin);
		assert_string_equal(of_site.why_not, own.why_not);
		assert_memory_equal(of_site.offered, own.offered, sizeof(own.offered));
		assert_int_equal(of_site.dir_fd, -1);
		assert_int_equal(fcntl(of_site.parent_fd, F_GETFD, 0), FD_CLOEXEC);
		assert_int_equal(fstat(own.parent_fd, &parent), 0);
		assert_int_equal(fstat(of_site.parent_fd, &parent_of_site), 0);
		assert_int_equal(parent_of_site.st_ino, parent.st_ino);
		cgroup_close(&of_site);
	}
	cgroup_close(&own);
	jail_site_close(&site);
	assert_int_equal(site.cgroup.parent_fd, -1);
}

static void a_directory_that_is_gone_or_another_one_is_not_used(void **state)
{
	(void)state;
	struct jail_site site = found(), other = site;
	struct cgroup c = CGROUP_NULL;
	other.ino++;
	assert_false(jail_site_cgroup(&other, "jail", &c));
	other = site;
	other.dev++;
	assert_false(jail_site_cgroup(&other, "jail", &c));
	other = site;
	(void)snprintf(other.cgroup.path, sizeof(other.cgroup.path), "/none/at/all");
	assert_false(jail_site_cgroup(&other, "jail", &c));
	assert_int_equal(c.parent_fd, -1);
	jail_site_close(&site);
}

static void a_name_or_path_or_descriptor_that_fails_is_left_to_the_jail(void **state)
{
	(void)state;
	struct jail_site site = found();
	struct cgroup c = CGROUP_NULL;
	assert_false(jail_site_cgroup(&site, "../jail", &c));
	assert_false(jail_site_cgroup(&site, "", &c));
	has_no_descriptor_left = true;
	assert_false(jail_site_cgroup(&site, "jail", &c));
	has_no_descriptor_left = false;
	assert_int_equal(c.parent_fd, -1);
	jail_site_close(&site);
}

static void a_user_manager_makes_a_parent_for_each_jail(void **state)
{
	(void)state;
	struct jail_site site;
	has_user_manager = true;
	jail_site_find(&site, "site");
	has_user_manager = false;
	assert_int_equal(site.cgroup.parent_fd, -1);
}

static void without_a_site_each_jail_finds_all(void **state)
{
	(void)state;
	const struct jail_site none = JAIL_SITE_NULL;
	const struct jail_site known = { .cgroup = CGROUP_NULL, .changed_signals = 5 };
	struct cgroup c = CGROUP_NULL;
	jail_site_find(&(struct jail_site){ 0 }, "no/name"); /* finds nothing, and says nothing */
	assert_false(jail_site_cgroup(NULL, "jail", &c));
	assert_false(jail_site_cgroup(&none, "jail", &c));
	assert_int_equal(jail_site_signals(NULL), child_changed_signals());
	assert_int_equal(jail_site_signals(&none), child_changed_signals());
	assert_int_equal(jail_site_signals(&known), 5);
}

static void jails_of_a_site_run_one_after_the_other(void **state)
{
	(void)state;
	struct jail_site site;
	jail_site_find(&site, "site");
	site.changed_signals = child_changed_signals();
	struct plan plan = simple_plan();
	plan.site = &site;
	const unsigned long held = open_descriptors();
	for (int turn = 0; turn < 2; turn++) {
		struct cj_error err = { 0 };
		struct outcome out;
		outcome_init(&out, "run", 4096);
		if (run(&plan, (const char *const[]){ "/bin/true", NULL }, &out, &err) < 0)
			fail_msg("%s: %s", err.stage, err.msg);
		assert_int_equal(out.status, STATUS_EXITED);
		assert_int_equal(out.exit_code, 0);
		outcome_fini(&out);
		assert_nothing_held(held);
	}
	jail_site_close(&site);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_site_has_the_cgroup_that_each_jail_would_find),
		cmocka_unit_test(a_directory_that_is_gone_or_another_one_is_not_used),
		cmocka_unit_test(a_name_or_path_or_descriptor_that_fails_is_left_to_the_jail),
		cmocka_unit_test(a_user_manager_makes_a_parent_for_each_jail),
		cmocka_unit_test(without_a_site_each_jail_finds_all),
		cmocka_unit_test(jails_of_a_site_run_one_after_the_other),
	};
	return cmocka_run_group_tests_name("jail_site", tests, NULL, NULL);
}
