/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a helper and waits for its answer. */
#include "runtime/base/files/libexec.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

#define ARGS_MAX 5

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

/* Its standard output is the pipe. */
static int spawn_helper(const struct libexec_call *call, int out_fd, pid_t *out_pid,
			struct cj_error *err)
{
	char path[PATH_MAX], *argv[ARGS_MAX + 2] = { path };
	if (libexec_find(call->name, path, err) < 0)
		return -err->code;
	for (size_t i = 0; i < ARGS_MAX && call->args[i]; i++)
		argv[i + 1] = (char *)call->args[i];

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

/* Up to the end of file; `max` bytes mean that there may be more. */
static size_t read_all(int in_fd, uint8_t *out, size_t max)
{
	size_t size = 0;
	while (size < max) {
		ssize_t got = sys_read(in_fd, out + size, max - size);
		if (got <= 0)
			break;
		size += (size_t)got;
	}
	return size;
}

static ssize_t take_result(const struct libexec_call *call, int wait_status, const uint8_t *bytes,
			   size_t size, struct cj_error *err)
{
	struct cj_error said;
	if (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGALRM)
		return cj_reject_as(err, ETIMEDOUT, "%s didn't answer in time", call->what);
	if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == EXIT_SUCCESS &&
	    size <= call->answer_max) {
		if (size > 0)
			memcpy(call->answer, bytes, size);
		return (ssize_t)size;
	}
	if (!WIFEXITED(wait_status) || WEXITSTATUS(wait_status) == EXIT_SUCCESS ||
	    size != sizeof(said))
		return cj_reject_as(err, EPROTO, "%s ended early", call->what);
	memcpy(&said, bytes, sizeof(said));
	return cj_adopt(err, &said, call->what);
}

static ssize_t await_helper(const struct libexec_call *call, int in_fd, pid_t pid,
			    struct cj_error *err)
{
	const size_t least = sizeof(struct cj_error);
	const size_t max = (call->answer_max > least ? call->answer_max : least) + 1;
	auto_free uint8_t *bytes = malloc(max);
	size_t size = bytes ? read_all(in_fd, bytes, max) : 0;
	int wait_status = 0;
	cj_close(&in_fd);                        /* it does not wait for a reader of more */
	(void)sys_waitpid(pid, &wait_status, 0); /* our child */
	if (!bytes)
		return cj_fail(err, ENOMEM, "read the answer of %s", call->what);
	return take_result(call, wait_status, bytes, size, err);
}

ssize_t libexec_run(const struct libexec_call *call, struct cj_error *err)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return cj_fail(err, errno, "create a pipe");

	pid_t pid = -1;
	int rc = spawn_helper(call, ends[1], &pid, err);
	cj_close(&ends[1]);
	if (rc < 0) {
		cj_close(&ends[0]);
		return rc;
	}
	return await_helper(call, ends[0], pid, err);
}

/* --- the helper's side -------------------------------------------------------- */

void libexec_begin(unsigned life_seconds)
{
	(void)alarm(life_seconds);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* cannot fail for a signal that there is */
}

int libexec_answer(const void *bytes, size_t size)
{
	struct cj_error ignored; /* without a reader there is nobody to tell */
	return fd_write_all(STDOUT_FILENO, bytes, size, "the launcher's pipe", &ignored) < 0
		   ? EXIT_FAILURE
		   : EXIT_SUCCESS;
}

int libexec_fail(const struct cj_error *err)
{
	(void)libexec_answer(err, sizeof(*err)); /* the parent sees the exit status, too */
	return EXIT_FAILURE;
}
