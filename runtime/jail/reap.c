/* SPDX-License-Identifier: Apache-2.0 */
/* Reaps the program and its orphans, and reports the main process' end.  Acts. */
#include "runtime/jail/reap.h"

#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "runtime/jail/protocol.h"

static uint64_t microseconds(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

static int report_ended(const struct step_link *link, int wait_status, struct cj_error *err)
{
	struct rusage all = { 0 };
	(void)getrusage(RUSAGE_CHILDREN, &all); /* cannot fail with these arguments */
	const struct ended ended = {
		.wait_status = wait_status,
		.is_alone = waitpid(-1, NULL, WNOHANG | __WALL) < 0 && errno == ECHILD,
		.cpu_user_us = microseconds(all.ru_utime),
		.cpu_system_us = microseconds(all.ru_stime),
		.max_rss_bytes = (uint64_t)all.ru_maxrss * 1024,
	};
	return step_tell(link, STEP_ENDED, &ended, sizeof(ended), NULL, 0, err);
}

int reap_until_ended(const struct step_link *link, pid_t main_pid, struct cj_error *err)
{
	for (;;) {
		int wait_status;
		pid_t pid = waitpid(-1, &wait_status, __WALL);
		if (pid < 0 && errno != EINTR)
			return cj_fail(err, errno, "wait for the program");
		/* A caller's filter may allow PTRACE_TRACEME: a traced stop is no end.  wait(2) */
		if (pid == main_pid && !WIFSTOPPED(wait_status))
			return report_ended(link, wait_status, err);
	}
}

void reap_all(void)
{
	while (waitpid(-1, NULL, __WALL) >= 0 || errno == EINTR)
		;
}
