/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: zygote_check_memory */
/* WRAP: libexec_find getpid access sys_clone3 sys_open_tree sys_mount_setattr */
/* How a zygote is executed, and what can't be one. */
#include "tests/service/queue/zygotes.h"

#include <poll.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "runtime/jail/zygote/zygote_tree.h"

static const char *failing = "";
static int late_from; /* processes before this one get a low pid; 0: none does */

pid_t __real_getpid(void);
pid_t __wrap_getpid(void);
pid_t __wrap_getpid(void)
{
	return late_from > 0 ? 2 : __real_getpid();
}

int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);
int __wrap_access(const char *path, int mode)
{
	errno = EIO;
	return strcmp(failing, "access") == 0 ? -1 : __real_access(path, mode);
}

/* A young pid namespace: the first pids are low. */
static int clones;
pid_t __real_sys_clone3(const struct clone_args *args);
pid_t __wrap_sys_clone3(const struct clone_args *args);
pid_t __wrap_sys_clone3(const struct clone_args *args)
{
	errno = EIO;
	if (strcmp(failing, "sys_clone3") == 0)
		return -1;
	bool is_zygote = !(args->flags & CLONE_NEWUSER);
	if (!is_zygote || late_from == 0)
		return __real_sys_clone3(args);
	if (++clones >= late_from)
		late_from = 0;
	bool is_low = late_from > 0;
	pid_t pid = __real_sys_clone3(args);
	return pid > 0 && is_low ? 2 : pid;
}

int __real_sys_open_tree(int fd, const char *path, unsigned flags);
int __wrap_sys_open_tree(int fd, const char *path, unsigned flags);
int __wrap_sys_open_tree(int fd, const char *path, unsigned flags)
{
	errno = EIO;
	return strcmp(failing, "sys_open_tree") == 0 ? -1 : __real_sys_open_tree(fd, path, flags);
}

int __real_sys_mount_setattr(int fd, const char *path, unsigned flags, struct mount_attr *attr);
int __wrap_sys_mount_setattr(int fd, const char *path, unsigned flags, struct mount_attr *attr);
int __wrap_sys_mount_setattr(int fd, const char *path, unsigned flags, struct mount_attr *attr)
{
	errno = EIO;
	return strcmp(failing, "sys_mount_setattr") == 0
		   ? -1
		   : __real_sys_mount_setattr(fd, path, flags, attr);
}

/* --- the zygote ------------------------------------------------------------------------- */

static void a_zygote_has_its_script_on_descriptor_3(void **state)
{
	(void)state;
	struct run r;
	run_init(&r, NULL, "echo run");
	/* The shell's own forks would serve: only exec(3), and the output is its end's. */
	r.launcher_words[2] = "exec cat <&3 >&2";
	r.launcher.script = "words";
	int ends[2];
	char text[64] = "";
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(zygote_spawn(&r.launcher, ends[1], &r.zygote, &r.err), 0);
	close(ends[1]);
	assert_true(read(ends[0], text, sizeof(text) - 1) > 0);
	assert_string_equal(text, "words");
	close(ends[0]);
	run_fini(&r);
}

static void a_zygote_has_a_pid_that_no_process_of_a_jail_begins_with(void **state)
{
	(void)state;
	struct run r;
	run_init(&r, NULL, "echo run");
	clones = 0;
	late_from = 5;
	spawn(&r);
	assert_int_equal(clones, 5);
	assert_true(r.zygote.pid > 300);
	run_jail(&r);
	assert_output(&r, 0, "run\n");
	run_fini(&r);
	clones = 0;
	late_from = 10000;
	run_init(&r, NULL, "");
	assert_int_equal(zygote_spawn(&r.launcher, -1, &r.zygote, &r.err), -EAGAIN);
	assert_said(&r, "get a pid above 300 for the zygote");
	late_from = 0;
	run_fini(&r);
}

