/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock in force: a child builds a small tree of its own in new namespaces, stands in it,
 * applies the ruleset and tries what it forbids.  The tree is wholly writable, so what is
 * refused is refused by Landlock.
 */
/* WRAP: syscall */
#include "runtime/kernel/process/landlock.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "tests/forked.h"

/* What a child's trial comes to; it leaves by _exit. */
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition,                 \
				strerror(errno));                                                  \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/* --- other kernels ------------------------------------------------------------------- */

static int claimed_abi = -1; /* what the kernel says of itself; -1: the truth */
static unsigned restrict_flags;
static uint64_t scoped;

long __real_syscall(long nr, ...);
long __wrap_syscall(long nr, long a, long b, long c, long d);

/* Landlock's calls have four arguments at most, and landlock.c makes no other. */
long __wrap_syscall(long nr, long a, long b, long c, long d)
{
	bool asks_version = nr == SYS_landlock_create_ruleset && a == 0;
	if (asks_version && claimed_abi == 0)
		errno = EOPNOTSUPP;
	if (asks_version && claimed_abi >= 0)
		return claimed_abi == 0 ? -1 : claimed_abi;
	if (nr == SYS_landlock_create_ruleset && !asks_version)
		memcpy(&scoped, (const char *)a + 16, sizeof(scoped));
	if (nr == SYS_landlock_restrict_self)
		restrict_flags = (unsigned)b;
	return __real_syscall(nr, a, b, c, d);
}

#define NO_NAMESPACES 77 /* the host lets us have none */

