/* SPDX-License-Identifier: Apache-2.0 */
/* Where a leaf may be made: each way, on hosts of all kinds. */
#include "runtime/kernel/cgroup/cgroup_parent.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include <cmocka.h>

/* WRAP: mkdirat rmdir fstatfs system_file_write */
/* WRAP: getxattr scope_helper_is_there scope_helper_enter system_file_read */
#include "tests/kernel/cgroup/fake_cgroup.h"

static char marked[128]; /* the path that carries the mark of delegation */
static bool has_manager;
static int manager_rc;
static bool was_asked;
static const char *moved_to;

ssize_t __wrap_getxattr(const char *path, const char *name, void *value, size_t size);
ssize_t __wrap_getxattr(const char *path, const char *name, void *value, size_t size)
{
	if (strcmp(path, marked) != 0 || strcmp(name, "user.delegate") != 0 || size < 1) {
		errno = ENODATA;
		return -1;
	}
	memcpy(value, "1", 1);
	return 1;
}

bool __wrap_scope_helper_is_there(bool is_system);
bool __wrap_scope_helper_is_there(bool is_system)
{
	assert_false(is_system);
	return has_manager;
}

int __wrap_scope_helper_enter(const char *id, struct cj_error *err);
int __wrap_scope_helper_enter(const char *id, struct cj_error *err)
{
	(void)id;
	was_asked = true;
	return manager_rc < 0 ? cj_fail(err, -manager_rc, "ask the manager") : 0;
}

/* /proc/self/cgroup once the manager was asked. */
ssize_t __real_system_file_read(int dir_fd, const char *name, char *buf, size_t size);
ssize_t __wrap_system_file_read(int dir_fd, const char *name, char *buf, size_t size);
ssize_t __wrap_system_file_read(int dir_fd, const char *name, char *buf, size_t size)
{
	if (was_asked && strcmp(name, "/proc/self/cgroup") == 0)
		return snprintf(buf, size, "0::%s\n", moved_to);
	return __real_system_file_read(dir_fd, name, buf, size);
}

/* A host whose mount is the fake root and whose own cgroup is `own`. */
static struct cgroup_host host_at(const char *own, uid_t uid)
{
	struct cgroup_host host = { .uid = uid, .at_real_root = true };
	(void)snprintf(host.mount.point, sizeof(host.mount.point), "%s", fake.root);
	(void)snprintf(host.mount.root, sizeof(host.mount.root), "/");
	(void)snprintf(host.self.path, sizeof(host.self.path), "%s", own);
	(void)snprintf(host.own_path, sizeof(host.own_path), "%s%s", fake.root,
		       strcmp(own, "/") == 0 ? "" : own);
	return host;
}

/* A cgroup in the fake tree, with these controllers to give on and these processes. */
static void make(const char *path, const char *controllers, const char *procs)
{
	char whole[256];
	(void)snprintf(whole, sizeof(whole), "%s%s", fake.root, path);
	if (path[0] != '\0' && mkdir(whole, 0755) < 0)
		abort();
	auto_fd int fd = fake_open(whole);
	fake_fill(fd, controllers);
	fake_put(fd, "cgroup.procs", procs);
}

static const char *get(const char *path, const char *name)
{
	char whole[256];
	(void)snprintf(whole, sizeof(whole), "%s%s", fake.root, path);
	auto_fd int fd = fake_open(whole);
	return fake_get(fd, name);
}

static void mark(const char *path)
{
	(void)snprintf(marked, sizeof(marked), "%s%s", fake.root, path);
}

static int begin(void **state)
{
	(void)state;
	fake_begin("cpuset cpu io memory pids\n");
	marked[0] = '\0';
	has_manager = false;
	manager_rc = 0;
	was_asked = false;
	moved_to = "/gone";
	return 0;
}

static int end(void **state)
{
	(void)state;
	fake_end();
	return 0;
}

