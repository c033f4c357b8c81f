/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of the host that no program may change, and the binds that would lead to one. */
#include "rootfs/guard.h"

#include <sys/mount.h>

#include "tests/rootfs/inside.h"

/* WRAP: statx open fopen */

static const char *failing = ""; /* a call */
static unsigned fails_after;     /* so many that succeed */

static bool fails(const char *call)
{
	if (strcmp(failing, call) != 0 || fails_after-- > 0)
		return false;
	failing = "";
	errno = EIO;
	return true;
}

int __real_statx(int fd, const char *path, int flags, unsigned mask, struct statx *out);
int __wrap_statx(int fd, const char *path, int flags, unsigned mask, struct statx *out);
int __wrap_statx(int fd, const char *path, int flags, unsigned mask, struct statx *out)
{
	return fails("statx") ? -1 : __real_statx(fd, path, flags, mask, out);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
	return fails("open") ? -1 : __real_open(path, flags, 0644);
}

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode)
{
	return fails("fopen") ? NULL : __real_fopen(path, mode);
}

/* "top/mid/own/part/file" and "top/mid/beside"; "own" and "part" are cejail's own. */
struct tree {
	char *place;
	struct arena arena;
	struct guard guard;
};

static struct tree make_tree(void)
{
	static const char *const dirs[] = {
		"top",      "top/mid",         "top/mid/beside", "top/mid/own", "top/mid/own/part",
		"top/view", "top/view/a \\ b", "top/viewer"
	};
	struct tree t = { .place = make_place() };
	struct cj_error err = { 0 };
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		assert_int_equal(mkdir(at(t.place, dirs[i]), 0755), 0);
	make_file(at(t.place, "top/mid/own/part/file"), "x");
	make_file(at(t.place, "top/mid/file"), "x");
	auto_fd int fd = open(at(t.place, "top/mid/own/part"), O_PATH | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(guard_add(&t.guard, fd, 2, "OWN", &t.arena, &err), 0);
	return t;
}

static void end_tree(struct tree *t)
{
	arena_fini(&t->arena);
	end_place(t->place);
}

static int check_path(const struct tree *t, const char *path, struct cj_error *err)
{
	*err = (struct cj_error){ 0 };
	auto_fd int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	assert_true(fd >= 0);
	return guard_check(&t->guard, fd, path, err);
}

static void refuses(const struct tree *t, const char *path, const char *words)
{
	struct cj_error err;
	assert_int_equal(check_path(t, path, &err), -EINVAL);
	if (!strstr(err.msg, words))
		print_error("message: %s\n", err.msg);
	assert_non_null(strstr(err.msg, words));
}

static void allows(const struct tree *t, const char *path)
{
	struct cj_error err;
	if (check_path(t, path, &err) < 0)
		print_error("message: %s\n", err.msg);
	assert_int_equal(err.code, 0);
}

static void what_leads_to_a_guarded_directory_or_is_part_of_it_is_refused(void **state)
{
	(void)state;
	struct tree t = make_tree();
	refuses(&t, "/", "it contains 'OWN'");
	refuses(&t, t.place, "it contains 'OWN'");
	refuses(&t, at(t.place, "top/mid"), "it contains 'OWN'");
	refuses(&t, at(t.place, "top/mid/own"), "it is part of 'OWN'");
	refuses(&t, at(t.place, "top/mid/own/part"), "it is part of 'OWN'");
	refuses(&t, at(t.place, "top/mid/own/part/file"), "it is part of 'OWN'");
	assert_int_equal(mkdir(at(t.place, "top/mid/own/part/new"), 0755), 0);
	refuses(&t, at(t.place, "top/mid/own/part/new"), "it is part of 'OWN'");
	allows(&t, at(t.place, "top/mid/beside"));
	allows(&t, at(t.place, "top/mid/file"));
	allows(&t, at(t.place, "top/view"));
	allows(&t, "/usr");
	allows(&t, "/proc");
	end_tree(&t);
}

static void a_directory_that_is_missing_guards_the_one_it_would_be_made_in(void **state)
{
	(void)state;
	struct tree t = make_tree();
	struct cj_error err = { 0 };
	t.guard = (struct guard){ 0 };
	auto_fd int fd = open(at(t.place, "top/mid"), O_PATH | O_CLOEXEC);
	assert_int_equal(guard_add(&t.guard, fd, 0, "OWN", &t.arena, &err), 0);
	refuses(&t, at(t.place, "top/mid"), "it contains 'OWN'");
	refuses(&t, at(t.place, "top"), "it contains 'OWN'");
	allows(&t, at(t.place, "top/mid/beside"));
	allows(&t, at(t.place, "top/mid/own"));
	end_tree(&t);
}

static void without_a_guarded_directory_nothing_is_refused(void **state)
{
	(void)state;
	const struct tree t = { 0 };
	allows(&t, "/");
}

static int check_while_failing(const char *call, unsigned after, const struct tree *t,
			       const char *path)
{
	struct cj_error err = { 0 };
	struct guard other = { 0 };
	struct arena a = { 0 };
	auto_fd int fd = __real_open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
	failing = call;
	fails_after = after;
	int rc = strcmp(call, "fopen") == 0 ? guard_check_mounts(&t->guard, fd, &err)
		 : t->guard.count == 0      ? guard_add(&other, fd, 1, "OWN", &a, &err)
					    : guard_check(&t->guard, fd, path, &err);
	arena_fini(&a);
	assert_string_equal(failing, "");
	return rc;
}

static void a_call_that_fails_refuses_the_bind(void **state)
{
	(void)state;
	struct tree t = make_tree();
	const struct tree none = { 0 };
	assert_int_equal(check_while_failing("statx", 0, &none, "/usr"), -EIO);
	assert_int_equal(check_while_failing("statx", 0, &t, at(t.place, "top/view")), -EIO);
	assert_int_equal(check_while_failing("statx", 2, &t, at(t.place, "top/view")), -EIO);
	assert_int_equal(check_while_failing("open", 0, &t, at(t.place, "top/mid/own/part/file")),
			 -EIO);
	assert_int_equal(check_while_failing("fopen", 0, &t, at(t.place, "top/view")), -EIO);
	end_tree(&t);
}

/* Runs `body` in a mount namespace of its own. */
static void apart(const struct tree *t, void (*body)(const struct tree *))
{
	pid_t pid = test_fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int flags = CLONE_NEWNS | (geteuid() == 0 ? 0 : CLONE_NEWUSER);
		if (unshare(flags) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
			_exit(2);
		inside_result->end = ENDED_FINE;
		body(t);
		_exit(0);
	}
	int status = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WEXITSTATUS(status) == 2 && !getenv("CEJAIL_TEST_STRICT")) {
		print_message("skipped: this host allows no mount namespace\n");
		skip();
	}
	if (inside_result->end == ENDED_CHECK)
		print_error("line %d: %s\n", inside_result->line, inside_result->check);
	assert_int_equal(status, 0);
}