static bool fails(long rc, int code)
{
	return rc == -1 && errno == code;
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

/* Root over a mount namespace of our own, also for an ordinary user. */
static void take_namespaces(void)
{
	char map[64];
	uid_t uid = getuid();
	gid_t gid = getgid();
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		_exit(NO_NAMESPACES);
	put("/proc/self/setgroups", "deny");
	(void)snprintf(map, sizeof(map), "0 %u 1", uid);
	put("/proc/self/uid_map", map);
	(void)snprintf(map, sizeof(map), "0 %u 1", gid);
	put("/proc/self/gid_map", map);
}

static void make_tree(void)
{
	static const char *const dirs[] = {
		"box", "tmp", "dev", "dev/shm", "proc", "usr", "bound"
	};
	CHECK(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	CHECK(mount("tree", "/tmp", "tmpfs", 0, "size=1m") == 0);
	CHECK(chdir("/tmp") == 0);
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		CHECK(mkdir(dirs[i], 0755) == 0);
	put("usr/file", "old");
	put("file", "bind");
	put("dev/null", "");
	CHECK(mount("/dev/null", "dev/null", NULL, MS_BIND, NULL) == 0);
	CHECK(mount("/proc", "proc", NULL, MS_BIND | MS_REC, NULL) == 0);
	CHECK(chroot(".") == 0 && chdir("/") == 0);
}

static void apply(const struct landlock_jail *spec)
{
	struct cj_error err = { 0 };
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	if (landlock_apply(spec, NULL, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		_exit(1);
	}
}

/* Runs `body` in a child below the tree, under the ruleset of `spec`. */
static void under_landlock(const struct landlock_jail *spec, void (*body)(void))
{
	int status;
	if (landlock_abi() == 0)
		skip(); /* this kernel has no Landlock, or it is not among its security modules */
	pid_t pid = test_fork();
	assert_return_code(pid, errno);
	if (pid == 0) {
		take_namespaces();
		make_tree();
		apply(spec);
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_NAMESPACES)
		skip(); /* user namespaces are closed to us here */
	assert_int_equal(status, 0);
}

static const struct landlock_jail plain = { 0 };

static int open_close(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0644);
	if (fd >= 0)
		close(fd);
	return fd < 0 ? -1 : 0;
}

/* --- files --------------------------------------------------------------------------- */

static void change_the_writable(void)
{
	static const char *const dirs[] = { "/box", "/tmp", "/dev/shm" };
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		CHECK(chdir(dirs[i]) == 0);
		put("a", "text");
		CHECK(truncate("a", 1) == 0);
		CHECK(mkdir("d", 0755) == 0);
		CHECK(rename("a", "d/b") == 0); /* to another directory: needs refer */
		CHECK(link("d/b", "c") == 0);
		CHECK(symlink("c", "s") == 0);
		CHECK(mkfifo("f", 0600) == 0);
		CHECK(unlink("d/b") == 0 && rmdir("d") == 0 && unlink("f") == 0);
	}
	CHECK(rename("/dev/shm/c", "/box/from-shm") == 0);
}

static void writable_places_can_be_changed_in_every_way(void **state)
{
	(void)state;
	under_landlock(&plain, change_the_writable);
}

static void change_the_rest(void)
{
	CHECK(fails(open_close("/usr/file", O_WRONLY), EACCES));
	CHECK(fails(open_close("/usr/file", O_RDWR), EACCES));
	CHECK(fails(open_close("/usr/new", O_WRONLY | O_CREAT), EACCES));
	CHECK(fails(mkdir("/usr/d", 0755), EACCES));
	CHECK(fails(unlink("/usr/file"), EACCES));
	CHECK(fails(symlink("x", "/new"), EACCES));
	CHECK(fails(rename("/usr/file", "/box/file"), EACCES));
	CHECK(
	    fails(link("/usr/file", "/box/file"), EXDEV)); /* it would escape what holds at /usr */
	CHECK(fails(mkdir("/dev/d", 0755), EACCES));
	if (landlock_abi() >= 3)
		CHECK(fails(truncate("/usr/file", 0), EACCES));
	CHECK(open_close("/usr/file", O_RDONLY) == 0);
	CHECK(open_close("/usr", O_RDONLY | O_DIRECTORY) == 0);
}

static void everything_else_can_be_read_and_not_changed(void **state)
{
	(void)state;
	under_landlock(&plain, change_the_rest);
}

static void use_devices_and_proc(void)
{
	put("/dev/null", "gone");
	CHECK(open_close("/dev/null", O_WRONLY | O_TRUNC) == 0);
	put("/proc/self/comm", "renamed");
	CHECK(open_close("/proc/self/comm", O_WRONLY | O_TRUNC) == 0);
	CHECK(fails(mknod("/box/null", S_IFCHR | 0600, 0x103), EACCES));
	CHECK(fails(mknod("/box/loop", S_IFBLK | 0600, 0x700), EACCES));
}

static void devices_and_proc_can_be_written_and_no_device_made(void **state)
{
	(void)state;
	under_landlock(&plain, use_devices_and_proc);
}

static void change_the_root(void)
{
	put("/usr/file", "new");
	put("/new", "new");
	CHECK(rename("/usr/file", "/box/file") == 0);
	CHECK(fails(mknod("/null", S_IFCHR | 0600, 0x103), EACCES));
}

static void a_writable_root_can_be_changed(void **state)
{
	(void)state;
	const struct landlock_jail spec = { .is_writable = true };
	under_landlock(&spec, change_the_root);
}

static void change_the_bound(void)
{
	put("/bound/new", "new");
	put("/file", "new");
	CHECK(fails(open_close("/usr/file", O_WRONLY), EACCES));
}

static void writable_binds_can_be_changed_and_others_not(void **state)
{
	(void)state;
	static const char *const places[] = { "/bound", "/file" }; /* a file takes fewer rights */
	const struct landlock_jail spec = { .places = places, .nplaces = 2 };
	under_landlock(&spec, change_the_bound);
}

static void a_place_that_is_missing_is_an_error(void **state)
{
	(void)state;
	static const char *const places[] = { "/nonexistent" };
	const struct landlock_jail spec = { .places = places, .nplaces = 1 };
	struct cj_error err = { 0 };
	int status;
	if (landlock_abi() == 0)
		skip();
	pid_t pid = test_fork();
	assert_return_code(pid, errno);
	if (pid == 0) {
		take_namespaces();
		make_tree();
		CHECK(landlock_apply(&spec, NULL, &err) == -ENOENT);
		CHECK(strcmp(err.msg, "open '/nonexistent': No such file or directory") == 0);
		put("/usr/file", "nothing was applied");
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_NAMESPACES)
		skip();
	assert_int_equal(status, 0);
}

/* --- processes and sockets -------------------------------------------------------------- */

static pid_t outsider; /* a process from before the ruleset */

static void signal_around(void)
{
	pid_t child = test_fork();
	if (child == 0)
		for (;;)
			pause();
	CHECK(child > 0);
	CHECK(kill(child, SIGKILL) == 0); /* init ends its payload */
	CHECK(waitpid(child, NULL, 0) == child);
	if (landlock_abi() >= 6) {
		CHECK(fails(kill(outsider, SIGTERM), EPERM));
		CHECK(fails(kill(outsider, 0), EPERM));
	}
}

static void signals_reach_the_own_domain_and_no_further(void **state)
{
	(void)state;
	outsider = test_fork();
	if (outsider == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* also when an assertion fails */
		for (;;)
			pause();
	}
	assert_return_code(outsider, errno);
	under_landlock(&plain, signal_around);
	kill(outsider, SIGKILL);
	assert_int_equal(waitpid(outsider, NULL, 0), outsider);
}

/* A payload that adds a ruleset of its own; its parent can still kill it. */
static void signal_a_nested_domain(void)
{
	int fds[2];
	char byte = 0;
	CHECK(pipe2(fds, O_CLOEXEC) == 0);
	pid_t child = test_fork();
	if (child == 0) {
		apply(&plain);
		CHECK(write(fds[1], "x", 1) == 1);
		for (;;)
			pause();
	}
	CHECK(read(fds[0], &byte, 1) == 1);
	CHECK(kill(child, SIGKILL) == 0);
	CHECK(waitpid(child, NULL, 0) == child);
}

static void signals_reach_a_domain_nested_inside(void **state)
{
	(void)state;
	under_landlock(&plain, signal_a_nested_domain);
}

static struct sockaddr_un abstract_name(pid_t pid, const char *what, socklen_t *out_size)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int size =
	    snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "cejail-%s-%d", what, (int)pid);
	*out_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)size);
	return name;
}

