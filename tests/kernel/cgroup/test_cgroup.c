/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A jail's leaf: limits and evidence on a fake cgroupfs with every controller, birth and
 * death on this host's real one, in a cgroup of the test's own.
 */
#include "runtime/kernel/cgroup/cgroup.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "runtime/base/sys.h"
#include "runtime/kernel/cgroup/cgroup_parent.h"

/* WRAP: mkdirat rmdir fstatfs system_file_write system_file_write_back cgroup_host_read flock */
#include "tests/forked.h"
#include "tests/kernel/cgroup/fake_cgroup.h"
#include "tests/first_thread.h"
#include "tests/patience.h"

static struct cgroup_host host;
static char real_parent[CGROUP_PATH_MAX]; /* on the real cgroupfs; "": there is none to use */

void __real_cgroup_host_read(struct cgroup_host *out);
void __wrap_cgroup_host_read(struct cgroup_host *out);
void __wrap_cgroup_host_read(struct cgroup_host *out)
{
	*out = host;
}

static const struct cgroup_limits usual = {
	.memory_bytes = (64u << 20) + 100, /* not a whole page */
	.millicpus = 500,
	.pids = 32,
};

static void put_path(char *out, const char *path)
{
	(void)snprintf(out, CGROUP_PATH_MAX, "%s", path);
}

static int begin_fake(void **state)
{
	(void)state;
	fake_begin("cpu memory pids\n");
	host = (struct cgroup_host){ .uid = 0, .at_real_root = true };
	put_path(host.mount.point, fake.root);
	put_path(host.mount.root, "/");
	put_path(host.own_path, fake.root);
	return 0;
}

static int end_fake(void **state)
{
	(void)state;
	fake_end();
	return 0;
}

static int find_and_make(const char *option, const char *id, const struct cgroup_limits *limits,
			 struct cgroup *out, struct cj_error *err)
{
	if (cgroup_find(option, id, out, err) < 0 || cgroup_make(out, limits, err) < 0) {
		(void)cgroup_destroy(out);
		return -err->code;
	}
	return 0;
}

static struct cgroup create(const char *option)
{
	struct cgroup c;
	struct cj_error err = { 0 };
	if (find_and_make(option, "T1", &usual, &c, &err) < 0)
		fail_msg("%s", err.msg);
	return c;
}

static bool says(const struct cgroup *c, const char *file, const char *text)
{
	return strcmp(fake_get(c->dir_fd, file), text) == 0;
}

/* --- limits, on the fake ----------------------------------------------------------- */

static void every_limit_is_written_and_enforced(void **state)
{
	(void)state;
	struct cgroup c = create(NULL);
	assert_true(c.dir_fd >= 0);
	assert_string_equal(c.origin, "own");
	assert_non_null(strstr(c.path, "/cejail/cejail-T1"));
	assert_true(c.enforced[CGROUP_MEMORY] && c.enforced[CGROUP_CPU] && c.enforced[CGROUP_PIDS]);
	assert_string_equal(c.why_not, "");
	assert_true(says(&c, "memory.max", "67108864\n"));
	assert_true(says(&c, "memory.swap.max", "0\n"));
	assert_true(says(&c, "memory.oom.group", "1\n"));
	assert_true(says(&c, "cpu.max", "50000 100000\n"));
	assert_true(says(&c, "pids.max", "32\n"));
	cgroup_destroy(&c);
}

static void a_limit_that_reads_back_differently_is_not_enforced(void **state)
{
	(void)state;
	static const char *const files[] = { "memory.max", "cpu.max", "pids.max" };
	for (size_t i = 0; i < CGROUP_CONTROLLER_COUNT; i++) {
		fake.distort = files[i];
		struct cgroup c = create(NULL);
		for (size_t k = 0; k < CGROUP_CONTROLLER_COUNT; k++)
			assert_int_equal(c.enforced[k], k != i);
		assert_non_null(strstr(c.why_not, files[i]));
		cgroup_destroy(&c);
	}
}

