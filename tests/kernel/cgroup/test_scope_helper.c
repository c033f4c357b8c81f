/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: posix_spawn pipe2 readlink */
/*
 * The helper that asks the user's systemd: where it is looked for, and what becomes of all it
 * may say.  A shell plays it here; the real one is met on the test machine.
 */
#include "runtime/kernel/cgroup/scope_helper.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>

#include <cmocka.h>
#include <spawn.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"

static struct {
	const char *script; /* what the helper does */
	int spawn_code, pipe_code, readlink_code;
	size_t self_length;          /* of the name our program then has; 0: its real one */
	char path[4200], words[512]; /* its arguments, a blank before each */
} play;

int __real_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]);
int __wrap_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]);
int __wrap_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
	char *const shell[] = { (char *)"sh", (char *)"-c", (char *)play.script, NULL };
	assert_string_equal(argv[0], path);
	(void)snprintf(play.path, sizeof(play.path), "%s", path);
	play.words[0] = '\0';
	for (size_t i = 1; argv[i]; i++) {
		size_t used = strlen(play.words);
		(void)snprintf(play.words + used, sizeof(play.words) - used, " %s", argv[i]);
	}
	if (play.spawn_code != 0)
		return play.spawn_code;
	return __real_posix_spawn(pid, "/bin/sh", actions, attributes, shell, envp);
}

int __real_pipe2(int ends[2], int flags);
int __wrap_pipe2(int ends[2], int flags);
int __wrap_pipe2(int ends[2], int flags)
{
	errno = play.pipe_code;
	return play.pipe_code != 0 ? -1 : __real_pipe2(ends, flags);
}

ssize_t __real_readlink(const char *path, char *out, size_t size);
ssize_t __wrap_readlink(const char *path, char *out, size_t size);
ssize_t __wrap_readlink(const char *path, char *out, size_t size)
{
	if (play.readlink_code != 0) {
		errno = play.readlink_code;
		return -1;
	}
	if (play.self_length == 0)
		return __real_readlink(path, out, size);
	assert_true(play.self_length <= size);
	memset(out, 'x', play.self_length);
	out[0] = out[play.self_length - 2] = '/';
	return (ssize_t)play.self_length;
}

static int setup(void **state)
{
	(void)state;
	memset(&play, 0, sizeof(play));
	return 0;
}

static int enter(const char *script, struct cj_error *err)
{
	*err = (struct cj_error){ 0 };
	play.script = script;
	int before = dup(0), after, rc = scope_helper_enter("some-id", err);
	close(before);
	after = dup(0);
	close(after);
	assert_int_equal(after, before); /* no descriptor stays */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	return rc;
}

static void the_helper_in_libexec_gets_the_id_and_our_pid(void **state)
{
	(void)state;
	struct cj_error err;
	char self[1024], expected[1100];
	assert_int_equal(enter("exit 0", &err), 0);

	ssize_t size = __real_readlink("/proc/self/exe", self, sizeof(self) - 1);
	assert_true(size > 0);
	self[size] = '\0';
	*strrchr(self, '/') = '\0';
	(void)snprintf(expected, sizeof(expected), "%s/../libexec/cejail/scope-helper", self);
	assert_string_equal(play.path, expected);
	(void)snprintf(expected, sizeof(expected), " enter user cejail-some-id.scope %d", getpid());
	assert_string_equal(play.words, expected);
}

static void a_containers_scope_is_asked_of_the_manager_that_owns_it(void **state)
{
	(void)state;
	struct cj_error err;
	char expected[128];
	struct container_scope scope = { .is_system = true,
					 .unit = "a-b.scope",
					 .slice = "machine.slice" };
	play.script = "exit 0";
	assert_int_equal(scope_helper_start(&scope, &err), 0);
	(void)snprintf(expected, sizeof(expected), " start system a-b.scope %d machine.slice",
		       getpid());
	assert_string_equal(play.words, expected);

	scope.is_system = false;
	assert_int_equal(scope_helper_attach(&scope, "/container", 77, &err), 0);
	assert_string_equal(play.words, " attach user a-b.scope 77 /container");
	assert_int_equal(scope_helper_stop(&scope, &err), 0);
	assert_string_equal(play.words, " stop user a-b.scope");

	play.script = "exit 1";
	assert_int_equal(scope_helper_stop(&scope, &err), -EPROTO);
}

