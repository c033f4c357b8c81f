/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for a program in the foreground.  Acts. */
#include "runtime/front/oci/foreground.h"

#include <signal.h>
#include <sys/wait.h>

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

int foreground_wait(pid_t pid, int *out_status, struct cj_error *err)
{
	sigset_t set;
	int status = 0;
	fill_set(&set);
	for (;;) {
		pid_t ended = sys_waitpid(pid, &status, WNOHANG);
		if (ended < 0)
			return cj_fail(err, errno, "wait for the program");
		if (ended == pid)
			break;
		int number = sigwaitinfo(&set, NULL);
		if (number > 0 && number != SIGCHLD)
			(void)kill(pid, number); /* our child, not reaped: it may have ended */
	}
	*out_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return 0;
}