static void a_limit_that_cannot_be_written_is_not_enforced(void **state)
{
	(void)state;
	static const struct {
		const char *file;
		enum cgroup_controller controller;
	} rows[] = {
		{ "memory.max", CGROUP_MEMORY },       { "memory.swap.max", CGROUP_MEMORY },
		{ "memory.oom.group", CGROUP_MEMORY }, { "cpu.max", CGROUP_CPU },
		{ "pids.max", CGROUP_PIDS },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fake.refuse = rows[i].file;
		fake.refuse_errno = EINVAL;
		struct cgroup c = create(NULL);
		assert_true(c.dir_fd >= 0);
		for (size_t k = 0; k < CGROUP_CONTROLLER_COUNT; k++)
			assert_int_equal(c.enforced[k], k != rows[i].controller);
		assert_true(c.why_not[0] != '\0');
		cgroup_destroy(&c);
	}
}

static void a_limit_that_is_not_asked_for_is_not_enforced(void **state)
{
	(void)state;
	struct cgroup c;
	struct cj_error err;
	const struct cgroup_limits none = { 0 };
	assert_int_equal(find_and_make(NULL, "T1", &none, &c, &err), 0);
	assert_false(c.enforced[CGROUP_MEMORY] || c.enforced[CGROUP_CPU] ||
		     c.enforced[CGROUP_PIDS]);
	assert_true(says(&c, "memory.max", "max\n"));
	cgroup_destroy(&c);
}

static void a_parent_without_controllers_holds_nothing_and_says_why(void **state)
{
	(void)state;
	auto_fd int fd = fake_open(fake.root);
	fake_put(fd, "cgroup.controllers", "\n");
	struct cgroup c = create(NULL);
	assert_true(c.dir_fd >= 0);
	assert_false(c.enforced[CGROUP_MEMORY] || c.enforced[CGROUP_CPU] ||
		     c.enforced[CGROUP_PIDS]);
	assert_non_null(strstr(c.why_not, "controller"));
	cgroup_destroy(&c);
}

static void without_a_parent_there_is_no_leaf_but_a_reason(void **state)
{
	(void)state;
	host.uid = 1000;
	put_path(host.own_path, "");
	struct cgroup c = create(NULL);
	assert_int_equal(c.dir_fd, -1);
	assert_string_equal(c.path, "");
	assert_true(c.why_not[0] != '\0');

	struct cgroup_usage usage;
	cgroup_kill(&c); /* each does nothing */
	assert_true(cgroup_wait_empty(&c, 0));
	cgroup_read_usage(&c, &usage);
	assert_false(usage.has_cpu || usage.has_memory_peak);
	assert_int_equal(cgroup_cpu_us(&c), 0);
	cgroup_destroy(&c);
}

static void a_leaf_that_cannot_be_made_is_an_error_that_names_it(void **state)
{
	(void)state;
	struct cgroup c;
	struct cj_error err = { 0 };
	fake.refuse = "cejail-T1";
	fake.refuse_errno = EAGAIN; /* cgroup.max.descendants */
	assert_int_equal(find_and_make(NULL, "T1", &usual, &c, &err), -EAGAIN);
	assert_int_equal(c.dir_fd, -1);
	assert_non_null(strstr(err.msg, "/cejail/cejail-T1'"));
}

static void an_id_that_leads_elsewhere_is_refused(void **state)
{
	(void)state;
	static const char *const bad[] = { "", "a/b", "..", "a b",
					   "x23456789012345678901234567890123" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct cgroup c;
		struct cj_error err = { 0 };
		assert_int_equal(find_and_make(NULL, bad[i], &usual, &c, &err), -EINVAL);
		assert_int_equal(c.dir_fd, -1);
	}
}