static void try_apart(void (*body)(const struct tree *t))
{
	struct tree t = make_tree();
	share_result();
	apart(&t, body);
	end_tree(&t);
}

static bool is_refused_below(const struct tree *t, const char *name, const char *words)
{
	struct cj_error err = { 0 };
	auto_fd int fd = open(at(t->place, name), O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd >= 0 && guard_check_mounts(&t->guard, fd, &err) == -EINVAL &&
	       strstr(err.msg, words);
}

static bool is_allowed_below(const struct tree *t, const char *name)
{
	struct cj_error err = { 0 };
	auto_fd int fd = open(at(t->place, name), O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd >= 0 && guard_check_mounts(&t->guard, fd, &err) == 0;
}

static void mount_and_look(const struct tree *t)
{
	struct cj_error err = { 0 };
	char odd[PATH_MAX];
	(void)snprintf(odd, sizeof(odd), "%s", at(t->place, "top/view/a \\ b"));
	check(is_allowed_below(t, "top/view"));
	check(mount("/usr", odd, NULL, MS_BIND, NULL) == 0);
	check(is_allowed_below(t, "top/view"));
	check(umount2(odd, MNT_DETACH) == 0);
	check(mount(at(t->place, "top/mid"), odd, NULL, MS_BIND, NULL) == 0);
	check(is_refused_below(t, "top/view", "a mount below it that leads to 'OWN'"));
	check(is_refused_below(t, "top", "a mount below it"));
	check(is_allowed_below(t, "top/viewer"));

	/* What can't be looked at, no program can reach. */
	failing = "statx";
	fails_after = 0;
	check(is_allowed_below(t, "top/view") && strcmp(failing, "") == 0);

	/* Under another name it is the same directory. */
	auto_fd int fd = open(odd, O_PATH | O_DIRECTORY | O_CLOEXEC);
	check(guard_check(&t->guard, fd, odd, &err) == -EINVAL && strstr(err.msg, "contains"));
}

static void a_mount_that_shows_a_guarded_directory_is_found(void **state)
{
	(void)state;
	try_apart(mount_and_look);
}

/* A directory mounted below itself has itself above it, and is not the root. */
static void mount_within_itself(const struct tree *t)
{
	struct cj_error err = { 0 };
	struct tree other = { 0 };
	check(mount(at(t->place, "top"), at(t->place, "top/view"), NULL, MS_BIND, NULL) == 0);
	auto_fd int fd = open(at(t->place, "top/view"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	check(fd >= 0 && guard_add(&other.guard, fd, 1, "OWN", &other.arena, &err) == 0);
	auto_fd int above_fd = open(t->place, O_PATH | O_DIRECTORY | O_CLOEXEC);
	check(guard_check(&other.guard, above_fd, t->place, &err) == -EINVAL);
	check(strstr(err.msg, "contains"));
}

static void a_directory_that_is_mounted_below_itself_does_not_end_the_search(void **state)
{
	(void)state;
	try_apart(mount_within_itself);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_leads_to_a_guarded_directory_or_is_part_of_it_is_refused),
		cmocka_unit_test(a_directory_that_is_missing_guards_the_one_it_would_be_made_in),
		cmocka_unit_test(without_a_guarded_directory_nothing_is_refused),
		cmocka_unit_test(a_call_that_fails_refuses_the_bind),
		cmocka_unit_test(a_mount_that_shows_a_guarded_directory_is_found),
		cmocka_unit_test(a_directory_that_is_mounted_below_itself_does_not_end_the_search),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