static void the_helpers_error_becomes_ours(void **state)
{
	(void)state;
	struct cj_error said = { .code = ENOENT, .msg = "no manager answers" }, err;
	char path[] = "/tmp/cejail-scope-helper-XXXXXX", script[64];
	auto_fd int fd = mkstemp(path);
	assert_int_equal(fd_write_all(fd, &said, sizeof(said), path, &err), 0);
	(void)snprintf(script, sizeof(script), "cat %s; exit 1", path);
	int rc = enter(script, &err);
	unlink(path);
	assert_int_equal(rc, -ENOENT);
	assert_string_equal(err.msg, "no manager answers");
}

static void a_malformed_answer_of_the_helper_is_a_failure(void **state)
{
	(void)state;
	static const char *const scripts[] = {
		"exit 1",         /* silent */
		"kill -9 $$",     /* killed */
		"echo; exit 1",   /* too short */
		"echo ok; exit 0" /* talks, and says it went well */
	};
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		struct cj_error err;
		assert_int_equal(enter(scripts[i], &err), -EPROTO);
		assert_string_equal(err.msg, "the helper that asks systemd ended early");
	}
}

/* Its alarm clock is all that ends a helper whose bus never answers. */
static void the_helper_receives_signals_that_we_block_or_ignore(void **state)
{
	(void)state;
	struct cj_error err;
	sigset_t all, old;
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct sigaction before;
	sigfillset(&all);
	assert_int_equal(sigaction(SIGALRM, &ignore, &before), 0);
	assert_int_equal(sigprocmask(SIG_BLOCK, &all, &old), 0);
	int rc = enter("kill -ALRM $$; exit 0", &err);
	assert_int_equal(sigprocmask(SIG_SETMASK, &old, NULL), 0);
	assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
	assert_int_equal(rc, -ETIMEDOUT);
	assert_string_equal(err.msg, "the helper that asks systemd didn't answer in time");
}

/* A whole message, whose code says that nothing failed. */
static void an_error_without_a_code_is_a_failure(void **state)
{
	(void)state;
	char script[64];
	struct cj_error err;
	(void)snprintf(script, sizeof(script), "head -c %zu /dev/zero; exit 1",
		       sizeof(struct cj_error));
	assert_int_equal(enter(script, &err), -EPROTO);
}

static void a_missing_helper_is_named(void **state)
{
	(void)state;
	struct cj_error err;
	play.spawn_code = ENOENT;
	assert_int_equal(enter("", &err), -ENOENT);
	assert_non_null(strstr(err.msg, "/libexec/cejail/scope-helper"));
}

static void without_a_pipe_or_our_own_name_nothing_is_started(void **state)
{
	(void)state;
	struct cj_error err;
	play.pipe_code = EMFILE;
	assert_int_equal(enter("", &err), -EMFILE);
	play.pipe_code = 0;
	play.readlink_code = EACCES;
	assert_int_equal(enter("", &err), -EACCES);
	assert_non_null(strstr(err.msg, "/proc/self/exe"));
	play.readlink_code = 0;
	play.self_length = 4095;
	assert_int_equal(enter("", &err), -ENAMETOOLONG);
	assert_string_equal(play.path, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_helper_in_libexec_gets_the_id_and_our_pid, setup),
		cmocka_unit_test_setup(a_containers_scope_is_asked_of_the_manager_that_owns_it,
				       setup),
		cmocka_unit_test_setup(the_helpers_error_becomes_ours, setup),
		cmocka_unit_test_setup(a_malformed_answer_of_the_helper_is_a_failure, setup),
		cmocka_unit_test_setup(the_helper_receives_signals_that_we_block_or_ignore, setup),
		cmocka_unit_test_setup(an_error_without_a_code_is_a_failure, setup),
		cmocka_unit_test_setup(a_missing_helper_is_named, setup),
		cmocka_unit_test_setup(without_a_pipe_or_our_own_name_nothing_is_started, setup),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