static void an_option_that_cannot_serve_is_an_error(void **state)
{
	(void)state;
	struct cgroup c;
	struct cj_error err = { 0 };
	assert_int_equal(find_and_make("/not-there", "T1", &usual, &c, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "'/not-there'"));
	assert_int_equal(c.dir_fd, -1);
}

/* --- evidence, on the fake ----------------------------------------------------------- */

static void evidence_is_what_the_files_say(void **state)
{
	(void)state;
	struct cgroup c = create(NULL);
	struct cgroup_usage usage;
	fake_put(c.dir_fd, "memory.peak", "1234567\n");
	fake_put(c.dir_fd, "memory.events",
		 "low 0\nhigh 0\nmax 9\noom 1\noom_kill 3\noom_group_kill 1\n");
	fake_put(c.dir_fd, "pids.peak", "17\n");
	fake_put(c.dir_fd, "pids.events", "max 5\n");
	fake_put(c.dir_fd, "cpu.stat",
		 "usage_usec 30\nuser_usec 10\nsystem_usec 20\nthrottled_usec 4\n");
	cgroup_read_usage(&c, &usage);
	assert_true(usage.has_memory_peak && usage.has_pids_peak && usage.has_cpu);
	assert_int_equal(usage.memory_peak_bytes, 1234567);
	assert_int_equal(usage.oom_kills, 3);
	assert_int_equal(usage.own_ooms, 1);
	assert_int_equal(usage.pids_peak, 17);
	assert_int_equal(usage.pids_max_hits, 5);
	assert_int_equal(usage.cpu_user_us, 10);
	assert_int_equal(usage.cpu_system_us, 20);
	assert_int_equal(usage.throttled_us, 4);
	assert_int_equal(cgroup_cpu_us(&c), 30);
	assert_true(cgroup_memory_bytes(&c) == UINT64_MAX); /* there is no memory.current */
	fake_put(c.dir_fd, "memory.current", "5000\n");
	fake_put(c.dir_fd, "memory.stat", "anon 3000\ninactive_file 1500\nactive_file 7\n");
	assert_int_equal(cgroup_memory_bytes(&c), 3500);
	fake_put(c.dir_fd, "memory.stat", "anon 3000\ninactive_file 6000\n");
	assert_int_equal(cgroup_memory_bytes(&c), 0);
	cgroup_destroy(&c);
}

static void room_above_is_what_every_cgroup_above_has_left(void **state)
{
	(void)state;
	struct cgroup c = create(NULL);
	auto_fd int root_fd = fake_open(fake.root);
	assert_true(cgroup_has_room_above(&c, 1000)); /* "max" */
	fake_put(root_fd, "pids.max", "100\n");
	assert_false(cgroup_has_room_above(&c, 1)); /* the usage is unknown */
	fake_put(root_fd, "pids.current", "79\n");
	assert_true(cgroup_has_room_above(&c, 21));
	assert_false(cgroup_has_room_above(&c, 22));
	fake_put(root_fd, "pids.current", "101\n");
	assert_false(cgroup_has_room_above(&c, 0));
	cgroup_destroy(&c);
}

static void evidence_that_is_not_there_is_not_claimed(void **state)
{
	(void)state;
	struct cgroup c = create(NULL);
	struct cgroup_usage usage;
	fake_put(c.dir_fd, "cpu.stat", "usage_usec\n");
	cgroup_read_usage(&c, &usage);
	assert_false(usage.has_memory_peak || usage.has_pids_peak || usage.has_cpu);
	assert_int_equal(usage.oom_kills, 0);
	assert_int_equal(cgroup_cpu_us(&c), 0);
	cgroup_destroy(&c);
}

/* --- life and death, on the real one --------------------------------------------------- */

static int begin_real(void **state)
{
	(void)state;
	memset(&fake, 0, sizeof(fake));
	if (real_parent[0] == '\0')
		return 0;
	__real_cgroup_host_read(&host);
	return 0;
}