static void a_zygotes_error_output_is_the_log(void **state)
{
	(void)state;
	int ends[2];
	char text[64] = "";
	struct run r;
	run_init(&r, "echo to the log >&2; echo nowhere; (" BECOME "); :", "");
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(zygote_spawn(&r.launcher, ends[1], &r.zygote, &r.err), 0);
	close(ends[1]);
	assert_int_equal(zygote_await_ready(&r.zygote, 60000, &r.err), 0);
	assert_true(read(ends[0], text, sizeof(text) - 1) > 0);
	assert_string_equal(text, "to the log\n");
	close(ends[0]);
	run_fini(&r);
}

static void an_interpreter_that_ends_or_never_forks_is_not_ready(void **state)
{
	(void)state;
	struct run r;
	run_init(&r, "exit 3", "");
	assert_int_equal(zygote_spawn(&r.launcher, -1, &r.zygote, &r.err), 0);
	assert_int_equal(zygote_await_ready(&r.zygote, 60000, &r.err), -EPIPE);
	assert_string_equal(r.err.stage, "zygote");
	run_fini(&r);
	run_init(&r, "read -r nothing <&3; :", "");
	assert_int_equal(zygote_spawn(&r.launcher, -1, &r.zygote, &r.err), 0);
	assert_int_equal(zygote_await_ready(&r.zygote, 200, &r.err), -ETIMEDOUT);
	run_fini(&r);
}

/* --- what can't be one ------------------------------------------------------------------ */

static void refuse(struct run *r, int code, const char *said)
{
	assert_int_equal(zygote_spawn(&r->launcher, -1, &r->zygote, &r->err), -code);
	assert_said(r, said);
	assert_string_equal(r->err.stage, "zygote");
	run_fini(r);
}

static void what_can_be_no_zygote_is_refused(void **state)
{
	(void)state;
	struct run r;
	run_init(&r, NULL, "");
	r.launcher_words[0] = "no-such-program";
	refuse(&r, ENOENT, "zygote: find the interpreter 'no-such-program'");
	run_init(&r, NULL, "");
	r.launcher_words[0] = "/etc/passwd";
	refuse(&r, EACCES, "find the interpreter '/etc/passwd'");
	run_init(&r, NULL, "");
	r.env[1] = "LD_PRELOAD=x.so";
	refuse(&r, EINVAL, "the profile sets LD_PRELOAD");
}

static void an_interpreter_is_searched_in_the_programs_path(void **state)
{
	(void)state;
	struct run r;
	run_init(&r, NULL, "echo run");
	r.env[0] = "PATH=relative:/no/such:/usr/bin";
	r.launcher_words[0] = r.words[0] = "sh";
	spawn(&r);
	run_jail(&r);
	assert_output(&r, 0, "run\n");
	run_fini(&r);
}

static void a_call_that_fails_is_reported(void **state)
{
	(void)state;
	static const struct {
		const char *call, *said;
	} cases[] = {
		{ "access", "zygote: read '" },
		{ "sys_clone3", "create a mount namespace" },
		{ "sys_open_tree", "copy the mount tree" },
		{ "sys_mount_setattr", "make a copy of the mount tree read-only" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct run r;
		run_init(&r, NULL, "");
		failing = cases[i].call;
		int rc = zygote_spawn(&r.launcher, -1, &r.zygote, &r.err);
		failing = "";
		assert_int_equal(rc, -EIO);
		assert_said(&r, cases[i].said);
		run_fini(&r);
	}
}

/* --- the tree --------------------------------------------------------------------------- */

static void a_file_of_the_tree_stays_read_only_without_it(void **state)
{
	(void)state;
	struct cj_error err = { 0 };
	char path[64];
	struct zygote_tree tree;
	assert_int_equal(zygote_tree_open(&tree, &err), 0);
	int fd = zygote_tree_find(tree.tree_fd, "sh", "/bin", &err);
	assert_true(fd >= 0);
	zygote_tree_close(&tree);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(chmod(path, 0755), -1);
	assert_int_equal(errno, EROFS);
	assert_int_equal(open(path, O_WRONLY), -1);
	close(fd);
}

static void a_program_outside_usr_is_refused(void **state)
{
	(void)state;
	struct cj_error err = { 0 };
	auto_zygote_tree tree;
	assert_int_equal(zygote_tree_open(&tree, &err), 0);
	char self[PATH_MAX];
	ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);
	assert_true(size > 0);
	self[size] = '\0';
	if (strncmp(self, "/usr/", 5) != 0)
		assert_int_equal(zygote_tree_find(tree.tree_fd, self, "", &err), -EINVAL);
	assert_int_equal(zygote_tree_find(tree.tree_fd, "/proc/self/exe", "", &err), -ELOOP);
}