static int listen_abstract(const char *what)
{
	socklen_t size;
	struct sockaddr_un name = abstract_name(getppid(), what, &size);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&name, size) < 0 || listen(fd, 1) < 0)
		return -1;
	return fd;
}

static int connect_abstract(pid_t pid, const char *what)
{
	socklen_t size;
	struct sockaddr_un name = abstract_name(pid, what, &size);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return connect(fd, (struct sockaddr *)&name, size);
}

static void connect_around(void)
{
	CHECK(listen_abstract("inside") >= 0);
	CHECK(connect_abstract(getppid(), "inside") == 0);
	if (landlock_abi() >= 6)
		CHECK(fails(connect_abstract(getppid(), "outside"), EPERM));
}

static void abstract_sockets_outside_cannot_be_reached(void **state)
{
	(void)state;
	/* the name our child will look for: it calls us by getppid() */
	socklen_t size;
	struct sockaddr_un name = abstract_name(getpid(), "outside", &size);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_return_code(bind(fd, (struct sockaddr *)&name, size), errno);
	assert_return_code(listen(fd, 1), errno);
	assert_return_code(connect_abstract(getpid(), "outside"), errno);
	under_landlock(&plain, connect_around);
	close(fd);
}

/* --- kernels older than this one ----------------------------------------------------------- */

static void each_older_kernel_gets_only_rights_that_it_knows(void **state)
{
	(void)state;
	int newest = landlock_abi();
	for (claimed_abi = 2; claimed_abi < newest; claimed_abi++) {
		under_landlock(&plain, change_the_writable);
		under_landlock(&plain, use_devices_and_proc);
	}
	claimed_abi = -1;
}

static void ask_for_less(void)
{
	CHECK(scoped == 0);
	CHECK(restrict_flags == 0);
}

static void ask_for_all(void)
{
	CHECK(scoped == (landlock_abi() >= 6 ? 3 : 0));
	CHECK(restrict_flags == (landlock_abi() >= 7 ? 5 : 0));
}

static void scopes_and_log_flags_are_used_only_on_kernels_that_have_them(void **state)
{
	(void)state;
	under_landlock(&plain, ask_for_all);
	claimed_abi = landlock_abi() < 5 ? landlock_abi() : 5;
	under_landlock(&plain, ask_for_less);
	claimed_abi = -1;
}

static void a_kernel_without_landlock_changes_nothing(void **state)
{
	(void)state;
	struct cj_error err = { 0 };
	for (claimed_abi = 0; claimed_abi < 2; claimed_abi++) {
		assert_int_equal(landlock_abi(), 0);
		assert_int_equal(landlock_apply(&plain, NULL, &err), 0);
	}
	claimed_abi = -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writable_places_can_be_changed_in_every_way),
		cmocka_unit_test(everything_else_can_be_read_and_not_changed),
		cmocka_unit_test(devices_and_proc_can_be_written_and_no_device_made),
		cmocka_unit_test(a_writable_root_can_be_changed),
		cmocka_unit_test(writable_binds_can_be_changed_and_others_not),
		cmocka_unit_test(a_place_that_is_missing_is_an_error),
		cmocka_unit_test(signals_reach_the_own_domain_and_no_further),
		cmocka_unit_test(signals_reach_a_domain_nested_inside),
		cmocka_unit_test(abstract_sockets_outside_cannot_be_reached),
		cmocka_unit_test(each_older_kernel_gets_only_rights_that_it_knows),
		cmocka_unit_test(scopes_and_log_flags_are_used_only_on_kernels_that_have_them),
		cmocka_unit_test(a_kernel_without_landlock_changes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