static struct cgroup_parent find(const struct cgroup_host *host, const char *option)
{
	struct cgroup_parent parent;
	struct cj_error err = { 0 };
	if (cgroup_parent_find(host, option, "T1", &parent, &err) < 0)
		print_error("%s\n", err.msg);
	return parent;
}

static bool offers_all(const struct cgroup_parent *p)
{
	return p->offers[CGROUP_MEMORY] && p->offers[CGROUP_CPU] && p->offers[CGROUP_PIDS];
}

static bool is_at(const struct cgroup_parent *p, const char *path)
{
	char whole[256];
	(void)snprintf(whole, sizeof(whole), "%s%s", fake.root, path);
	return strcmp(p->path, whole) == 0;
}

static void a_delegated_cgroup_is_vacated_and_used(void **state)
{
	(void)state;
	make("/svc", "cpu memory pids\n", "10\n11\n12\n");
	mark("/svc");
	struct cgroup_host host = host_at("/svc", 0);
	auto_cgroup_parent struct cgroup_parent p = find(&host, NULL);
	assert_true(p.dir_fd >= 0);
	assert_string_equal(p.origin, "delegated");
	assert_true(is_at(&p, "/svc"));
	assert_true(offers_all(&p));
	assert_string_equal(p.why_not, "");
	assert_string_equal(get("/svc", "cgroup.procs"), "");
	assert_int_equal(fake.moved, 3);
}

static void what_another_cejail_has_done_is_found_done(void **state)
{
	(void)state;
	make("/svc", "cpu memory pids\n", "10\n");
	mark("/svc");
	struct cgroup_host host = host_at("/svc", 0);
	struct cgroup_parent first = find(&host, NULL);
	cgroup_parent_fini(&first);

	unsigned writes = fake.writes;
	host = host_at("/svc/cejail-supervisor", 0); /* where the first one has put us */
	auto_cgroup_parent struct cgroup_parent p = find(&host, NULL);
	assert_true(is_at(&p, "/svc"));
	assert_true(offers_all(&p));
	assert_int_equal(fake.writes, writes);
	assert_int_equal(fake.moved, 1);
}

static void the_mark_one_above_serves_a_delegate_subgroup(void **state)
{
	(void)state;
	make("/svc", "cpu memory pids\n", "");
	make("/svc/main", "", "10\n");
	mark("/svc");
	struct cgroup_host host = host_at("/svc/main", 0);
	auto_cgroup_parent struct cgroup_parent p = find(&host, NULL);
	assert_true(is_at(&p, "/svc"));
	assert_int_equal(fake.moved, 0);
}

static void nothing_moves_while_no_controller_needs_it(void **state)
{
	(void)state;
	make("/svc", "\n", "10\n");
	mark("/svc");
	struct cgroup_host host = host_at("/svc", 0);
	auto_cgroup_parent struct cgroup_parent p = find(&host, NULL);
	assert_true(p.dir_fd >= 0);
	assert_false(p.offers[CGROUP_MEMORY] || p.offers[CGROUP_CPU] || p.offers[CGROUP_PIDS]);
	assert_non_null(strstr(p.why_not, "memory"));
	assert_int_equal(fake.moved, 0);
}

static void a_missing_controller_is_named_and_the_others_serve(void **state)
{
	(void)state;
	make("/svc", "memory pids\n", "10\n");
	mark("/svc");
	struct cgroup_host host = host_at("/svc", 0);
	auto_cgroup_parent struct cgroup_parent p = find(&host, NULL);
	assert_true(p.offers[CGROUP_MEMORY] && p.offers[CGROUP_PIDS]);
	assert_false(p.offers[CGROUP_CPU]);
	assert_non_null(strstr(p.why_not, "no cpu controller"));
}

static void processes_of_another_pid_namespace_stop_the_move(void **state)
{
	(void)state;
	make("/svc", "memory\n", "0\n10\n");
	mark("/svc");
	struct cgroup_host host = host_at("/svc", 0);
	fake.refuse = "cejail"; /* nor may root make its own */
	fake.refuse_errno = EROFS;
	auto_cgroup_parent struct cgroup_parent p = find(&host, NULL);
	assert_int_equal(p.dir_fd, -1);
	struct cj_error err = { 0 };
	assert_int_equal(cgroup_parent_find(&host, "/svc", "T1", &p, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "pid namespace"));
	assert_int_equal(fake.moved, 0);
}