static void need_real(void)
{
	if (real_parent[0] != '\0')
		return;
	print_message("no cgroup v2 that this user may write to\n");
	skip();
}

static int64_t ms_since(const struct timespec *start)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - start->tv_sec) * 1000 + (now.tv_nsec - start->tv_nsec) / 1000000;
}

/* fork(2) into the cgroup. */
static pid_t enter_cgroup(const struct cgroup *c)
{
	struct clone_args args = {
		.flags = CLONE_INTO_CGROUP,
		.exit_signal = SIGCHLD,
		.cgroup = (uint64_t)c->dir_fd,
	};
	pid_t pid = sys_clone3(&args);
	/* After a failed test it must not keep the test's output open. */
	if (pid == 0) {
		leave_test_runner();
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	}
	return pid;
}

/* A process in the cgroup with `count` children that burn a little CPU and then wait. */
static pid_t spawn_into(const struct cgroup *c, int count)
{
	pid_t pid = enter_cgroup(c);
	if (pid != 0)
		return pid;
	for (int i = 0; i < count; i++) {
		if (test_fork() == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
			break;
		}
	}
	for (volatile int i = 0; i < 3000000; i++)
		;
	for (;;)
		(void)pause();
}

/* Until all `count` are there. */
static void await_processes(const struct cgroup *c, int count)
{
	int seen = 0;
	for (int i = 0; i < patience_ms(30000) && seen != count; i++) {
		char path[sizeof(c->path) + 16];
		(void)snprintf(path, sizeof(path), "%s/cgroup.procs", c->path);
		FILE *file = fopen(path, "re");
		assert_non_null(file);
		seen = 0;
		for (int ch; (ch = fgetc(file)) != EOF;)
			seen += ch == '\n';
		(void)fclose(file);
		(void)usleep(1000);
	}
	assert_int_equal(seen, count);
}

/* Until the kernel, which counts by ticks, has seen it run. */
static void await_cpu_time(struct cgroup *c)
{
	struct cgroup_usage usage = { 0 };
	for (int i = 0; i < patience_ms(6000) && usage.cpu_user_us == 0; i++) {
		(void)usleep(10000);
		cgroup_read_usage(c, &usage);
	}
}

static void reap(pid_t pid)
{
	int status = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void a_real_leaf_comes_and_goes(void **state)
{
	(void)state;
	need_real();
	struct cgroup c = create(real_parent);
	assert_string_equal(c.origin, "option");
	assert_int_equal(access(c.path, F_OK), 0);
	assert_true(cgroup_wait_empty(&c, 0));
	char path[sizeof(c.path)];
	memcpy(path, c.path, sizeof(path));
	cgroup_destroy(&c);
	assert_int_equal(c.dir_fd, -1);
	assert_int_equal(access(path, F_OK), -1);
	cgroup_destroy(&c);
}

static void all_processes_die_and_their_cpu_time_is_counted(void **state)
{
	(void)state;
	need_real();
	struct cgroup c = create(real_parent);
	struct cgroup_usage usage;
	pid_t pid = spawn_into(&c, 20);
	assert_true(pid > 0);
	await_cpu_time(&c);
	assert_false(cgroup_wait_empty(&c, 0));
	assert_true(cgroup_cpu_us(&c) > 0);

	cgroup_kill(&c);
	assert_true(cgroup_wait_empty(&c, patience_ms(60000)));
	reap(pid);
	cgroup_read_usage(&c, &usage);
	assert_true(usage.has_cpu);
	assert_true(usage.cpu_user_us > 0);
	cgroup_destroy(&c);
}

static pid_t spawn_without_first_thread(const struct cgroup *c)
{
	siginfo_t ended = { 0 };
	pid_t pid = enter_cgroup(c);
	if (pid == 0)
		end_first_thread();
	await_zombie(pid);
	assert_int_equal(waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT), 0);
	assert_int_equal(ended.si_pid, 0); /* the second one lives */
	return pid;
}

