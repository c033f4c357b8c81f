/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "runtime/base/scope.h"
#include "runtime/container/state/state.h"
#include "runtime/kernel/process/process_tree.h"
#include "tests/blocked.h"
#include "tests/forked.h"
#include "tests/temp_dir.h"

static struct arena arena;
static struct oci_options o;
static struct cj_error err;

static int begin(void **state)
{
	static char root[128];
	int rc = temp_dir_make(state);

	(void)snprintf(root, sizeof(root), "%s/a/states", temp_dir);
	o = (struct oci_options){ .root = root, .id = "one" };
	err = (struct cj_error){ 0 };
	return rc;
}

static int end(void **state)
{
	arena_fini(&arena);
	return temp_dir_remove(state);
}

static struct state_record record_of_us(void)
{
	struct state_record r = { .id = "one",
				  .bundle = "/b",
				  .rootfs = "/b/r",
				  .pid = getpid(),
				  .is_created = true,
				  .created_ms = 1763874000123,
				  .owner_uid = 7 };

	assert_int_equal(process_tree_start_ticks(r.pid, &r.pid_start), 0);
	(void)snprintf(r.cgroup.path, sizeof(r.cgroup.path), "/sys/fs/cgroup/x");
	r.cgroup.inode = 4711;
	return r;
}

static void make(struct state *s)
{
	assert_int_equal(state_create(&o, s, &err), 0);
	s->record = record_of_us();
	assert_int_equal(state_write(s, &err), 0);
}

static void only_safe_ids_are_accepted(void **state)
{
	char longest[STATE_ID_MAX + 2];
	static const char *const bad[] = { "",    ".",   "..",       ".a", "a/b",
					   "a b", "a\n", "\xc3\xa9", "a%" };
	static const char *const good[] = { "a", "A-b_c.d+1", "-x", "0" };
	(void)state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(state_check_id(bad[i], &err), -EINVAL);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(state_check_id(good[i], &err), 0);
	memset(longest, 'x', sizeof(longest));
	longest[STATE_ID_MAX + 1] = '\0';
	assert_int_equal(state_check_id(longest, &err), -EINVAL);
	longest[STATE_ID_MAX] = '\0';
	assert_int_equal(state_check_id(longest, &err), 0);
}