static void a_cgroup_that_keeps_filling_is_given_up(void **state)
{
	(void)state;
	make("/svc", "memory\n", "10\n");
	fake.respawn = "77";
	struct cgroup_host host = host_at("/other", 0);
	struct cgroup_parent p;
	struct cj_error err = { 0 };
	assert_int_equal(cgroup_parent_find(&host, "/svc", "T1", &p, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "keep appearing"));
	assert_non_null(strstr(err.msg, "'/svc'"));
}

static void an_option_is_a_mounted_path_or_a_cgroup(void **state)
{
	(void)state;
	char mounted[256];
	make("/mine", "cpu memory pids\n", "");
	struct cgroup_host host = host_at("/", 1000);
	(void)snprintf(mounted, sizeof(mounted), "%s/mine", fake.root);
	const char *const spellings[] = { "/mine", mounted };
	for (size_t i = 0; i < 2; i++) {
		auto_cgroup_parent struct cgroup_parent p = find(&host, spellings[i]);
		assert_string_equal(p.origin, "option");
		assert_true(is_at(&p, "/mine"));
		assert_true(offers_all(&p));
	}
}

static void an_option_that_cannot_serve_is_an_error_that_names_it(void **state)
{
	(void)state;
	struct cgroup_host host = host_at("/", 0);
	static const char *const bad[] = { "/not-there", "relative", "" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct cgroup_parent p;
		struct cj_error err = { 0 };
		assert_int_equal(cgroup_parent_find(&host, bad[i], "T1", &p, &err), -EINVAL);
		assert_int_equal(p.dir_fd, -1);
		assert_non_null(strstr(err.msg, bad[i]));
	}
	host.mount.point[0] = '\0';
	struct cgroup_parent p;
	struct cj_error err = { 0 };
	assert_int_equal(cgroup_parent_find(&host, "/x", "T1", &p, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "no cgroup v2"));
}

static void an_option_outside_cgroupfs_is_refused(void **state)
{
	(void)state;
	struct cgroup_host host = host_at("/", 0);
	struct cgroup_parent p;
	struct cj_error err = { 0 };
	char root[64];
	memcpy(root, fake.root, sizeof(root));
	fake.root[0] = '\0'; /* fstatfs(2) answers for the real host now */
	int rc = cgroup_parent_find(&host, "/", "T1", &p, &err);
	memcpy(fake.root, root, sizeof(root));
	assert_int_equal(rc, -EINVAL);
	assert_non_null(strstr(err.msg, "not in a cgroup v2"));
}

static void root_makes_a_subtree_of_its_own(void **state)
{
	(void)state;
	make("/session", "", "10\n");
	struct cgroup_host host = host_at("/session", 0);
	auto_cgroup_parent struct cgroup_parent p = find(&host, NULL);
	assert_string_equal(p.origin, "own");
	assert_true(is_at(&p, "/cejail"));
	assert_true(offers_all(&p));
	assert_non_null(strstr(get("", "cgroup.subtree_control"), "memory"));
	assert_int_equal(fake.moved, 0);
}

static void a_subtree_at_the_root_never_escapes_a_limit(void **state)
{
	(void)state;
	static const char *const limits[][2] = { { "memory.max", "1048576\n" },
						 { "cpu.max", "50000 100000\n" } };
	make("/svc", "cpu memory pids\n", "");
	make("/svc/sub", "cpu memory pids\n", "10\n");
	for (size_t i = 0; i < 2; i++) {
		char svc[128];
		(void)snprintf(svc, sizeof(svc), "%s/svc", fake.root);
		auto_fd int fd = fake_open(svc);
		fake_put(fd, limits[i][0], limits[i][1]);
		struct cgroup_host host = host_at("/svc/sub", 0);
		auto_cgroup_parent struct cgroup_parent p = find(&host, NULL);
		assert_int_equal(p.dir_fd, -1);
		assert_non_null(strstr(p.why_not, "/svc'"));
		assert_non_null(strstr(p.why_not, "Delegate=yes"));
		fake_put(fd, limits[i][0], "max\n");
	}
}