/* cgroup.kill alone leaves it alive. */
static void a_process_without_its_first_thread_dies(void **state)
{
	(void)state;
	need_real();
	struct cgroup c = create(real_parent);
	pid_t pid = spawn_without_first_thread(&c);
	cgroup_kill(&c);
	assert_true(cgroup_wait_empty(&c, 5000));
	reap(pid);
	assert_true(cgroup_destroy(&c));

	c = create(real_parent);
	pid = spawn_without_first_thread(&c);
	assert_true(cgroup_destroy(&c));
	reap(pid);
}

static void a_refused_cgroup_kill_kills_as_well(void **state)
{
	(void)state;
	need_real();
	fake.refuse = "cgroup.kill";
	fake.refuse_errno = EACCES;
	struct cgroup c = create(real_parent);
	pid_t pid = spawn_into(&c, 150); /* more than one batch */
	assert_true(pid > 0);
	await_processes(&c, 151);
	for (int i = 0; i < patience_ms(1200) && !cgroup_wait_empty(&c, 50); i++)
		cgroup_kill(&c);
	assert_true(cgroup_wait_empty(&c, 0));
	reap(pid);
	fake.refuse = NULL;
	cgroup_destroy(&c);
}

static void destroy_ends_what_is_inside_within_its_limit(void **state)
{
	(void)state;
	need_real();
	struct cgroup c = create(real_parent);
	char path[sizeof(c.path)];
	memcpy(path, c.path, sizeof(path));
	pid_t pid = spawn_into(&c, 5);
	cgroup_destroy(&c);
	reap(pid);
	assert_int_equal(access(path, F_OK), -1);
}

static void destroy_gives_up_on_what_does_not_die(void **state)
{
	(void)state;
	need_real();
	struct cgroup c = create(real_parent);
	char path[sizeof(c.path)];
	memcpy(path, c.path, sizeof(path));
	pid_t pid = spawn_into(&c, 0);
	fake.refuse = "cgroup.kill";
	fake.refuse_errno = ENODEV; /* so that nothing is killed */
	struct timespec start;
	(void)clock_gettime(CLOCK_MONOTONIC, &start);
	cgroup_destroy(&c);
	assert_true(ms_since(&start) >= 500);
	assert_int_equal(c.dir_fd, -1);
	assert_int_equal(access(path, F_OK), 0);

	(void)kill(pid, SIGKILL);
	reap(pid);
	assert_int_equal(rmdir(path), 0);
}

static void the_wait_for_empty_ends_with_the_last_process(void **state)
{
	(void)state;
	need_real();
	struct cgroup c = create(real_parent);
	pid_t pid = spawn_into(&c, 0);
	struct timespec start;
	(void)clock_gettime(CLOCK_MONOTONIC, &start);
	assert_false(cgroup_wait_empty(&c, 60));
	assert_true(ms_since(&start) >= 58); /* both clocks are cut to milliseconds */
	(void)kill(pid, SIGKILL);
	assert_true(cgroup_wait_empty(&c, patience_ms(60000)));
	reap(pid);
	cgroup_destroy(&c);
}

static void an_id_with_processes_is_in_use_and_an_empty_one_is_not(void **state)
{
	(void)state;
	need_real();
	struct cgroup c = create(real_parent), again;
	struct cj_error err = { 0 };
	pid_t pid = spawn_into(&c, 0);
	assert_int_equal(find_and_make(real_parent, "T1", &usual, &again, &err), -EEXIST);
	assert_non_null(strstr(err.msg, "cejail-T1"));
	cgroup_kill(&c);
	assert_true(cgroup_wait_empty(&c, patience_ms(60000)));
	reap(pid);

	again = create(real_parent); /* takes a dead jail's place */
	assert_true(again.dir_fd >= 0);
	cgroup_destroy(&again);
	cgroup_destroy(&c);
}

/* --- by path ------------------------------------------------------------------------------- */