static void a_record_is_read_as_it_was_written(void **state)
{
	auto_state struct state s = STATE_NULL, again = STATE_NULL;
	struct stat st;
	(void)state;

	make(&s);
	assert_int_equal(state_open(&o, false, &arena, &again, &err), 0);
	assert_string_equal(again.record.id, "one");
	assert_string_equal(again.record.bundle, "/b");
	assert_string_equal(again.record.rootfs, "/b/r");
	assert_int_equal(again.record.pid, getpid());
	assert_int_equal(again.record.pid_start, s.record.pid_start);
	assert_true(again.record.is_created);
	assert_int_equal(again.record.created_ms, 1763874000123);
	assert_string_equal(again.record.cgroup.path, "/sys/fs/cgroup/x");
	assert_int_equal(again.record.cgroup.inode, 4711);
	assert_int_equal(fstat(again.dir_fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
}

static void an_id_is_made_once(void **state)
{
	auto_state struct state s = STATE_NULL, second = STATE_NULL;
	(void)state;

	make(&s);
	assert_int_equal(state_create(&o, &second, &err), -EEXIST);
	assert_non_null(strstr(err.msg, "exists already"));
	assert_int_equal(state_remove(&s, &err), 0);
	assert_int_equal(state_remove(&s, &err), 0);
	assert_int_equal(state_create(&o, &second, &err), 0);
}

static void a_removed_container_does_not_exist(void **state)
{
	auto_state struct state s = STATE_NULL, other = STATE_NULL;
	(void)state;

	assert_int_equal(state_open(&o, false, &arena, &other, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "does not exist"));
	make(&s);
	assert_int_equal(state_remove(&s, &err), 0);
	assert_int_equal(state_open(&o, true, &arena, &other, &err), -ENOENT);
}

/* The lock of a removed directory is no lock of a new one with its name. */
static void who_waited_for_a_removed_container_is_told_that_it_is_gone(void **state)
{
	auto_state struct state s = STATE_NULL, other = STATE_NULL;
	(void)state;

	make(&s);
	pid_t child = test_fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct cj_error gone = { 0 };
		state_close(&s); /* the parent's lock stays: same description, other descriptor */
		_exit(state_open(&o, true, &arena, &other, &gone) == -ENOENT ? 0 : 1);
	}
	assert_true(await_blocked_in(child, SYS_clock_nanosleep));
	assert_int_equal(state_remove(&s, &err), 0);
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void half_written_records_are_lost_not_misread(void **state)
{
	auto_state struct state s = STATE_NULL;
	auto_state struct state seen = STATE_NULL;
	char *text, path[256];
	size_t size;
	(void)state;

	make(&s);
	assert_int_equal(state_get_file(&s, "record.json", &arena, &text, &size, &err), 0);
	state_unlock(&s);
	(void)snprintf(path, sizeof(path), "%s/one/record.json", o.root);
	for (size_t kept = 0; kept < size; kept++) {
		assert_int_equal(truncate(path, (off_t)kept), 0);
		assert_true(state_open(&o, false, &arena, &seen, &err) < 0);
		assert_non_null(strstr(err.hint, "delete --force"));
		err = (struct cj_error){ 0 };
		assert_int_equal(state_open_any(&o, &arena, &seen, &err), 0);
		assert_true(seen.is_lost);
		state_close(&seen);
		assert_int_equal(state_put_file(&s, "record.json", text, size, &err), 0);
	}
}

static void a_reused_pid_is_not_the_container(void **state)
{
	auto_state struct state s = STATE_NULL;
	(void)state;

	make(&s);
	auto_fd int ours = state_open_init(&s, &err);
	assert_true(ours >= 0);
	s.record.pid_start++;
	assert_int_equal(state_open_init(&s, &err), -ESRCH);
	assert_non_null(strstr(err.msg, "container not running"));
	assert_int_equal(state_status_of(&s), STATE_STOPPED);
	s.record.pid_start--;
	s.record.pid = 0;
	assert_int_equal(state_open_init(&s, &err), -ESRCH);
}

static void a_zombie_is_a_stopped_container(void **state)
{
	auto_state struct state s = STATE_NULL;
	siginfo_t info;
	(void)state;

	make(&s);
	pid_t child = test_fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	s.record.pid = child;
	assert_int_equal(process_tree_start_ticks(child, &s.record.pid_start), 0);
	assert_int_equal(state_open_init(&s, &err), -ESRCH);
	assert_int_equal(state_status_of(&s), STATE_STOPPED);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void a_lock_tells_created_from_running(void **state)
{
	auto_state struct state s = STATE_NULL;
	(void)state;

	make(&s);
	s.record.cgroup = (struct container_cgroup_record){ 0 };
	assert_int_equal(state_status_of(&s), STATE_RUNNING);
	auto_fd int fd = openat(s.dir_fd, STATE_WAITING, O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(state_status_of(&s), STATE_RUNNING);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(state_status_of(&s), STATE_CREATED);
	s.record.is_created = false;
	assert_int_equal(state_status_of(&s), STATE_CREATING);
}

static void only_ids_are_listed_in_order(void **state)
{
	auto_state struct state a = STATE_NULL, b = STATE_NULL;
	struct strings ids = { 0 };
	(void)state;

	assert_int_equal(state_list(&o, &arena, &ids, &err), 0);
	assert_int_equal(ids.count, 0);
	o.id = "two";
	assert_int_equal(state_create(&o, &a, &err), 0);
	o.id = "one";
	assert_int_equal(state_create(&o, &b, &err), 0);
	assert_int_equal(mkdirat(a.root_fd, ".hidden", 0700), 0);
	assert_int_equal(state_list(&o, &arena, &ids, &err), 0);
	assert_int_equal(ids.count, 2);
	assert_string_equal(ids.items[0], "one");
	assert_string_equal(ids.items[1], "two");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(only_safe_ids_are_accepted),
		TEST(a_record_is_read_as_it_was_written),
		TEST(an_id_is_made_once),
		TEST(a_removed_container_does_not_exist),
		TEST(who_waited_for_a_removed_container_is_told_that_it_is_gone),
		TEST(half_written_records_are_lost_not_misread),
		TEST(a_reused_pid_is_not_the_container),
		TEST(a_zombie_is_a_stopped_container),
		TEST(a_lock_tells_created_from_running),
		TEST(only_ids_are_listed_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