static void the_empty_directory_takes_files_and_goes_with_its_descriptor(void **state)
{
	(void)state;
	struct cj_error err = { 0 };
	struct zygote_tree tree;
	char path[64];
	struct stat st, root;
	assert_int_equal(zygote_tree_open(&tree, &err), 0);
	assert_int_equal(fstat(tree.scratch_fd, &st), 0);
	assert_int_equal(stat("/tmp", &root), 0);
	assert_int_not_equal(st.st_dev, root.st_dev);
	assert_int_equal(st.st_uid, geteuid());
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/cache", tree.scratch_fd);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(mkdir(path, 0700), 0);
	zygote_tree_close(&tree);
	assert_int_equal(access(path, F_OK), -1);
}

/* --- plans ------------------------------------------------------------------------------ */

static void a_plan_that_changes_the_interpreter_can_have_no_zygote(void **state)
{
	(void)state;
	struct plan plan = simple_plan();
	assert_null(zygote_refusal(&plan));
	plan.limits.nofile = 16;
	assert_non_null(zygote_refusal(&plan));
	plan.limits.nofile = 64;
	assert_null(zygote_refusal(&plan));
	plan.tty = true;
	assert_non_null(zygote_refusal(&plan));
	plan = simple_plan();
	plan.root.kind = ROOT_LAYERS;
	assert_non_null(zygote_refusal(&plan));
	plan = simple_plan();
	plan.root.writable = true;
	assert_non_null(zygote_refusal(&plan));

	static const struct {
		const char *target;
		bool is_refused;
	} cases[] = { { "/usr", true },       { "/usr/lib/python3", true }, { "/lib64", true },
		      { "/etc/ssl", true },   { "/usrx", false },           { "/data", false },
		      { "/box/data", false }, { "/libx", false },           { "/bin/sh", true } };
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bind_spec bind = { .kind = BIND_READ_ONLY, .target = cases[i].target };
		plan = simple_plan();
		plan.root.binds = &bind;
		plan.root.nbinds = 1;
		assert_int_equal(zygote_refusal(&plan) != NULL, cases[i].is_refused);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_zygote_has_its_script_on_descriptor_3),
		cmocka_unit_test(a_zygote_has_a_pid_that_no_process_of_a_jail_begins_with),
		cmocka_unit_test(a_zygotes_error_output_is_the_log),
		cmocka_unit_test(an_interpreter_that_ends_or_never_forks_is_not_ready),
		cmocka_unit_test(what_can_be_no_zygote_is_refused),
		cmocka_unit_test(an_interpreter_is_searched_in_the_programs_path),
		cmocka_unit_test(a_call_that_fails_is_reported),
		cmocka_unit_test(a_file_of_the_tree_stays_read_only_without_it),
		cmocka_unit_test(a_program_outside_usr_is_refused),
		cmocka_unit_test(the_empty_directory_takes_files_and_goes_with_its_descriptor),
		cmocka_unit_test(a_plan_that_changes_the_interpreter_can_have_no_zygote),
	};
	return RUN_TESTS_OF_JAILS(tests);
}
