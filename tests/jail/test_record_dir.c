/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime directory: which place is taken, and which is not trusted.  The places
 * of the system are redirected into a directory of the test's own.
 */
#include "runtime/jail/record.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "runtime/base/scope.h"
#include "tests/forked.h"

/* WRAP: access open geteuid mkdirat sys_openat2 system_file_read */

static char base[64]; /* stands for "/" */
static uid_t as_uid;  /* whom the code believes to be; files keep their real owner */
static int mkdir_errno;
static const char *uid_map; /* NULL: cannot be read */

uid_t __real_geteuid(void);
uid_t __wrap_geteuid(void);
uid_t __wrap_geteuid(void)
{
	return as_uid;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
	char moved[512];
	(void)snprintf(moved, sizeof(moved), "%s%s", base, path);
	return __real_open(moved, flags, 0);
}

int __real_sys_openat2(int dir_fd, const char *path, int flags, mode_t mode, uint64_t resolve);
int __wrap_sys_openat2(int dir_fd, const char *path, int flags, mode_t mode, uint64_t resolve);
int __wrap_sys_openat2(int dir_fd, const char *path, int flags, mode_t mode, uint64_t resolve)
{
	char moved[512];
	(void)snprintf(moved, sizeof(moved), "%s%s", base, path);
	return __real_sys_openat2(dir_fd, moved, flags, mode, resolve);
}

int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);
int __wrap_access(const char *path, int mode)
{
	char moved[512];
	(void)snprintf(moved, sizeof(moved), "%s%s", base, path);
	return __real_access(moved, mode);
}

int __real_mkdirat(int dir_fd, const char *name, mode_t mode);
int __wrap_mkdirat(int dir_fd, const char *name, mode_t mode);
int __wrap_mkdirat(int dir_fd, const char *name, mode_t mode)
{
	if (mkdir_errno != 0) {
		errno = mkdir_errno;
		return -1;
	}
	return __real_mkdirat(dir_fd, name, mode);
}

ssize_t __wrap_system_file_read(int dir_fd, const char *name, char *buf, size_t size);
ssize_t __wrap_system_file_read(int dir_fd, const char *name, char *buf, size_t size)
{
	(void)dir_fd;
	assert_string_equal(name, "/proc/self/uid_map");
	return uid_map ? snprintf(buf, size, "%s", uid_map) : -EACCES;
}

static void make(const char *path, mode_t mode)
{
	char moved[512];
	(void)snprintf(moved, sizeof(moved), "%s%s", base, path);
	if (mkdir(moved, 0700) < 0 || chmod(moved, mode) < 0)
		abort();
}

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

static int begin(void **state)
{
	(void)state;
	as_uid = __real_geteuid();
	mkdir_errno = 0;
	uid_map = "0 0 4294967295\n";
	(void)unsetenv("XDG_RUNTIME_DIR");
	(void)snprintf(base, sizeof(base), "/tmp/cejail-test-places.XXXXXX");
	if (!mkdtemp(base))
		return -1;
	make("/run", 0755);
	make("/run/user", 0755);
	make("/dev", 0755);
	make("/dev/shm", 01777);
	return 0;
}

static int end(void **state)
{
	(void)state;
	pid_t pid = test_fork();
	if (pid == 0)
		_exit(execl("/bin/rm", "rm", "-rf", "--", base, (char *)NULL));
	int status = 0;
	return waitpid(pid, &status, 0) == pid ? status : -1;
}

static int open_dir(void)
{
	struct cj_error err = { 0 };
	int fd = record_open_dir(&err);
	if (fd < 0)
		print_message("%s (%s)\n", err.msg, err.hint);
	return fd;
}

static const char *user_place(const char *rest)
{
	static char path[128];
	(void)snprintf(path, sizeof(path), "/run/user/%u%s", as_uid, rest);
	return path;
}

static const char *memory_place(const char *rest)
{
	static char path[128];
	(void)snprintf(path, sizeof(path), "/dev/shm/cejail-%u%s", as_uid, rest);
	return path;
}

static void need_root(void)
{
	if (__real_geteuid() == 0)
		return;
	print_message("files of root are needed\n");
	skip();
}

/* What is asked of a user, asked by root, would be answered by /run/cejail: take that away. */
static void without_run(void)
{
	char moved[512];
	(void)snprintf(moved, sizeof(moved), "%s/run", base);
	if (chmod(moved, 0777) < 0)
		abort();
}

static void root_has_one_place_whatever_its_environment_says(void **state)
{
	(void)state;
	need_root();
	make("/session", 0700);
	(void)setenv("XDG_RUNTIME_DIR", "/session", 1);
	auto_fd int fd = open_dir();
	assert_true(fd >= 0);
	assert_true(exists("/run/cejail/runs"));
	assert_false(exists("/session/cejail"));
}

