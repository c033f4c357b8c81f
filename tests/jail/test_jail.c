/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life cycle with every stage failing once, on both sides of clone3(2): the error
 * names the stage, and nothing is left afterwards.
 */
/* WRAP: record_open_dir idmap_choose cgroup_find cgroup_make sys_clone3 idmap_write */
/* WRAP: record_create record_complete */
/* WRAP: filter_watch_create rootfs_open_sources privileges_join_keyring privileges_become */
/* WRAP: rootfs_build rootfs_enter links_raise_loopback privileges_limit_counts rootfs_mask_proc */
/* WRAP: privileges_nest */
/* WRAP: rootfs_open_handles limits_apply privileges_no_new landlock_apply privileges_drop */
/* WRAP: filter_load stages_enter libexec_find jail_init_kill */
#include "runtime/jail/jail.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "netns/rtnetlink/links.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/step.h"
#include "runtime/base/sys.h"
#include "runtime/kernel/cgroup/cgroup.h"
#include "runtime/kernel/ids/idmap.h"
#include "runtime/kernel/process/landlock.h"
#include "runtime/jail/init/init.h"
#include "runtime/kernel/process/privileges.h"
#include "runtime/jail/prepare/jail_init.h"
#include "runtime/jail/jail_state.h"
#include "runtime/jail/record.h"
#include "runtime/kernel/seccomp/filter.h"
#include "runtime/base/stage.h"
#include "tests/jail/built_libexec.h"
#include "tests/jail/whole_jail.h"

/* The function that fails next; init inherits it. */
static const char *failing = "";