static uint64_t inode_of(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 ? st.st_ino : 0;
}

static void a_recorded_leaf_is_ended_by_path(void **state)
{
	(void)state;
	need_real();
	struct cgroup c = create(real_parent);
	struct cj_error err = { 0 };
	char path[sizeof(c.path)];
	memcpy(path, c.path, sizeof(path));
	uint64_t inode = inode_of(path);
	pid_t pid = spawn_into(&c, 3);
	assert_int_equal(cgroup_remove_path(path, inode, &err), 0);
	reap(pid);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(cgroup_remove_path(path, inode, &err), 0); /* gone: as well */
	cgroup_destroy(&c);
}

static void a_newer_leaf_of_the_same_name_is_left_alone(void **state)
{
	(void)state;
	need_real();
	struct cgroup c = create(real_parent);
	struct cj_error err = { 0 };
	char path[sizeof(c.path)];
	memcpy(path, c.path, sizeof(path));
	uint64_t old = inode_of(path);
	cgroup_destroy(&c);

	c = create(real_parent);
	assert_true(inode_of(path) != old);
	pid_t pid = spawn_into(&c, 0);
	assert_int_equal(cgroup_remove_path(path, old, &err), 0);
	assert_false(cgroup_wait_empty(&c, 0));
	cgroup_destroy(&c);
	reap(pid);
}

static void a_path_that_is_no_leaf_is_never_touched(void **state)
{
	(void)state;
	need_real();
	char other[CGROUP_PATH_MAX + 8], dir[] = "/tmp/cejail-XXXXXX";
	(void)snprintf(other, sizeof(other), "%s/other", real_parent);
	assert_int_equal(mkdir(other, 0755), 0);
	assert_non_null(mkdtemp(dir));
	const char *const forged[] = {
		other,
		dir,
		"cejail-T1",
		"",
		"/",
		"/cejail-",
		"/a/cejail-a/",
		"/proc/self/cwd/cejail-a",
		"/proc/self/stat/cejail-a",
	};
	for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
		struct cj_error err = { 0 };
		assert_int_equal(cgroup_remove_path(forged[i], inode_of(forged[i]), &err), -EINVAL);
	}
	assert_int_equal(rmdir(other), 0);
	assert_int_equal(rmdir(dir), 0);
}

static void a_leaf_is_named_before_it_is_made(void **state)
{
	(void)state;
	need_real();
	struct cgroup c;
	struct cj_error err = { 0 };
	assert_int_equal(cgroup_find(real_parent, "T1", &c, &err), 0);
	assert_non_null(strstr(c.path, "/cejail-T1"));
	assert_int_equal(access(c.path, F_OK), -1);
	assert_int_equal(cgroup_inode(&c), 0);
	assert_int_equal(cgroup_remove_path(c.path, 0, &err), 0); /* nothing there: as well */

	assert_int_equal(cgroup_make(&c, &usual, &err), 0);
	assert_int_equal(access(c.path, F_OK), 0);
	assert_true(cgroup_inode(&c) != 0 && cgroup_inode(&c) == inode_of(c.path));
	assert_true(cgroup_destroy(&c));
}