static void the_session_directory_comes_first(void **state)
{
	(void)state;
	without_run();
	make("/session", 0700);
	make(user_place(""), 0700);
	(void)setenv("XDG_RUNTIME_DIR", "/session", 1);
	auto_fd int fd = open_dir();
	struct stat st;
	assert_true(fd >= 0);
	assert_true(exists("/session/cejail/runs"));
	assert_false(exists(user_place("/cejail")));
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(fstatat(fd, "runs", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0700);

	auto_fd int again_fd = open_dir();
	assert_true(again_fd >= 0);
}

static void an_emptied_environment_still_finds_the_users_directory(void **state)
{
	(void)state;
	without_run();
	make(user_place(""), 0700);
	auto_fd int fd = open_dir();
	assert_true(fd >= 0);
	assert_true(exists(user_place("/cejail/runs")));
}

static void without_a_session_there_is_shared_memory_but_never_tmp(void **state)
{
	(void)state;
	without_run();
	make("/tmp", 01777);
	(void)setenv("XDG_RUNTIME_DIR", "/tmp", 1); /* everybody's: not taken */
	auto_fd int fd = open_dir();
	assert_true(fd >= 0);
	assert_true(exists(memory_place("/runs")));
	assert_false(exists("/tmp/cejail"));
}

static void a_relative_or_endless_session_directory_is_passed_over(void **state)
{
	(void)state;
	without_run();
	static char endless[600];
	memset(endless, '/', sizeof(endless) - 1);
	const char *const odd[] = { "", "run", endless };
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		(void)setenv("XDG_RUNTIME_DIR", odd[i], 1);
		auto_fd int fd = open_dir();
		assert_true(fd >= 0);
		assert_true(exists(memory_place("/runs")));
	}
}

static void a_session_directory_others_may_write_to_is_passed_over(void **state)
{
	(void)state;
	without_run();
	make("/session", 0770);
	(void)setenv("XDG_RUNTIME_DIR", "/session", 1);
	auto_fd int fd = open_dir();
	assert_true(fd >= 0);
	assert_false(exists("/session/cejail"));
}

/* Somebody was there first, and made it so. */
static void expect_refusal(const char *word)
{
	struct cj_error err = { 0 };
	int rc = record_open_dir(&err);
	assert_true(rc < 0);
	assert_non_null(strstr(err.msg, word));
	assert_true(err.hint[0] != '\0');
}

static void a_directory_of_the_wrong_mode_is_not_trusted(void **state)
{
	(void)state;
	without_run();
	make(memory_place(""), 0755);
	expect_refusal("mode 0755");
	assert_false(exists(memory_place("/runs")));
}