static void a_mount_of_another_cgroup_namespace_is_not_used(void **state)
{
	(void)state;
	struct cgroup_host host = host_at("/", 0);
	(void)snprintf(host.mount.root, sizeof(host.mount.root), "/../..");
	assert_false(cgroup_text_locate(&host.mount, host.self.path, host.own_path));
	host.own_path[0] = '\0';
	auto_cgroup_parent struct cgroup_parent p = find(&host, NULL);
	assert_int_equal(p.dir_fd, -1);
	assert_non_null(strstr(p.why_not, "can't be seen"));
}

static void a_container_root_is_vacated_and_used(void **state)
{
	(void)state;
	make("", "cpu memory pids\n", "1\n9\n");
	auto_fd int fd = fake_open(fake.root);
	fake_put(fd, "is-container", "");
	struct cgroup_host host = host_at("/", 0);
	host.at_real_root = false;
	auto_cgroup_parent struct cgroup_parent p = find(&host, NULL);
	assert_string_equal(p.origin, "container");
	assert_true(is_at(&p, ""));
	assert_true(offers_all(&p));
	assert_int_equal(fake.moved, 2);
	assert_int_equal(unlinkat(fd, "is-container", 0), 0);
}

static void an_ordinary_user_without_delegation_gets_no_parent_but_a_reason(void **state)
{
	(void)state;
	/* Not there is not writable, for root too, as whom this may run. */
	struct cgroup_host host = host_at("/not-there", 1000);
	auto_cgroup_parent struct cgroup_parent p = find(&host, NULL);
	assert_int_equal(p.dir_fd, -1);
	assert_non_null(strstr(p.why_not, "systemd-run --user --scope -p Delegate=yes"));

	struct cgroup_host service = host_at("/system.slice/judge.service", 1000);
	auto_cgroup_parent struct cgroup_parent q = find(&service, NULL);
	assert_int_equal(q.dir_fd, -1);
	assert_non_null(strstr(q.why_not, "Delegate=yes in the unit"));
	assert_null(strstr(q.why_not, "--user"));
}

static void a_cgroup_the_user_may_write_serves_unless_a_manager_owns_it(void **state)
{
	(void)state;
	make("/mine", "cpu memory pids\n", "10\n");
	struct cgroup_host host = host_at("/mine", 1000);
	auto_cgroup_parent struct cgroup_parent p = find(&host, NULL);
	assert_string_equal(p.origin, "delegated");

	make("/user@1000.service", "cpu memory pids\n", "");
	make("/user@1000.service/term.scope", "cpu memory pids\n", "20\n");
	host = host_at("/user@1000.service/term.scope", 1000);
	mark("/user@1000.service"); /* delegated, but to the manager */
	auto_cgroup_parent struct cgroup_parent none = find(&host, NULL);
	assert_int_equal(none.dir_fd, -1);
	assert_string_equal(get("/user@1000.service/term.scope", "cgroup.procs"), "20\n");
}

/* A user in no cgroup of ours, and a manager that moves who asks to a scope. */
static struct cgroup_host host_with_manager(void)
{
	has_manager = true;
	moved_to = "/user@1000.service/cejail-T1.scope";
	make("/user@1000.service", "cpu memory pids\n", "");
	make(moved_to, "cpu memory pids\n", "10\n");
	return host_at("/not-there", 1000);
}

/* In the first one's scope no manager is asked again. */
static void assert_children_find_the_scope(void)
{
	was_asked = false;
	struct cgroup_host host =
	    host_at("/user@1000.service/cejail-T1.scope/cejail-supervisor", 1000);
	auto_cgroup_parent struct cgroup_parent again = find(&host, NULL);
	assert_string_equal(again.origin, "delegated");
	assert_true(is_at(&again, moved_to));
	cgroup_parent_claim(&host, "T2");
	assert_false(was_asked);
}

