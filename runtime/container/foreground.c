/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for a program in the foreground.  Acts. */
#include "runtime/container/foreground.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

/* Signals that a user or an engine sends to the program by sending them to us. */
static const int forwarded[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT };

static void fill_set(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGCHLD);
	for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
		sigaddset(set, forwarded[i]);
}

int foreground_prepare(struct cj_error *err)
{
	sigset_t set;
	fill_set(&set);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return cj_fail(err, errno, "block signals");
	return 0;
}

/* 1: it has ended, and is not reaped. */
static int has_ended(pid_t pid)
{
	siginfo_t info = { 0 };
	int rc;

	do {
		rc = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT);
	} while (rc < 0 && errno == EINTR);
	return rc < 0 ? -1 : info.si_pid == pid;
}

int foreground_wait(pid_t pid, const struct foreground_calls *calls, int *out_status,
		    struct cj_error *err)
{
	sigset_t set;
	int status = 0;
	fill_set(&set);
	auto_fd int signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (signal_fd < 0)
		return cj_fail(err, errno, "make a descriptor for signals");
	for (;;) {
		int ended = has_ended(pid);
		if (ended < 0)
			return cj_fail(err, errno, "wait for the program");
		if (ended)
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
	*out_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return 0;
}
