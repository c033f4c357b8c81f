/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/files/libexec.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "runtime/base/child.h"
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

static ssize_t take_result(const struct libexec_call *call, int wait_status, const char *bytes,
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
	const size_t max = call->answer_max > least ? call->answer_max : least;
	auto_arena struct arena a = { 0 };
	char *bytes = NULL;
	size_t size = 0;
	int wait_status = 0, rc = fd_read_all(in_fd, max, &a, &bytes, &size, call->what, err);
	cj_close(&in_fd);                        /* it does not wait for a reader of more */
	(void)sys_waitpid(pid, &wait_status, 0); /* our child */
	/* An answer that is too long or can't be read is none, which take_result() refuses. */
	return rc == -ENOMEM ? rc
			     : take_result(call, wait_status, bytes, rc < 0 ? max + 1 : size, err);
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

/* A file that is there lacks its loader. */
static int fail_to_execute(const char *path, int code, struct cj_error *err)
{
	(void)!cj_fail(err, code, "execute '%s'", path);
	if (code != ENOENT)
		return -code;
	return cj_hint(err, access(path, F_OK) < 0 ? "install cejail anew: this is a part of it"
						   : "install the C library that it needs");
}

/* What the new process shares with its parent until execve(2). */
struct shared_start {
	const struct libexec_program *program;
	pid_t parent;
	char path[PATH_MAX];
	const char *argv[ARGS_MAX + 2];
	struct cj_error err;
};

static int prepare(const struct shared_start *s, struct cj_error *err)
{
	const struct libexec_program *program = s->program;
	int fds[CHILD_FDS_MAX];
	sigset_t all;
	sigfillset(&all);
	memcpy(fds, program->fds, program->count * sizeof(fds[0]));
	if (child_die_with_parent(-1, err) < 0)
		return -err->code;
	if (getppid() != s->parent)
		return cj_fail(err, EPIPE, "find the parent alive");
	if (child_start_session(err) < 0 || child_reset(fds, program->count, err) < 0)
		return -err->code;
	if (program->blocks_signals && sigprocmask(SIG_SETMASK, &all, NULL) < 0)
		return cj_fail(err, errno, "block signals");
	if (chdir("/") < 0)
		return cj_fail(err, errno, "change to '/'");
	for (size_t i = 0; i < program->count; i++)
		(void)fcntl(fds[i], F_SETFD, 0); /* cannot fail: child_reset() made it */
	return 0;
}

/* The new process.  It leaves no variable on its stack that a sanitizer would watch for ever. */
static int become(void *start)
{
	struct shared_start *s = start;
	if (prepare(s, &s->err) < 0)
		return EXIT_FAILURE;
	(void)execve(s->path, (char *const *)s->argv, s->program->environment);
	(void)fail_to_execute(s->path, errno, &s->err);
	return EXIT_FAILURE;
}

/* As vfork(2), and the pidfd in the same call: a page table is not copied, and neither process has
 * to copy pages.  No handler of the parent's runs in the new process. */
static pid_t start_sharing(struct shared_start *s, int *out_pidfd)
{
	static _Alignas(16) uint8_t stack[65536];
	sigset_t all, before;
	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before); /* fails for no mask */
	pid_t pid = clone(become, stack + sizeof(stack),
			  CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, s, out_pidfd);
	const int code = errno;
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	errno = code;
	return pid;
}

pid_t libexec_start(const struct libexec_program *program, int *out_pidfd, struct cj_error *err)
{
	struct shared_start s = { .program = program, .parent = getpid() };
	s.argv[0] = s.path;
	for (size_t i = 0; i < ARGS_MAX && program->args[i]; i++)
		s.argv[i + 1] = program->args[i];
	if (libexec_find(program->name, s.path, err) < 0)
		return -err->code;
	pid_t pid = start_sharing(&s, out_pidfd);
	if (pid < 0)
		return cj_fail(err, errno, "create a process for '%s'", s.path);
	if (s.err.code == 0)
		return pid;
	cj_end_child(out_pidfd);
	*err = s.err;
	return -err->code;
}

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