static void a_scope_of_the_user_manager_is_used(void **state)
{
	(void)state;
	struct cgroup_host host = host_with_manager();
	auto_cgroup_parent struct cgroup_parent p = find(&host, NULL);
	assert_string_equal(p.origin, "user manager");
	assert_true(is_at(&p, moved_to));
	assert_true(offers_all(&p));
	assert_int_equal(fake.moved, 1);
	assert_children_find_the_scope();
}

static void one_claim_serves_all_children(void **state)
{
	(void)state;
	struct cgroup_host host = host_with_manager();
	cgroup_parent_claim(&host, "T1");
	assert_true(was_asked);
	assert_int_equal(fake.moved, 1); /* to the leaf beside those of the jails */
	assert_children_find_the_scope();
}

static void nobody_claims_a_scope_who_needs_none(void **state)
{
	(void)state;
	has_manager = true;
	make("/own", "cpu memory pids\n", "10\n");
	mark("/own");
	struct cgroup_host host = host_at("/own", 1000);
	cgroup_parent_claim(&host, "T1");
	assert_false(was_asked);
	assert_string_equal(get("/own", "cgroup.procs"), "10\n");

	host = host_at("/not-there", 0);
	cgroup_parent_claim(&host, "T1");
	assert_false(was_asked);
}

static void a_unit_that_another_cejail_has_vacated_is_used_as_it_is(void **state)
{
	(void)state;
	has_manager = true;
	make("/user@1000.service", "cpu memory pids\n", "");
	make("/user@1000.service/x.scope", "cpu memory pids\n", "10\n");
	make("/user@1000.service/x.scope/cejail-supervisor", "", "");
	struct cgroup_host host = host_at("/user@1000.service/x.scope", 1000);
	moved_to = "/user@1000.service/x.scope/cejail-supervisor"; /* while the manager was asked */
	auto_cgroup_parent struct cgroup_parent p = find(&host, NULL);
	assert_string_equal(p.origin, "user manager");
	assert_true(is_at(&p, "/user@1000.service/x.scope"));
}

static void a_manager_that_creates_no_scope_is_named_as_the_reason(void **state)
{
	(void)state;
	has_manager = true;
	manager_rc = -ECONNREFUSED;
	struct cgroup_host host = host_at("/not-there", 1000);
	auto_cgroup_parent struct cgroup_parent p = find(&host, NULL);
	assert_int_equal(p.dir_fd, -1);
	assert_non_null(strstr(p.why_not, "ask the manager: Connection refused"));

	manager_rc = 0; /* it says yes, and yet nothing changed */
	auto_cgroup_parent struct cgroup_parent q = find(&host, NULL);
	assert_int_equal(q.dir_fd, -1);
	assert_non_null(strstr(q.why_not, "can't be seen"));
}

static void a_better_way_that_is_blocked_is_what_there_is_to_mend(void **state)
{
	(void)state;
	make("", "\n", ""); /* the root gives nothing on, so that root's own holds nothing */
	make("/svc", "memory\n", "0\n");
	mark("/svc");
	struct cgroup_host host = host_at("/svc", 0);
	auto_cgroup_parent struct cgroup_parent p = find(&host, NULL);
	assert_string_equal(p.origin, "own");
	assert_false(p.offers[CGROUP_MEMORY]);
	assert_non_null(strstr(p.why_not, "pid namespace"));
}

static void a_v1_host_gets_the_boot_option_as_remedy(void **state)
{
	(void)state;
	make("/session", "", "10\n");
	struct cgroup_host host = host_at("/session", 0);
	host.self.on_v1[CGROUP_MEMORY] = host.self.on_v1[CGROUP_PIDS] = true;
	make("", "\n", ""); /* the root has nothing to give */
	auto_cgroup_parent struct cgroup_parent p = find(&host, NULL);
	assert_string_equal(p.origin, "own");
	assert_false(p.offers[CGROUP_MEMORY]);
	assert_non_null(strstr(p.why_not, "systemd.unified_cgroup_hierarchy=1"));
}