/* The socket of the service lies in it. */
static void others_may_pass_through_roots_directory_and_not_write_to_it(void **state)
{
	(void)state;
	need_root();
	make("/run/cejail", 0755);
	auto_fd int fd = open_dir();
	assert_true(fd >= 0);
	struct stat st;
	assert_int_equal(fstatat(fd, "runs", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0700);

	assert_int_equal(fchmod(fd, 0775), 0);
	expect_refusal("mode 0775");
}

static void a_directory_of_somebody_else_is_not_trusted(void **state)
{
	(void)state;
	need_root();
	without_run();
	make(memory_place(""), 0700);
	char moved[512];
	(void)snprintf(moved, sizeof(moved), "%s%s", base, memory_place(""));
	assert_int_equal(chown(moved, 1000, 1000), 0);
	expect_refusal("uid 1000");
}

static void a_link_is_not_followed(void **state)
{
	(void)state;
	without_run();
	make("/elsewhere", 0700);
	char moved[512], target[512];
	(void)snprintf(moved, sizeof(moved), "%s%s", base, memory_place(""));
	(void)snprintf(target, sizeof(target), "%s/elsewhere", base);
	assert_int_equal(symlink(target, moved), 0);
	expect_refusal(memory_place(""));
	assert_false(exists("/elsewhere/runs"));
}

static void the_inner_directory_is_checked_as_well(void **state)
{
	(void)state;
	without_run();
	make(memory_place(""), 0700);
	make(memory_place("/runs"), 0750);
	expect_refusal("/runs'");
}

static void without_any_place_the_hint_names_what_to_set(void **state)
{
	(void)state;
	struct cj_error err = { 0 };
	mkdir_errno = EROFS;
	assert_true(record_open_dir(&err) < 0);
	assert_non_null(strstr(err.hint, "XDG_RUNTIME_DIR"));
	mkdir_errno = ENOSPC; /* not a closed place: the disk is full, say that */
	assert_int_equal(record_open_dir(&err), -ENOSPC);
}

/* --- uid 0 of a user namespace -------------------------------------------------------------- */

static void the_root_of_a_user_namespace_has_the_place_of_its_user_outside(void **state)
{
	(void)state;
	need_root();
	without_run();
	uid_map = "0 1000 1\n";
	auto_fd int fd = open_dir();
	assert_true(fd >= 0);
	assert_true(exists("/dev/shm/cejail-1000/runs"));
	assert_false(exists("/dev/shm/cejail-0"));

	make("/run/user/1000", 0700);
	auto_fd int session_fd = open_dir();
	assert_true(session_fd >= 0);
	assert_true(exists("/run/user/1000/cejail/runs"));
}

static void without_a_readable_map_roots_place_has_its_own_id(void **state)
{
	(void)state;
	need_root();
	without_run();
	uid_map = NULL;
	auto_fd int fd = open_dir();
	assert_true(fd >= 0);
	assert_true(exists("/dev/shm/cejail-0/runs"));
}

/* --- the sockets of services ---------------------------------------------------------------- */

static struct record_sockets find(struct arena *a)
{
	struct record_sockets found;
	struct cj_error err = { 0 };
	assert_int_equal(record_find_sockets(a, &found, &err), 0);
	return found;
}

static void touch(const char *path)
{
	char moved[512];
	(void)snprintf(moved, sizeof(moved), "%s%s", base, path);
	auto_fd int fd = __real_open(moved, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
}

static void expect_found(const char *path)
{
	auto_arena struct arena a = { 0 };
	struct record_sockets found = find(&a);
	assert_non_null(found.of_user);
	assert_string_equal(found.of_user, path);
}

static void expect_none(const char *searched)
{
	auto_arena struct arena a = { 0 };
	struct record_sockets found = find(&a);
	assert_null(found.of_user);
	assert_non_null(strstr(found.searched, searched));
}

static void a_search_makes_no_directory_and_names_those_where_it_looked(void **state)
{
	(void)state;
	without_run();
	make(user_place(""), 0700);
	expect_none(user_place("/cejail"));
	expect_none(memory_place(""));
	assert_false(exists(user_place("/cejail")));
	assert_false(exists(memory_place("")));
}

static void a_search_goes_on_to_the_place_of_another_environment(void **state)
{
	(void)state;
	without_run();
	make("/session", 0700);
	make("/session/cejail", 0700);
	(void)setenv("XDG_RUNTIME_DIR", "/session", 1);
	make(memory_place(""), 0700);
	touch(memory_place("/" RECORD_SOCKET));
	expect_found(memory_place("/" RECORD_SOCKET));
	touch("/session/cejail/" RECORD_SOCKET);
	expect_found("/session/cejail/" RECORD_SOCKET);
}

static void a_search_skips_a_directory_that_others_may_write_to_and_says_why(void **state)
{
	(void)state;
	without_run();
	make("/session", 0700);
	make("/session/cejail", 0777);
	touch("/session/cejail/" RECORD_SOCKET);
	(void)setenv("XDG_RUNTIME_DIR", "/session", 1);
	expect_none("/session/cejail (skipped: cannot trust");
	expect_none("mode 0777");
	make(memory_place(""), 0700);
	touch(memory_place("/" RECORD_SOCKET));
	expect_found(memory_place("/" RECORD_SOCKET));
}

static void a_search_skips_what_somebody_else_left_in_shared_memory(void **state)
{
	(void)state;
	without_run();
	touch(memory_place(""));
	expect_none("it is no directory");
	if (__real_geteuid() != 0)
		return;
	char moved[512];
	(void)snprintf(moved, sizeof(moved), "%s%s", base, memory_place(""));
	assert_int_equal(unlink(moved), 0);
	make(memory_place(""), 0700);
	assert_int_equal(chown(moved, 1000, 1000), 0);
	expect_none("it belongs to uid 1000");
}

static void a_root_with_a_place_in_run_looks_nowhere_else(void **state)
{
	(void)state;
	need_root();
	make(memory_place(""), 0700);
	touch(memory_place("/" RECORD_SOCKET));
	expect_found(memory_place("/" RECORD_SOCKET));
	make("/run/cejail", 0755);
	expect_none("/run/cejail");
	touch("/run/cejail/" RECORD_SOCKET);
	expect_found("/run/cejail/" RECORD_SOCKET);
}

static void root_finds_no_service_in_a_directory_that_others_may_write_to(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	need_root();
	make("/run/cejail", 0775);
	touch("/run/cejail/" RECORD_SOCKET);
	struct record_sockets found = find(&a);
	assert_null(found.of_user);
	assert_null(found.of_system);
	assert_non_null(strstr(found.searched, "/run/cejail (skipped: cannot trust"));
}

/* True when a writable bind of `path` is refused. */
static bool is_guarded(const struct guard *g, const char *path)
{
	struct cj_error err = { 0 };
	auto_fd int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	int rc = guard_check(g, fd, path, &err);
	assert_true(rc == 0 || rc == -EINVAL);
	return rc < 0;
}

static void each_place_that_a_later_run_may_take_is_guarded(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct cj_error err = { 0 };
	struct guard guard = { 0 };
	without_run();
	make("/other", 0700);
	make("/session", 0770); /* not taken, but a program of its owner could change that */
	make(user_place(""), 0700);
	make(user_place("/bus"), 0700);
	make("/dev/shm/x", 0700);
	(void)setenv("XDG_RUNTIME_DIR", "/session", 1);
	auto_fd int fd = open_dir();
	assert_true(fd >= 0 && exists(user_place("/cejail/runs")));
	assert_int_equal(record_guard(&a, &guard, &err), 0);
	assert_true(is_guarded(&guard, "/") && is_guarded(&guard, "/dev/shm"));
	assert_true(is_guarded(&guard, "/session") && is_guarded(&guard, "/run/user"));
	assert_true(is_guarded(&guard, user_place("")));
	assert_true(is_guarded(&guard, user_place("/cejail")));
	assert_true(is_guarded(&guard, user_place("/cejail/runs")));
	assert_false(is_guarded(&guard, "/other") || is_guarded(&guard, "/dev/shm/x"));
	assert_false(is_guarded(&guard, user_place("/bus")));
}

static void what_a_link_on_the_way_lies_in_is_guarded(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct cj_error err = { 0 };
	struct guard guard = { 0 };
	char link[512];
	without_run();
	make("/home", 0755);
	make("/home/other", 0700);
	make("/real", 0700);
	make("/real/session", 0700);
	(void)snprintf(link, sizeof(link), "%s/home/link", base);
	assert_int_equal(symlink("../real", link), 0);
	(void)setenv("XDG_RUNTIME_DIR", "/home/link/session", 1);
	auto_fd int fd = open_dir();
	assert_true(fd >= 0 && exists("/real/session/cejail/runs"));
	assert_int_equal(record_guard(&a, &guard, &err), 0);
	assert_true(is_guarded(&guard, "/home") && is_guarded(&guard, "/real"));
	assert_true(is_guarded(&guard, "/real/session/cejail/runs"));
	assert_false(is_guarded(&guard, "/home/other"));
}

static void of_root_only_its_one_place_is_guarded(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct cj_error err = { 0 };
	struct guard guard = { 0 };
	need_root();
	assert_int_equal(record_guard(&a, &guard, &err), 0);
	assert_true(is_guarded(&guard, "/run")); /* where it would be made */
	auto_fd int fd = open_dir();
	assert_true(fd >= 0);
	guard = (struct guard){ 0 };
	assert_int_equal(record_guard(&a, &guard, &err), 0);
	assert_true(is_guarded(&guard, "/run/cejail") && is_guarded(&guard, "/run/cejail/runs"));
	assert_false(is_guarded(&guard, "/dev/shm") || is_guarded(&guard, "/run/user"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(root_has_one_place_whatever_its_environment_says),
		TEST(the_session_directory_comes_first),
		TEST(an_emptied_environment_still_finds_the_users_directory),
		TEST(without_a_session_there_is_shared_memory_but_never_tmp),
		TEST(a_relative_or_endless_session_directory_is_passed_over),
		TEST(a_session_directory_others_may_write_to_is_passed_over),
		TEST(a_directory_of_the_wrong_mode_is_not_trusted),
		TEST(others_may_pass_through_roots_directory_and_not_write_to_it),
		TEST(a_directory_of_somebody_else_is_not_trusted),
		TEST(a_link_is_not_followed),
		TEST(the_inner_directory_is_checked_as_well),
		TEST(without_any_place_the_hint_names_what_to_set),
		TEST(the_root_of_a_user_namespace_has_the_place_of_its_user_outside),
		TEST(without_a_readable_map_roots_place_has_its_own_id),
		TEST(a_search_makes_no_directory_and_names_those_where_it_looked),
		TEST(a_search_goes_on_to_the_place_of_another_environment),
		TEST(a_search_skips_a_directory_that_others_may_write_to_and_says_why),
		TEST(a_search_skips_what_somebody_else_left_in_shared_memory),
		TEST(a_root_with_a_place_in_run_looks_nowhere_else),
		TEST(root_finds_no_service_in_a_directory_that_others_may_write_to),
		TEST(each_place_that_a_later_run_may_take_is_guarded),
		TEST(what_a_link_on_the_way_lies_in_is_guarded),
		TEST(of_root_only_its_one_place_is_guarded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
