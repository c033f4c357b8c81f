/* SPDX-License-Identifier: Apache-2.0 */
/* The pid file, and waiting for a program in the foreground. */
#include "runtime/container/call/caller.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "runtime/base/child.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

#define PID_MODE 0644 /* engines of another user read it */

int caller_write_pid(const char *path, pid_t pid, struct cj_error *err)
{
	char temporary[PATH_MAX], text[16];

	if (snprintf(temporary, sizeof(temporary), "%s.%d", path, (int)getpid()) >=
	    (int)sizeof(temporary))
		return cj_fail(err, ENAMETOOLONG, "write the pid file '%s'", path);
	(void)unlink(temporary); /* of a process that had our id and was killed */
	auto_fd int fd =
	    open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, PID_MODE);
	(void)snprintf(text, sizeof(text), "%d", (int)pid);
	int rc = fd < 0 ? cj_fail(err, errno, "create '%s'", temporary)
			: fd_write_all(fd, text, strlen(text), "the process id", err);
	if (rc == 0 && rename(temporary, path) < 0)
		rc = cj_fail(err, errno, "rename '%s' to '%s'", temporary, path);
	if (rc < 0) {
		(void)unlink(temporary); /* it may not exist */
		return cj_wrap(err, "pid file");
	}
	return 0;
}

/* Signals that a user or an engine sends to the program by sending them to us. */
static const int forwarded[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT };

static void fill_set(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGCHLD);
	for (size_t i = 0; i < COUNT_OF(forwarded); i++)
		sigaddset(set, forwarded[i]);
}

int caller_block_signals(struct cj_error *err)
{
	sigset_t set;
	fill_set(&set);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return cj_fail(err, errno, "block signals");
	return 0;
}

int caller_wait(pid_t pid, const struct caller_wait_calls *calls, int *out_status,
		struct cj_error *err)
{
	sigset_t set;
	int status = 0;
	fill_set(&set);
	auto_fd int signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (signal_fd < 0)
		return cj_fail(err, errno, "make a descriptor for signals");
	for (;;) {
		siginfo_t info = { 0 }; /* si_pid: it has ended, and is not reaped */
		int rc = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT);
		if (rc < 0 && errno == EINTR)
			continue;
		if (rc < 0)
			return cj_fail(err, errno, "wait for the program");
		if (info.si_pid == pid)
			break;
		if (calls)
			calls->await(calls->context, signal_fd);
		int number = sigwaitinfo(&set, NULL);
		if (number > 0 && number != SIGCHLD)
			(void)kill(pid, number); /* our child, not reaped: it may have ended */
	}
	if (calls)
		calls->before_reap(calls->context);
	if (sys_waitpid(pid, &status, 0) < 0)
		return cj_fail(err, errno, "wait for the program");
	*out_status = child_exit_status(status);
	return 0;
}
