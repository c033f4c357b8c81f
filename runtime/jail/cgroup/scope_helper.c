/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the helper that asks the user's systemd, and reads its result.  Acts. */
#include "runtime/jail/cgroup/scope_helper.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/files/libexec_path.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/jail/cgroup/user_bus.h"

#define HELPER "scope-helper"

bool scope_helper_is_there(void)
{
	return user_bus_is_there();
}

/* The helper must not inherit signals that we block or ignore: they could keep it from ending. */
static int reset_signals(posix_spawnattr_t *attr)
{
	sigset_t none, all;
	sigemptyset(&none);
	sigfillset(&all);
	int code = posix_spawnattr_setsigmask(attr, &none);
	if (code == 0)
		code = posix_spawnattr_setsigdefault(attr, &all);
	if (code == 0)
		code =
		    posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	return code;
}

/* Its standard output is the pipe for its error. */
static int spawn_helper(const char *id, int out_fd, pid_t *out_pid, struct cj_error *err)
{
	char path[PATH_MAX], pid_text[16];
	if (libexec_path_find(HELPER, path, err) < 0)
		return -err->code;
	(void)snprintf(pid_text, sizeof(pid_text), "%d", getpid());
	char *const argv[] = { path, (char *)id, pid_text, NULL };

	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int code = posix_spawn_file_actions_init(&actions);
	if (code != 0)
		return cj_fail(err, code, "prepare to start '%s'", path);
	code = posix_spawn_file_actions_adddup2(&actions, out_fd, STDOUT_FILENO);
	if (code == 0)
		code = posix_spawnattr_init(&attr);
	if (code == 0) {
		code = reset_signals(&attr);
		if (code == 0)
			code = posix_spawn(out_pid, path, &actions, &attr, argv, environ);
		(void)posix_spawnattr_destroy(&attr); /* frees memory */
	}
	(void)posix_spawn_file_actions_destroy(&actions); /* frees memory */
	return code == 0 ? 0 : cj_fail(err, code, "start '%s'", path);
}

/* No error on the pipe and exit status 0: this process is in the scope.  The helper has a time
 * limit of its own. */
static int await_helper(int in_fd, pid_t pid, struct cj_error *err)
{
	struct cj_error said = { 0 };
	int wait_status = 0;
	ssize_t got = sys_read(in_fd, &said, sizeof(said));
	while (waitpid(pid, &wait_status, 0) < 0 && errno == EINTR)
		;
	if (got == 0 && WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0)
		return 0;
	if (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGALRM)
		return cj_reject_as(err, ETIMEDOUT, "the user manager didn't answer in time");
	if (got != (ssize_t)sizeof(said))
		return cj_reject_as(err, EPROTO, "the user manager's helper ended early");
	return cj_adopt(err, &said, "the user manager's helper");
}

int scope_helper_enter(const char *id, struct cj_error *err)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return cj_fail(err, errno, "create a pipe");
	auto_fd int in_fd = ends[0];

	pid_t pid = -1;
	int rc = spawn_helper(id, ends[1], &pid, err);
	cj_close(&ends[1]);
	return rc < 0 ? rc : await_helper(in_fd, pid, err);
}
