/* SPDX-License-Identifier: Apache-2.0 */
/* Host ids: chosen once each, given back by the kernel, written into a real user namespace. */
#include "runtime/kernel/ids/idmap.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "tests/forked.h"
#include "tests/temp_dir.h"

#define CHILDREN 200

static bool is_initial_namespace(void)
{
	char line[64] = "";
	auto_file FILE *f = fopen("/proc/self/uid_map", "re");
	unsigned inside, outside, count;
	return f && fgets(line, sizeof(line), f) &&
	       sscanf(line, "%u %u %u", &inside, &outside, &count) == 3 && count == UINT32_MAX;
}

static void need_real_root(void)
{
	if (geteuid() == 0 && is_initial_namespace())
		return;
	print_message("root of the initial user namespace is needed\n");
	skip();
}

/* Runs `body` in a child; its return value. */
static int in_child(int (*body)(void *), void *arg)
{
	pid_t pid = test_fork();
	if (pid == 0)
		_exit(body(arg));
	int status = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void root_gets_an_unused_id_and_never_its_own(void **state)
{
	(void)state;
	need_real_root();
	struct idmap map;
	struct cj_error err = { 0 };
	assert_int_equal(idmap_choose(temp_dir_fd, &map, &err), 0);
	assert_true(map.uid >= 0x70000000 && map.uid < 0x70010000);
	assert_int_equal(map.uid, map.gid);
	assert_true(map.may_setgroups);
	assert_true(map.lock_fd >= 0);
	idmap_release(&map);
	assert_int_equal(map.lock_fd, -1);
	idmap_release(&map);
}

struct crowd {
	int ids_fd, hold_fd; /* pipes: ids come out; the end of the other lets the children go */
};

static int take_id_and_hold(void *arg)
{
	struct crowd *crowd = arg;
	struct idmap map;
	struct cj_error err = { 0 };
	char end;
	if (idmap_choose(temp_dir_fd, &map, &err) < 0)
		return 1;
	if (write(crowd->ids_fd, &map.uid, sizeof(map.uid)) != sizeof(map.uid))
		return 2;
	return read(crowd->hold_fd, &end, 1) == 0 ? 0 : 3;
}

static int compare_ids(const void *a, const void *b)
{
	uid_t x = *(const uid_t *)a, y = *(const uid_t *)b;
	return x < y ? -1 : x > y;
}

static void two_hundred_jails_at_once_get_as_many_ids(void **state)
{
	(void)state;
	need_real_root();
	int ids[2], hold[2];
	static uid_t seen[CHILDREN];
	assert_int_equal(pipe(ids), 0);
	assert_int_equal(pipe(hold), 0);
	for (int i = 0; i < CHILDREN; i++) {
		pid_t pid = test_fork();
		if (pid == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* if the test fails */
			(void)close(hold[1]);
			_exit(take_id_and_hold(&(struct crowd){ ids[1], hold[0] }));
		}
		assert_true(pid > 0);
	}
	for (int i = 0; i < CHILDREN; i++)
		assert_int_equal(read(ids[0], &seen[i], sizeof(seen[i])), sizeof(seen[i]));
	(void)close(hold[1]);
	for (int i = 0; i < CHILDREN; i++) {
		int status;
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	(void)close(ids[0]), (void)close(ids[1]), (void)close(hold[0]);

	qsort(seen, CHILDREN, sizeof(seen[0]), compare_ids);
	for (int i = 1; i < CHILDREN; i++)
		assert_int_not_equal(seen[i - 1], seen[i]);
}

/* Every byte of "ids" but one, locked as 65535 other jails would hold them. */
static int lock_all_but(off_t free_index)
{
	int fd = openat(temp_dir_fd, "ids", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct flock low = { .l_type = F_WRLCK, .l_start = 0, .l_len = free_index };
	struct flock high = { .l_type = F_WRLCK, .l_start = free_index + 1, .l_len = 65536 };
	if (free_index > 0)
		assert_int_equal(fcntl(fd, F_OFD_SETLK, &low), 0);
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &high), 0);
	return fd;
}

static void the_last_free_id_is_found(void **state)
{
	(void)state;
	need_real_root();
	auto_fd int others_fd = lock_all_but(4711);
	assert_true(others_fd >= 0);
	struct idmap map;
	struct cj_error err = { 0 };
	assert_int_equal(idmap_choose(temp_dir_fd, &map, &err), 0);
	assert_int_equal(map.uid, 0x70000000 + 4711);

	struct idmap none;
	assert_int_equal(idmap_choose(temp_dir_fd, &none, &err), -EAGAIN);
	assert_non_null(strstr(err.msg, "65536"));
	assert_true(err.hint[0] != '\0');
	idmap_release(&map);
}

static int take_id_and_die(void *arg)
{
	(void)arg;
	struct idmap map;
	struct cj_error err;
	if (idmap_choose(temp_dir_fd, &map, &err) < 0)
		return 1;
	(void)raise(SIGKILL);
	return 0;
}

static void an_id_is_free_again_when_its_supervisor_is_killed(void **state)
{
	(void)state;
	need_real_root();
	auto_fd int others_fd = lock_all_but(7);
	assert_true(others_fd >= 0);
	assert_int_equal(in_child(take_id_and_die, NULL), 128 + SIGKILL);

	struct idmap map;
	struct cj_error err = { 0 };
	assert_int_equal(idmap_choose(temp_dir_fd, &map, &err), 0);
	assert_int_equal(map.uid, 0x70000000 + 7);
	idmap_release(&map);
}

static void a_link_in_place_of_the_ids_is_refused(void **state)
{
	(void)state;
	need_real_root();
	struct idmap map;
	struct cj_error err = { 0 };
	(void)unlinkat(temp_dir_fd, "ids", 0);
	assert_int_equal(symlinkat("/etc/passwd", temp_dir_fd, "ids"), 0);
	assert_int_equal(idmap_choose(temp_dir_fd, &map, &err), -ELOOP);
	assert_non_null(strstr(err.msg, "'ids'"));
	assert_int_equal(unlinkat(temp_dir_fd, "ids", 0), 0);
}

#define PLAIN_UID 1000
#define PLAIN_GID 1001

/* A change of ids takes /proc/self from us: proc(5), prctl(2) PR_SET_DUMPABLE. */
static int become(uid_t uid, gid_t gid)
{
	if (setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return -1;
	return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

static int choose_as_user(void *arg)
{
	(void)arg;
	struct idmap map = { .lock_fd = 99 };
	struct cj_error err;
	if (geteuid() == 0 && become(PLAIN_UID, PLAIN_GID) < 0)
		return 1;
	if (idmap_choose(-1, &map, &err) < 0)
		return 2;
	if (map.uid != geteuid() || map.gid != getegid())
		return 3;
	return map.may_setgroups || map.lock_fd != -1 ? 4 : 0;
}

static void an_ordinary_caller_maps_itself_and_needs_no_directory(void **state)
{
	(void)state;
	assert_int_equal(in_child(choose_as_user, NULL), 0);
}

/* --- in user namespaces ---------------------------------------------------------- */

static int put(const char *path, const char *text)
{
	auto_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd < 0 || write(fd, text, strlen(text)) < 0 ? -1 : 0;
}

/* As root in a user namespace that has only one id, this one outside. */
struct lone {
	unsigned outside;
	int expected;
};

static int choose_as_lone_root(void *arg)
{
	const struct lone *lone = arg;
	char map_text[32];
	struct idmap map;
	struct cj_error err = { 0 };
	if (lone->outside > 0 && become(lone->outside, lone->outside) < 0)
		return 1;
	if (unshare(CLONE_NEWUSER) < 0)
		return 77;
	(void)snprintf(map_text, sizeof(map_text), "0 %u 1", lone->outside);
	if (put("/proc/self/uid_map", map_text) < 0 || put("/proc/self/setgroups", "deny") < 0 ||
	    put("/proc/self/gid_map", map_text) < 0)
		return 2;
	int rc = idmap_choose(-1, &map, &err);
	if (rc != lone->expected)
		return 3;
	if (rc == 0)
		return map.uid == 0 && map.gid == 0 && !map.may_setgroups ? 0 : 4;
	return strstr(err.msg, "uid 0") && err.hint[0] != '\0' ? 0 : 5;
}

static void skip_without_namespaces(int rc)
{
	if (rc != 77)
		return;
	print_message("user namespaces are not for this user\n");
	skip();
}

static void a_lone_root_that_is_a_user_outside_maps_itself(void **state)
{
	(void)state;
	need_real_root();
	int rc = in_child(choose_as_lone_root, &(struct lone){ PLAIN_UID, 0 });
	skip_without_namespaces(rc);
	assert_int_equal(rc, 0);
}

static void a_lone_root_that_is_root_outside_is_refused(void **state)
{
	(void)state;
	need_real_root();
	int rc = in_child(choose_as_lone_root, &(struct lone){ 0, -EPERM });
	skip_without_namespaces(rc);
	assert_int_equal(rc, 0);
}

/* A child in a new user namespace that reports its ids once it may go on. */
static pid_t spawn_unmapped(int *out_go_fd, int *out_ids_fd)
{
	int go[2], ids[2];
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	assert_int_equal(pipe2(ids, O_CLOEXEC), 0);
	struct clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
	pid_t pid = sys_clone3(&args);
	if (pid == 0) {
		char end;
		(void)close(go[1]);
		(void)!read(go[0], &end, 1);
		unsigned seen[2] = { getuid(), getgid() };
		_exit(write(ids[1], seen, sizeof(seen)) == sizeof(seen) ? 0 : 1);
	}
	(void)close(go[0]), (void)close(ids[1]);
	*out_go_fd = go[1];
	*out_ids_fd = ids[0];
	return pid;
}

struct written {
	bool has_setgroups;
};

static int write_and_look(void *arg)
{
	const struct written *w = arg;
	struct idmap map;
	struct cj_error err = { 0 };
	int go_fd, ids_fd;
	unsigned seen[2] = { 0 };
	char path[64], text[16] = "";
	if (!w->has_setgroups && geteuid() == 0 && become(PLAIN_UID, PLAIN_GID) < 0)
		return 1;
	pid_t pid = spawn_unmapped(&go_fd, &ids_fd);
	if (pid < 0)
		return 77;
	if (idmap_choose(temp_dir_fd, &map, &err) < 0 || idmap_write(&map, pid, &err) < 0)
		return 2;

	(void)snprintf(path, sizeof(path), "/proc/%d/setgroups", (int)pid);
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return 3;
	if (strcmp(text, w->has_setgroups ? "allow\n" : "deny\n") != 0)
		return 4;
	(void)close(go_fd);
	if (read(ids_fd, seen, sizeof(seen)) != sizeof(seen) || waitpid(pid, NULL, 0) != pid)
		return 5;
	/* The child's own ids are the caller's: inside they have a name only where they map to it.
	 */
	bool is_own = map.uid == geteuid();
	return seen[0] == (is_own ? IDMAP_INSIDE_UID : 65534) &&
		       seen[1] == (is_own ? IDMAP_INSIDE_GID : 65534)
		   ? 0
		   : 6;
}

static void root_writes_a_map_without_uid_0(void **state)
{
	(void)state;
	need_real_root();
	int rc = in_child(write_and_look, &(struct written){ .has_setgroups = true });
	skip_without_namespaces(rc);
	assert_int_equal(rc, 0);
}

static void a_user_writes_a_map_and_denies_setgroups(void **state)
{
	(void)state;
	int rc = in_child(write_and_look, &(struct written){ .has_setgroups = false });
	skip_without_namespaces(rc);
	assert_int_equal(rc, 0);
}

static void a_map_that_is_refused_names_the_file_and_the_text(void **state)
{
	(void)state;
	struct idmap map = { .uid = 12345, .gid = 12345, .lock_fd = -1 };
	struct cj_error err = { 0 };
	assert_true(idmap_write(&map, getpid(), &err) < 0); /* ours was written long ago */
	assert_non_null(strstr(err.msg, "/uid_map'"));
	assert_non_null(strstr(err.msg, "'1000 12345 1'"));
	assert_int_equal(idmap_write(&map, 0x3fffffff, &err), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(root_gets_an_unused_id_and_never_its_own),
		cmocka_unit_test(two_hundred_jails_at_once_get_as_many_ids),
		cmocka_unit_test(the_last_free_id_is_found),
		cmocka_unit_test(an_id_is_free_again_when_its_supervisor_is_killed),
		cmocka_unit_test(a_link_in_place_of_the_ids_is_refused),
		cmocka_unit_test(an_ordinary_caller_maps_itself_and_needs_no_directory),
		cmocka_unit_test(a_lone_root_that_is_a_user_outside_maps_itself),
		cmocka_unit_test(a_lone_root_that_is_root_outside_is_refused),
		cmocka_unit_test(root_writes_a_map_without_uid_0),
		cmocka_unit_test(a_user_writes_a_map_and_denies_setgroups),
		cmocka_unit_test(a_map_that_is_refused_names_the_file_and_the_text),
	};
	return cmocka_run_group_tests(tests, temp_dir_make, temp_dir_remove);
}
