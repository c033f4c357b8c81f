/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: fstat statx */
/* Places in a hostile tree: nothing outside is opened or made, whatever is exchanged meanwhile. */
#include "rootfs/tree_place.h"

#include <linux/fs.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

#include "tests/forked.h"
#include "tests/rootfs/inside.h"

/* --- system calls that fail on demand -------------------------------------------------------- */

static int fstat_error, statx_error; /* 0: none */

int __real_fstat(int fd, struct stat *out);
int __wrap_fstat(int fd, struct stat *out);
int __wrap_fstat(int fd, struct stat *out)
{
	errno = fstat_error;
	return fstat_error ? -1 : __real_fstat(fd, out);
}

int __real_statx(int dir_fd, const char *path, int flags, unsigned mask, struct statx *out);
int __wrap_statx(int dir_fd, const char *path, int flags, unsigned mask, struct statx *out);
int __wrap_statx(int dir_fd, const char *path, int flags, unsigned mask, struct statx *out)
{
	errno = statx_error;
	return statx_error ? -1 : __real_statx(dir_fd, path, flags, mask, out);
}

static int end_failures(void **state)
{
	(void)state;
	fstat_error = statx_error = 0;
	return 0;
}

/* --- helpers ------------------------------------------------------------------------------ */

static int open_root(const char *path)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static bool is_same(int fd, const char *path)
{
	struct stat found, expected;
	return fstat(fd, &found) == 0 && stat(path, &expected) == 0 &&
	       found.st_dev == expected.st_dev && found.st_ino == expected.st_ino;
}

static int open_at(int root_fd, const char *path, enum tree_place place, bool follows_links,
		   struct cj_error *err)
{
	const struct tree_path at_path = { root_fd, path, path, follows_links };
	return tree_place_open(&at_path, place, err);
}

static int open_parent_at(int root_fd, const char *path, const char **out_name,
			  struct cj_error *err)
{
	const struct tree_path at_path = { root_fd, path, path, false };
	return tree_place_open_parent(&at_path, out_name, err);
}

/* The place is `expected`, below the root's directory. */
static void expect_place(const char *root, const char *path, enum tree_place place,
			 const char *expected)
{
	struct cj_error err = { 0 };
	int root_fd = open_root(root);
	int before = open_count();
	int fd = open_at(root_fd, path, place, true, &err);
	if (fd < 0)
		print_error("%s: %s\n", path, err.msg);
	assert_true(fd >= 0);
	assert_true(is_same(fd, at(root, expected)));
	assert_int_equal(open_count(), before + 1);
	close(fd);
	close(root_fd);
}

static void expect_refusal(const char *root, const char *path, enum tree_place place,
			   bool follows_links, int code)
{
	struct cj_error err = { 0 };
	int root_fd = open_root(root);
	int before = open_count();
	int rc = open_at(root_fd, path, place, follows_links, &err);
	if (rc != -code)
		print_error("%s: %d, %s\n", path, rc, err.msg);
	assert_int_equal(rc, -code);
	assert_int_equal(err.code, code);
	assert_int_equal(open_count(), before);
	close(root_fd);
}

/* A root "r" in a directory that also has a "secret". */
static char *make_root(void)
{
	char *place = make_place();
	assert_int_equal(mkdir(at(place, "r"), 0755), 0);
	assert_int_equal(mkdir(at(place, "secret"), 0755), 0);
	assert_int_equal(mkdir(at(place, "r/dir"), 0755), 0);
	make_file(at(place, "r/file"), "");
	return place;
}

static void link_to(const char *place, const char *name, const char *target)
{
	assert_int_equal(symlink(target, at(place, name)), 0);
}

/* --- what is found and made --------------------------------------------------------------- */