static void a_host_without_cgroup_v2_gets_that_reason(void **state)
{
	(void)state;
	struct cgroup_host host = { .uid = 0 };
	auto_cgroup_parent struct cgroup_parent p = find(&host, NULL);
	assert_int_equal(p.dir_fd, -1);
	assert_non_null(strstr(p.why_not, "no cgroup v2"));
}

static void a_path_too_long_is_declined(void **state)
{
	(void)state;
	struct cgroup_host host = host_at("/", 0);
	static char option[CGROUP_PATH_MAX + 2];
	memset(option, 'x', sizeof(option) - 1);
	option[0] = '/';
	struct cgroup_parent p;
	struct cj_error err = { 0 };
	assert_int_equal(cgroup_parent_find(&host, option, "T1", &p, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "too long"));
}

static void the_report_has_a_path_or_a_reason_for_each_parent(void **state)
{
	(void)state;
	memset(&fake, 0, sizeof(fake)); /* this host's real cgroups; nothing is changed */
	struct cgroup_parent_report report[8];
	size_t count = cgroup_parent_reports(report, 8);
	static const char *const names[] = { "delegated", "user manager", "container", "own" };
	assert_int_equal(count, 4);
	for (size_t i = 0; i < count; i++) {
		assert_string_equal(report[i].name, names[i]);
		assert_true(report[i].detail[0] != '\0');
		assert_int_equal(report[i].serves, report[i].detail[0] == '/');
	}
	assert_int_equal(fake.writes, 0);
	assert_int_equal(cgroup_parent_reports(report, 2), 2);
}

static void this_host_can_be_read(void **state)
{
	(void)state;
	struct cgroup_host host;
	cgroup_host_read(&host);
	assert_int_equal(host.uid, geteuid());
	if (host.mount.point[0] == '\0')
		skip(); /* no cgroup v2 here */
	assert_int_equal(host.mount.point[0], '/');
	assert_true(host.own_path[0] == '\0' || access(host.own_path, F_OK) == 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_delegated_cgroup_is_vacated_and_used),
		TEST(what_another_cejail_has_done_is_found_done),
		TEST(the_mark_one_above_serves_a_delegate_subgroup),
		TEST(nothing_moves_while_no_controller_needs_it),
		TEST(a_missing_controller_is_named_and_the_others_serve),
		TEST(processes_of_another_pid_namespace_stop_the_move),
		TEST(a_cgroup_that_keeps_filling_is_given_up),
		TEST(an_option_is_a_mounted_path_or_a_cgroup),
		TEST(an_option_that_cannot_serve_is_an_error_that_names_it),
		TEST(an_option_outside_cgroupfs_is_refused),
		TEST(root_makes_a_subtree_of_its_own),
		TEST(a_subtree_at_the_root_never_escapes_a_limit),
		TEST(a_mount_of_another_cgroup_namespace_is_not_used),
		TEST(a_container_root_is_vacated_and_used),
		TEST(an_ordinary_user_without_delegation_gets_no_parent_but_a_reason),
		TEST(a_cgroup_the_user_may_write_serves_unless_a_manager_owns_it),
		TEST(a_scope_of_the_user_manager_is_used),
		TEST(one_claim_serves_all_children),
		TEST(nobody_claims_a_scope_who_needs_none),
		TEST(a_unit_that_another_cejail_has_vacated_is_used_as_it_is),
		TEST(a_manager_that_creates_no_scope_is_named_as_the_reason),
		TEST(a_better_way_that_is_blocked_is_what_there_is_to_mend),
		TEST(a_v1_host_gets_the_boot_option_as_remedy),
		TEST(a_host_without_cgroup_v2_gets_that_reason),
		TEST(a_path_too_long_is_declined),
		cmocka_unit_test(the_report_has_a_path_or_a_reason_for_each_parent),
		cmocka_unit_test(this_host_can_be_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