static void a_leaf_can_be_opened_whatever_the_umask(void **state)
{
	(void)state;
	need_real();
	struct stat st;
	mode_t old = umask(0777);
	struct cgroup c = create(real_parent);
	umask(old);
	assert_int_equal(stat(c.path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_true(cgroup_destroy(&c));
}

/* `pid` is in it, and a record names it without its inode. */
static void assert_removed_when_empty(struct cgroup *c, pid_t pid)
{
	struct cj_error err = { 0 };
	assert_int_equal(cgroup_remove_path(c->path, 0, &err), -EBUSY);
	assert_false(cgroup_wait_empty(c, 0));
	cgroup_kill(c);
	reap(pid);
	assert_true(cgroup_wait_empty(c, 2000));
	assert_int_equal(cgroup_remove_path(c->path, 0, &err), 0);
	assert_int_equal(access(c->path, F_OK), -1);
	assert_true(cgroup_destroy(c));
}

static void a_leaf_of_unknown_inode_is_removed_when_empty_and_never_emptied(void **state)
{
	(void)state;
	need_real();
	struct cgroup c = create(real_parent);
	assert_removed_when_empty(&c, spawn_into(&c, 0));
}

/* Its maker was killed before it had recorded the inode. */
static void a_divided_leaf_of_unknown_inode_is_removed_when_empty_and_never_emptied(void **state)
{
	(void)state;
	need_real();
	struct cgroup c = create(real_parent);
	cgroup_divide(&c);
	assert_true(c.init_fd >= 0);
	struct cgroup child = { .dir_fd = c.init_fd, .init_fd = -1, .cpu_fd = -1, .parent_fd = -1 };
	assert_removed_when_empty(&c, spawn_into(&child, 0));
}

static bool is_there(const char *path)
{
	return access(path, F_OK) == 0;
}

/* As the end of its maker does. */
static void let_go(struct cgroup *c)
{
	cj_close(&c->cpu_fd);
	cj_close(&c->dir_fd);
}

static void an_empty_leaf_without_a_lock_is_swept(void **state)
{
	(void)state;
	need_real();
	struct cgroup c = create(real_parent);
	char other[CGROUP_PATH_MAX + 32];
	auto_fd int parent_fd = open(real_parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)snprintf(other, sizeof(other), "%s/cejail-supervisor", real_parent);
	assert_int_equal(mkdir(other, 0755), 0); /* no leaf of a jail's */

	assert_int_equal(cgroup_sweep_in(parent_fd), 0);
	assert_true(is_there(c.path));
	let_go(&c);
	assert_int_equal(cgroup_sweep_in(parent_fd), 1);
	assert_false(is_there(c.path));
	assert_int_equal(cgroup_sweep_in(parent_fd), 0);
	assert_int_equal(rmdir(other), 0);
}

static void a_leaf_with_processes_is_not_swept(void **state)
{
	(void)state;
	need_real();
	struct cgroup c = create(real_parent);
	auto_fd int parent_fd = open(real_parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	pid_t pid = spawn_into(&c, 0);
	assert_int_equal(flock(c.dir_fd, LOCK_UN), 0); /* as if it had never been locked */
	assert_int_equal(cgroup_sweep_in(parent_fd), 0);
	assert_true(is_there(c.path));
	cgroup_kill(&c);
	reap(pid);
	assert_true(cgroup_destroy(&c));
}

/* A sweep that takes each new leaf before its maker has locked it, three times. */
static int leaves_to_take;
static bool is_locked_by_other;

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);
int __wrap_flock(int fd, int operation)
{
	if (operation == (LOCK_SH | LOCK_NB) && is_locked_by_other) {
		errno = EWOULDBLOCK;
		return -1;
	}
	if (operation != (LOCK_SH | LOCK_NB) || leaves_to_take == 0)
		return __real_flock(fd, operation);
	char path[CGROUP_PATH_MAX + 32];
	(void)snprintf(path, sizeof(path), "%s/cejail-T1", real_parent);
	leaves_to_take--;
	assert_int_equal(__real_rmdir(path), 0);
	return __real_flock(fd, operation);
}

static void a_leaf_that_a_sweep_takes_is_made_again(void **state)
{
	(void)state;
	need_real();
	leaves_to_take = 3;
	struct cgroup c = create(real_parent);
	assert_int_equal(leaves_to_take, 0);
	assert_true(is_there(c.path));
	assert_true(cgroup_inode(&c) == inode_of(c.path));
	assert_true(cgroup_destroy(&c));
}

/* Everybody can open a directory of cgroupfs, and lock it. */
static void another_users_lock_does_not_keep_a_run_from_starting(void **state)
{
	(void)state;
	need_real();
	is_locked_by_other = true;
	struct cgroup c = create(real_parent);
	is_locked_by_other = false;
	assert_true(is_there(c.path));
	assert_true(cgroup_destroy(&c));
}

static int find_real_parent(void **state)
{
	(void)state;
	__real_cgroup_host_read(&host);
	if (host.mount.point[0] == '\0' || host.own_path[0] == '\0')
		return 0;
	int size = snprintf(real_parent, sizeof(real_parent), "%s/cejail-unit-test-%d",
			    host.mount.point, (int)getpid());
	if (size >= (int)sizeof(real_parent) || mkdir(real_parent, 0755) < 0)
		real_parent[0] = '\0';
	return 0;
}

static int remove_real_parent(void **state)
{
	(void)state;
	if (real_parent[0] == '\0')
		return 0;
	/* What failed tests left goes first. */
	static const char *const left[] = { "cejail-T1", "cejail/cejail-T1", "cejail/cejail-T2",
					    "cejail/cejail-T3", "cejail" };
	auto_fd int fd = fake_open(real_parent);
	(void)__real_system_file_write(fd, "cgroup.kill", "1");
	for (int tries = 0; tries < patience_ms(6000);
	     tries++) { /* what was killed takes a moment */
		for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++)
			(void)unlinkat(fd, left[i], AT_REMOVEDIR);
		if (rmdir(real_parent) == 0)
			return 0;
		(void)usleep(10000);
	}
	return -1;
}

#define FAKE(name) cmocka_unit_test_setup_teardown(name, begin_fake, end_fake)
#define REAL(name) cmocka_unit_test_setup(name, begin_real)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FAKE(every_limit_is_written_and_enforced),
		FAKE(a_limit_that_reads_back_differently_is_not_enforced),
		FAKE(a_limit_that_cannot_be_written_is_not_enforced),
		FAKE(a_limit_that_is_not_asked_for_is_not_enforced),
		FAKE(a_parent_without_controllers_holds_nothing_and_says_why),
		FAKE(without_a_parent_there_is_no_leaf_but_a_reason),
		FAKE(a_leaf_that_cannot_be_made_is_an_error_that_names_it),
		FAKE(an_id_that_leads_elsewhere_is_refused),
		FAKE(an_option_that_cannot_serve_is_an_error),
		FAKE(evidence_is_what_the_files_say),
		FAKE(room_above_is_what_every_cgroup_above_has_left),
		FAKE(evidence_that_is_not_there_is_not_claimed),
		REAL(a_real_leaf_comes_and_goes),
		REAL(all_processes_die_and_their_cpu_time_is_counted),
		REAL(a_process_without_its_first_thread_dies),
		REAL(a_refused_cgroup_kill_kills_as_well),
		REAL(destroy_ends_what_is_inside_within_its_limit),
		REAL(destroy_gives_up_on_what_does_not_die),
		REAL(the_wait_for_empty_ends_with_the_last_process),
		REAL(an_id_with_processes_is_in_use_and_an_empty_one_is_not),
		REAL(a_recorded_leaf_is_ended_by_path),
		REAL(a_newer_leaf_of_the_same_name_is_left_alone),
		REAL(a_path_that_is_no_leaf_is_never_touched),
		REAL(a_leaf_is_named_before_it_is_made),
		REAL(a_leaf_can_be_opened_whatever_the_umask),
		REAL(an_empty_leaf_without_a_lock_is_swept),
		REAL(a_leaf_with_processes_is_not_swept),
		REAL(a_leaf_that_a_sweep_takes_is_made_again),
		REAL(another_users_lock_does_not_keep_a_run_from_starting),
		REAL(a_leaf_of_unknown_inode_is_removed_when_empty_and_never_emptied),
		REAL(a_divided_leaf_of_unknown_inode_is_removed_when_empty_and_never_emptied),
	};
	return cmocka_run_group_tests(tests, find_real_parent, remove_real_parent);
}