#define FAILS(name, params, args)                                                                  \
	int __real_##name params;                                                                  \
	int __wrap_##name params;                                                                  \
	int __wrap_##name params                                                                   \
	{                                                                                          \
		if (strcmp(failing, #name) == 0)                                                   \
			return cj_fail(err, EIO, "made to fail");                                  \
		return __real_##name args;                                                         \
	}

FAILS(record_open_dir, (struct cj_error * err), (err))
FAILS(idmap_choose, (int fd, struct idmap *out, struct cj_error *err), (fd, out, err))
FAILS(cgroup_find, (const char *parent, const char *id, struct cgroup *out, struct cj_error *err),
      (parent, id, out, err))
FAILS(cgroup_make, (struct cgroup * c, const struct cgroup_limits *limits, struct cj_error *err),
      (c, limits, err))
FAILS(idmap_write, (const struct idmap *map, pid_t pid, struct cj_error *err), (map, pid, err))
FAILS(record_create, (int fd, const struct record *r, struct cj_error *err), (fd, r, err))
FAILS(record_complete, (int fd, struct record *r, struct cj_error *err), (fd, r, err))
int __real_filter_watch_create(int fd, const struct filter *f, struct filter_watch **out,
			       struct cj_error *err);
int __wrap_filter_watch_create(int fd, const struct filter *f, struct filter_watch **out,
			       struct cj_error *err);
int __wrap_filter_watch_create(int fd, const struct filter *f, struct filter_watch **out,
			       struct cj_error *err)
{
	if (strcmp(failing, "filter_watch_create") != 0)
		return __real_filter_watch_create(fd, f, out, err);
	close(fd); /* it takes the listener, also when it fails */
	return cj_fail(err, EIO, "made to fail");
}
FAILS(rootfs_open_sources,
      (const struct rootfs_spec *spec, struct rootfs_sources **out, struct cj_error *err),
      (spec, out, err))
FAILS(privileges_join_keyring, (struct cj_error * err), (err))
FAILS(privileges_become, (uid_t uid, gid_t gid, bool may, struct cj_error *err),
      (uid, gid, may, err))
FAILS(rootfs_build,
      (const struct rootfs_spec *spec, struct rootfs_sources **sources, struct cj_error *err),
      (spec, sources, err))
FAILS(rootfs_enter, (int fd, struct cj_error *err), (fd, err))
FAILS(links_raise_loopback, (struct cj_error * err), (err))
FAILS(privileges_limit_counts, (struct cj_error * err), (err))
FAILS(privileges_nest, (uid_t uid, gid_t gid, struct cj_error *err), (uid, gid, err))
FAILS(rootfs_mask_proc, (int proc_fd, uid_t uid, struct cj_error *err), (proc_fd, uid, err))
FAILS(rootfs_open_handles,
      (const struct rootfs_spec *spec, int fd, struct rootfs_handles *out, struct cj_error *err),
      (spec, fd, out, err))
FAILS(limits_apply, (const struct limits_spec *l, bool p, struct cj_error *err), (l, p, err))
FAILS(privileges_no_new, (struct cj_error * err), (err))
FAILS(landlock_apply, (const struct landlock_jail *jail, int *out_fd, struct cj_error *err),
      (jail, out_fd, err))
FAILS(privileges_drop, (int proc_fd, struct cj_error *err), (proc_fd, err))
FAILS(filter_load, (const struct filter *f, int *out_fd, struct cj_error *err), (f, out_fd, err))

pid_t __real_sys_clone3(const struct clone_args *args);
pid_t __wrap_sys_clone3(const struct clone_args *args);
pid_t __wrap_sys_clone3(const struct clone_args *args)
{
	if (strcmp(failing, "sys_clone3") == 0) {
		errno = EPERM;
		return -1;
	}
	return __real_sys_clone3(args);
}

/* --- any row of the real tables, by its number -------------------------------------------- */

#define ROWS_MAX 32

enum side { SUPERVISOR, INIT, SIDE_COUNT };

/* Shared with init, which is a fork. */
static struct tables {
	size_t rows[SIDE_COUNT];
	char broken_name[64]; /* as its table calls it */
} * tables;
static enum side broken_side;
static int broken_row = -1;
static bool is_reduced;
static pid_t test_pid;

static int enter_broken(struct jail *j, struct cj_error *err)
{
	(void)j;
	return cj_fail(err, EIO, "made to fail");
}

int __real_stages_enter(struct jail *j, const struct stage *table, size_t n, struct cj_error *err);
/* The rows that only a jail without namespaces has, and those that it lacks. */
static bool is_left_out(const char *name)
{
	static const char *const names[2][10] = {
		{ "private directory", "guard" },
		{ "sources", "root", "network", "hostname", "handles", "proc", "user namespace",
		  "image", "uplink" },
	};
	bool is_there = false;
	for (size_t i = 0; i < 10 && names[is_reduced][i]; i++)
		is_there |= strcmp(names[is_reduced][i], name) == 0;
	return is_there;
}

int __wrap_stages_enter(struct jail *j, const struct stage *table, size_t n, struct cj_error *err);
int __wrap_stages_enter(struct jail *j, const struct stage *table, size_t n, struct cj_error *err)
{
	if (!tables)
		return __real_stages_enter(j, table, n, err);
	enum side side = getpid() == test_pid ? SUPERVISOR : INIT;
	struct stage rows[ROWS_MAX];
	size_t count = 0;
	assert_true(n <= ROWS_MAX);
	for (size_t i = 0; i < n; i++)
		if (!is_left_out(table[i].name))
			rows[count++] = table[i];
	n = count;
	tables->rows[side] = n;
	if (side == broken_side && broken_row >= 0) {
		rows[broken_row].enter = enter_broken;
		(void)snprintf(tables->broken_name, sizeof(tables->broken_name), "%s",
			       rows[broken_row].name);
	}
	return __real_stages_enter(j, rows, n, err);
}

static const struct {
	const char *function, *stage;
} cases[] = {
	{ "cgroup_find", "cgroup" },
	{ "record_create", "record" },
	{ "cgroup_make", "cgroup" },
	{ "sys_clone3", "init" },
	{ "idmap_choose", "ids" },
	{ "idmap_write", "id map" },
	{ "record_complete", "record" },
	{ "filter_watch_create", "jail" },
	{ "privileges_join_keyring", "init" },
	{ "rootfs_open_sources", "sources" },
	{ "privileges_become", "id map" },
	{ "rootfs_build", "root" },
	{ "rootfs_enter", "root" },
	{ "links_raise_loopback", "network" },
	{ "privileges_limit_counts", "proc" },
	{ "rootfs_mask_proc", "proc" },
	{ "rootfs_open_handles", "handles" },
	{ "privileges_nest", "user namespace" },
	{ "limits_apply", "rlimits" },
	{ "privileges_no_new", "no new privileges" },
	{ "landlock_apply", "landlock" },
	{ "privileges_drop", "capabilities" },
	{ "filter_load", "filter" },
};

static void a_program_runs_and_its_end_is_reported(void **state)
{
	(void)state;
	const struct plan plan = simple_plan();
	const char *const argv[] = { "/usr/bin/sh", "-c", "echo hello; exit 3", NULL };
	unsigned long before = open_descriptors();
	struct outcome out;
	struct cj_error err = { 0 };
	outcome_init(&out, unique_id(), 4096);

	assert_int_equal(run(&plan, argv, &out, &err), 0);
	assert_int_equal(out.status, STATUS_EXITED);
	assert_int_equal(out.exit_code, 3);
	assert_int_equal(out.output[0].total, 6);
	outcome_fini(&out);
	assert_nothing_held(before);
}

static int kill_wait_ms; /* 0: don't look */
static bool has_ended_itself;

bool __real_jail_init_kill(struct jail *j, bool is_alone);
bool __wrap_jail_init_kill(struct jail *j, bool is_alone);
bool __wrap_jail_init_kill(struct jail *j, bool is_alone)
{
	if (kill_wait_ms > 0)
		has_ended_itself = fd_await(j->init_pidfd, POLLIN, kill_wait_ms);
	return __real_jail_init_kill(j, is_alone);
}

static void init_waits_to_be_killed_if_it_is_alone_and_else_ends_the_others(void **state)
{
	(void)state;
	static const char *const scripts[] = { "exit 3", "sleep 1000 & exit 3" };
	const struct plan plan = simple_plan();
	for (int leaves_one = 0; leaves_one <= 1; leaves_one++) {
		const char *const argv[] = { "/usr/bin/sh", "-c", scripts[leaves_one], NULL };
		unsigned long before = open_descriptors();
		struct outcome out;
		struct cj_error err = { 0 };
		outcome_init(&out, unique_id(), 4096);
		kill_wait_ms = leaves_one ? 10000 : 50;

		assert_int_equal(run(&plan, argv, &out, &err), 0);
		assert_int_equal(out.exit_code, 3);
		assert_int_equal(has_ended_itself, leaves_one);
		outcome_fini(&out);
		assert_nothing_held(before);
	}
	kill_wait_ms = 0;
}

static void bytes_of_a_request_land_as_files(void **state)
{
	(void)state;
	static const char code[] = "cd /box; tr '\\0' 0 < d/bytes; stat -c ' %a %s' d/bytes empty; "
				   "exit 4\n\0not read";
	static const struct copy_spec files[] = {
		{ .target = "/box/d/bytes", .bytes = "a\0b", .size = 3 },
		{ .target = "/box/empty", .bytes = "", .size = 0, .is_executable = true },
	};
	static const char expected[] = "a0b 644 3\n 755 0\n";
	const char *const argv[] = { "/usr/bin/sh", "/box/code", NULL };
	const struct plan plan = simple_plan();
	struct program program = simple_program(argv);
	program.code_source = CODE_STRING;
	program.code_text = code;
	program.code_size = sizeof(code) - 1;
	program.code_path = "/box/code";
	program.files = files;
	program.nfiles = 2;
	unsigned long before = open_descriptors();
	struct outcome out;
	struct cj_error err = { 0 };
	size_t size, kept;
	outcome_init(&out, unique_id(), 4096);

	assert_int_equal(run_program(&plan, &program, &out, &err), 0);
	assert_int_equal(out.exit_code, 4);
	auto_free char *text = capture_text(&out.output[0], &size, &kept);
	assert_string_equal(text, expected);
	outcome_fini(&out);
	assert_nothing_held(before);
}

static void every_failing_stage_names_itself_and_leaves_nothing(void **state)
{
	(void)state;
	const struct plan plan = simple_plan();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned long before = open_descriptors();
		struct jail *jail = NULL;
		struct cj_error err = { 0 };
		failing = cases[i].function;
		int rc = jail_prepare(&plan, unique_id(), &jail, &err);
		failing = "";
		print_message("%s: %s\n", cases[i].function, err.msg);
		assert_true(rc < 0);
		assert_null(jail);
		assert_string_equal(err.stage, cases[i].stage);
		assert_nothing_held(before);
	}
}

static void break_row(const struct plan *plan, enum side side, int row)
{
	unsigned long before = open_descriptors();
	struct jail *jail = NULL;
	struct cj_error err = { 0 };
	broken_side = side;
	broken_row = row;
	tables->broken_name[0] = '\0';
	int rc = jail_prepare(plan, unique_id(), &jail, &err);
	broken_row = -1;
	print_message("%s %d: %s\n", side == INIT ? "init" : "supervisor", row, err.msg);
	assert_int_equal(rc, -EIO);
	assert_null(jail);
	assert_string_not_equal(tables->broken_name, "");
	assert_string_equal(err.stage, tables->broken_name);
	char said[128]; /* the row's name, after the supervisor's row that waited for it */
	(void)snprintf(said, sizeof(said), "%s: made to fail", tables->broken_name);
	assert_non_null(strstr(err.msg, said));
	assert_nothing_held(before);
}

static void break_every_row(const struct plan *plan)
{
	struct jail *jail = NULL;
	struct cj_error err = { 0 };
	test_pid = getpid();
	assert_int_equal(jail_prepare(plan, unique_id(), &jail, &err), 0);
	jail_destroy(&jail);
	for (enum side side = SUPERVISOR; side < SIDE_COUNT; side++) {
		assert_true(tables->rows[side] > 8);
		for (size_t row = 0; row < tables->rows[side]; row++)
			break_row(plan, side, (int)row);
	}
}

/* The tables themselves are walked: a new row is in here without being named. */
static void every_row_of_both_tables_fails_once_and_leaves_nothing(void **state)
{
	(void)state;
	struct plan plan = simple_plan();
	const struct image_record image = { 0 };
	plan.network.mode = NETWORK_PUBLIC; /* so that every row is wanted */
	plan.image = &image;                /* it has no layer */
	plan.network.starts_early = true;
	plan.network.uplink = UPLINK_NONE;
	tables =
	    mmap(NULL, sizeof(*tables), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(tables, MAP_FAILED);

	break_every_row(&plan);
	plan = simple_plan();
	plan.reduced = is_reduced = true;
	break_every_row(&plan);
	is_reduced = false;
	munmap(tables, sizeof(*tables));
	tables = NULL;
}

static void a_missing_command_is_not_reported_as_a_failure_of_cejail(void **state)
{
	(void)state;
	const struct plan plan = simple_plan();
	const char *const argv[] = { "no-such-command", NULL };
	unsigned long before = open_descriptors();
	struct outcome out;
	struct cj_error err = { 0 };
	outcome_init(&out, unique_id(), 4096);

	assert_int_equal(run(&plan, argv, &out, &err), 0);
	assert_int_equal(out.exec_errno, ENOENT);
	assert_int_equal(outcome_exit_status(&out), 127);
	outcome_fini(&out);
	assert_nothing_held(before);
}

static void a_missing_working_directory_is_a_failure_of_cejail(void **state)
{
	(void)state;
	const struct plan plan = simple_plan();
	const struct jail_io io = {
		.stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1, .tty_fd = -1, .hangup_fd = -1
	};
	const char *const argv[] = { "/usr/bin/true", NULL };
	const struct program program = { .workdir = "/not/there",
					 .argv = { (const char **)argv, 1 } };
	unsigned long before = open_descriptors();
	struct jail *jail = NULL;
	struct cj_error err = { 0 };

	assert_int_equal(jail_prepare(&plan, unique_id(), &jail, &err), 0);
	assert_int_equal(jail_start(jail, &program, &io, &err), -ENOENT);
	assert_string_equal(err.stage, "program");
	assert_non_null(strstr(err.msg, "/not/there"));
	jail_destroy(&jail);
	assert_nothing_held(before);
}

static void a_jail_that_was_never_started_is_destroyed_whole(void **state)
{
	(void)state;
	const struct plan plan = simple_plan();
	unsigned long before = open_descriptors();
	struct jail *jail = NULL;
	struct cj_error err = { 0 };

	assert_int_equal(jail_prepare(&plan, unique_id(), &jail, &err), 0);
	jail_destroy(&jail);
	jail_destroy(&jail);
	assert_nothing_held(before);
}

static volatile sig_atomic_t late_signals;

static void count_signal(int signal)
{
	(void)signal;
	late_signals = late_signals + 1;
}

static void a_signal_that_comes_too_late_is_discarded_where_that_is_asked_for(void **state)
{
	(void)state;
	const struct plan plan = simple_plan();
	const struct sigaction count = { .sa_handler = count_signal };
	struct sigaction before;
	struct cj_error err = { 0 };
	jail_discard_signals(NULL);
	for (int discards = 0; discards < 2; discards++) {
		struct jail *jail = NULL;
		late_signals = 0;
		/* SIGTERM is caught whatever its action is. */
		assert_int_equal(sigaction(SIGTERM, &count, &before), 0);
		assert_int_equal(jail_prepare(&plan, unique_id(), &jail, &err), 0);
		if (discards)
			jail_discard_signals(jail);
		assert_int_equal(raise(SIGTERM), 0);
		assert_int_equal(late_signals, 0);
		jail_destroy(&jail);
		assert_int_equal(sigaction(SIGTERM, &before, NULL), 0);
		assert_int_equal(late_signals, discards ? 0 : 1);
	}
}

static void one_plan_serves_many_jails(void **state)
{
	(void)state;
	const struct plan plan = simple_plan();
	struct jail *jails[4] = { NULL };
	unsigned long before = open_descriptors();
	struct cj_error err = { 0 };

	for (int i = 0; i < 4; i++)
		assert_int_equal(jail_prepare(&plan, unique_id(), &jails[i], &err), 0);
	for (int i = 3; i >= 0; i--)
		jail_destroy(&jails[i]);
	assert_nothing_held(before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_runs_and_its_end_is_reported),
		cmocka_unit_test(init_waits_to_be_killed_if_it_is_alone_and_else_ends_the_others),
		cmocka_unit_test(bytes_of_a_request_land_as_files),
		cmocka_unit_test(every_failing_stage_names_itself_and_leaves_nothing),
		cmocka_unit_test(every_row_of_both_tables_fails_once_and_leaves_nothing),
		cmocka_unit_test(a_missing_command_is_not_reported_as_a_failure_of_cejail),
		cmocka_unit_test(a_missing_working_directory_is_a_failure_of_cejail),
		cmocka_unit_test(a_jail_that_was_never_started_is_destroyed_whole),
		cmocka_unit_test(a_signal_that_comes_too_late_is_discarded_where_that_is_asked_for),
		cmocka_unit_test(one_plan_serves_many_jails),
	};
	return RUN_TESTS_OF_JAILS(tests);
}