static void missing_components_are_made_with_exact_modes(void **state)
{
	(void)state;
	char *place = make_root();
	struct stat st;
	mode_t saved = umask(0);
	expect_place(at(place, "r"), "/dir", TREE_PLACE_DIRECTORY, "dir");
	expect_place(at(place, "r"), "/a/b/c", TREE_PLACE_DIRECTORY, "a/b/c");
	expect_place(at(place, "r"), "/a/f", TREE_PLACE_FILE, "a/f");
	expect_place(at(place, "r"), "/a/f", TREE_PLACE_FILE, "a/f");
	(void)umask(saved);
	assert_int_equal(stat(at(place, "r/a/b"), &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0755);
	assert_int_equal(stat(at(place, "r/a/f"), &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0644);
	assert_int_equal(st.st_size, 0);
	end_place(place);
}

static void links_are_followed_inside_the_root_only(void **state)
{
	(void)state;
	char *place = make_root();
	const char *root = at(place, "r");
	link_to(place, "r/absolute", "/dir");
	link_to(place, "r/above", "../../../../dir");
	link_to(place, "r/out", at(place, "secret"));
	expect_place(root, "/absolute/x", TREE_PLACE_DIRECTORY, "dir/x");
	root = at(place, "r");
	expect_place(root, "/above/y/z", TREE_PLACE_DIRECTORY, "dir/y/z");
	/* The link's target is made inside, and the real one not used. */
	char inside[PATH_MAX];
	(void)snprintf(inside, sizeof(inside), "%s/x", at(place, "secret") + 1);
	expect_place(at(place, "r"), "/out/x", TREE_PLACE_DIRECTORY, inside);
	assert_false(exists(at(place, "secret/x")));
	end_place(place);
}

/* As /etc/resolv.conf of many images. */
static void a_link_that_leads_to_nothing_gets_its_target(void **state)
{
	(void)state;
	char *place = make_root();
	link_to(place, "r/dir/resolv.conf", "../run/resolve/stub.conf");
	link_to(place, "r/lock", "first");
	link_to(place, "r/first", "/second/");
	link_to(place, "r/second", "./third");
	expect_place(at(place, "r"), "/dir/resolv.conf", TREE_PLACE_FILE, "run/resolve/stub.conf");
	expect_place(at(place, "r"), "/lock/sub/x", TREE_PLACE_DIRECTORY, "third/sub/x");
	link_to(place, "r/loop", "pool");
	link_to(place, "r/pool", "loop");
	expect_refusal(at(place, "r"), "/loop/x", TREE_PLACE_DIRECTORY, true, ELOOP);
	link_to(place, "r/deep", "none/../../secret");
	expect_refusal(at(place, "r"), "/deep/x", TREE_PLACE_DIRECTORY, true, EXDEV);
	assert_false(exists(at(place, "secret/x")));
	end_place(place);
}

static void no_link_is_followed_where_none_may_be(void **state)
{
	(void)state;
	char *place = make_root();
	const char *root = at(place, "r");
	link_to(place, "r/link", "dir");
	expect_refusal(root, "/link", TREE_PLACE_DIRECTORY, false, ELOOP);
	expect_refusal(root, "/link/new", TREE_PLACE_DIRECTORY, false, ELOOP);
	expect_refusal(root, "/new/../link", TREE_PLACE_GIVEN, false, ENOENT);
	assert_false(exists(at(place, "r/dir/new")));
	end_place(place);
}

static void links_of_procfs_are_never_followed(void **state)
{
	(void)state;
	expect_refusal("/proc", "/self/root", TREE_PLACE_GIVEN, true, ELOOP);
	expect_refusal("/proc", "/self/cwd/x", TREE_PLACE_DIRECTORY, true, ELOOP);
	expect_refusal("/proc", "/self/fd/0", TREE_PLACE_FILE, true, ELOOP);
}

static void the_root_itself_is_no_place(void **state)
{
	(void)state;
	char *place = make_root();
	const char *root = at(place, "r");
	link_to(place, "r/me", "/");
	link_to(place, "r/dir/up", "../..");
	expect_refusal(root, "/", TREE_PLACE_DIRECTORY, true, EBUSY);
	expect_refusal(root, "/me", TREE_PLACE_DIRECTORY, true, EBUSY);
	expect_refusal(root, "/dir/up", TREE_PLACE_GIVEN, true, EBUSY);
	end_place(place);
}

static void an_entry_of_another_type_is_refused(void **state)
{
	(void)state;
	char *place = make_root();
	const char *root = at(place, "r");
	expect_refusal(root, "/file", TREE_PLACE_DIRECTORY, true, ENOTDIR);
	expect_refusal(root, "/dir", TREE_PLACE_FILE, true, EISDIR);
	expect_refusal(root, "/file/below", TREE_PLACE_DIRECTORY, true, ENOTDIR);
	expect_refusal(root, "/none", TREE_PLACE_GIVEN, true, ENOENT);
	end_place(place);
}

static void only_a_path_that_leads_to_nothing_is_missing(void **state)
{
	(void)state;
	static const int codes[] = { ENOENT, ENOTDIR };
	char *place = make_root();
	expect_refusal(at(place, "r"), "/none", TREE_PLACE_GIVEN, true, ENOENT);
	expect_refusal(at(place, "r"), "/file/none", TREE_PLACE_GIVEN, true, ENOTDIR);
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		fstat_error = codes[i];
		expect_refusal(at(place, "r"), "/file", TREE_PLACE_GIVEN, true, ESTALE);
		fstat_error = 0;
		statx_error = codes[i];
		expect_refusal(at(place, "r"), "/file", TREE_PLACE_GIVEN, true, ESTALE);
		statx_error = 0;
	}
	end_place(place);
}

static void a_parent_is_reached_without_links(void **state)
{
	(void)state;
	char *place = make_root();
	struct cj_error err = { 0 };
	const char *name = NULL;
	int root_fd = open_root(at(place, "r"));
	int fd = open_parent_at(root_fd, "/new/sub/null", &name, &err);
	assert_true(fd >= 0);
	assert_true(is_same(fd, at(place, "r/new/sub")));
	assert_string_equal(name, "null");
	close(fd);
	fd = open_parent_at(root_fd, "/null", &name, &err);
	assert_true(is_same(fd, at(place, "r")));
	close(fd);
	link_to(place, "r/link", "dir");
	assert_int_equal(open_parent_at(root_fd, "/link/null", &name, &err), -ELOOP);
	assert_int_equal(open_parent_at(root_fd, "/dir/", &name, &err), -EINVAL);
	assert_int_equal(open_parent_at(root_fd, "null", &name, &err), -EINVAL);
	close(root_fd);
	end_place(place);
}

/* --- races --------------------------------------------------------------------------------- */

/* Exchanges two entries as fast as it can, until it is killed. */
static pid_t start_exchange(const char *place, const char *one, const char *other)
{
	pid_t pid = test_fork();
	if (pid != 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	char first[PATH_MAX], second[PATH_MAX];
	(void)snprintf(first, sizeof(first), "%s/%s", place, one);
	(void)snprintf(second, sizeof(second), "%s/%s", place, other);
	for (;;)
		(void)syscall(SYS_renameat2, AT_FDCWD, first, AT_FDCWD, second, RENAME_EXCHANGE);
}

static void stop(pid_t pid)
{
	int status;
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

#define RACE_ROUNDS 2000

/* CVE-2021-30465, CVE-2024-45310: a directory of the path turns into a link that leads outside, and
 * back. */
static void an_exchanged_link_never_leads_outside(void **state)
{
	(void)state;
	char *place = make_root();
	int found = 0, refused = 0;
	assert_int_equal(mkdir(at(place, "r/swap"), 0755), 0);
	link_to(place, "r/evil", at(place, "secret"));
	link_to(place, "r/up", "../secret");
	int root_fd = open_root(at(place, "r"));
	pid_t pids[] = { start_exchange(place, "r/swap", "r/evil"),
			 start_exchange(place, "r/swap", "r/up") };
	/* on a busy machine, those who exchange may not have run yet */
	for (int i = 0; i < RACE_ROUNDS || found == 0 || refused == 0; i++) {
		struct cj_error err = { 0 };
		char path[64];
		(void)snprintf(path, sizeof(path), "/swap/%d/x", i % 64);
		int fd = open_at(root_fd, path, TREE_PLACE_DIRECTORY, i % 2, &err);
		fd >= 0 ? found++ : refused++;
		cj_close(&fd);
	}
	stop(pids[0]), stop(pids[1]);
	int secret_fd = open(at(place, "secret"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fdopendir(secret_fd);
	assert_non_null(dir);
	for (struct dirent *e; (e = readdir(dir));)
		assert_true(e->d_name[0] == '.');
	closedir(dir);
	close(root_fd);
	end_place(place);
}

/* openat2(2) answers EAGAIN to ".." after any rename on the machine. */
static void renames_elsewhere_are_no_error(void **state)
{
	(void)state;
	char *place = make_root();
	make_file(at(place, "one"), ""), make_file(at(place, "other"), "");
	make_file(at(place, "two"), ""), make_file(at(place, "another"), "");
	make_file(at(place, "r/dir/resolv"), "");
	assert_int_equal(mkdir(at(place, "r/etc"), 0755), 0);
	link_to(place, "r/etc/found", "../etc/../dir/../dir/resolv");
	link_to(place, "r/etc/missing", "../etc/../dir/new");
	int root_fd = open_root(at(place, "r"));
	pid_t pids[] = { start_exchange(place, "one", "other"),
			 start_exchange(place, "two", "another") };
	for (int i = 0; i < RACE_ROUNDS; i++) {
		struct cj_error err = { 0 };
		bool is_missing = i % 2;
		int fd = open_at(root_fd, is_missing ? "/etc/missing" : "/etc/found",
				 TREE_PLACE_FILE, true, &err);
		if (fd < 0)
			print_error("round %d: %s\n", i, err.msg);
		assert_true(fd >= 0);
		close(fd);
		if (is_missing)
			assert_int_equal(unlink(at(place, "r/dir/new")), 0);
	}
	stop(pids[0]), stop(pids[1]);
	close(root_fd);
	end_place(place);
}

/* Another container that makes the same directories is no error. */
static void directories_that_appear_meanwhile_are_used(void **state)
{
	(void)state;
	char *place = make_root();
	int root_fd = open_root(at(place, "r"));
	pid_t pid = test_fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int i = 0;; i = (i + 1) % 1000) {
			char path[PATH_MAX];
			(void)snprintf(path, sizeof(path), "%s/r/m%d", place, i);
			(void)mkdir(path, 0755);
		}
	}
	for (int i = 0; i < 1000; i++) {
		struct cj_error err = { 0 };
		char path[64];
		(void)snprintf(path, sizeof(path), "/m%d/x", i);
		int fd = open_at(root_fd, path, TREE_PLACE_DIRECTORY, true, &err);
		if (fd < 0)
			print_error("%s\n", err.msg);
		assert_true(fd >= 0);
		close(fd);
	}
	stop(pid);
	close(root_fd);
	end_place(place);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(missing_components_are_made_with_exact_modes),
		cmocka_unit_test(links_are_followed_inside_the_root_only),
		cmocka_unit_test(a_link_that_leads_to_nothing_gets_its_target),
		cmocka_unit_test(no_link_is_followed_where_none_may_be),
		cmocka_unit_test(links_of_procfs_are_never_followed),
		cmocka_unit_test(the_root_itself_is_no_place),
		cmocka_unit_test(an_entry_of_another_type_is_refused),
		cmocka_unit_test_teardown(only_a_path_that_leads_to_nothing_is_missing,
					  end_failures),
		cmocka_unit_test(a_parent_is_reached_without_links),
		cmocka_unit_test(an_exchanged_link_never_leads_outside),
		cmocka_unit_test(renames_elsewhere_are_no_error),
		cmocka_unit_test(directories_that_appear_meanwhile_are_used),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
