/* SPDX-License-Identifier: Apache-2.0 */
/* From an exit status and counters to one of the documented ends.  Acts: reads the cgroup. */
#include "runtime/jail/supervise/verdict.h"

#include <signal.h>
#include <sys/wait.h>

#include "runtime/jail/jail_state.h"

bool verdict_was_oom_killed(const struct jail *j)
{
	struct cgroup_usage usage = { 0 };
	cgroup_read_usage(&j->cgroup, &usage);
	return usage.oom_kills > 0;
}

/*
 * Any process inside can send a signal; no process can forge the CPU time used.  RLIMIT_CPU counts
 * from the start of an interpreter, not of its cell.
 */
static bool is_cpu_time_used_up(const struct jail *j, const struct ended *ended)
{
	uint64_t limit_us = j->plan->limits.cpu_ms * 1000;
	uint64_t reaped_us = ended->cpu_user_us + ended->cpu_system_us;
	if (j->run.cell_ops)
		return limit_us > 0 && reaped_us >= limit_us;
	return limit_us > 0 && (jail_program_cpu_us(j, cgroup_cpu_us(&j->cgroup)) >= limit_us ||
				jail_program_cpu_us(j, reaped_us) >= limit_us);
}

void verdict_decide(const struct jail *j, const struct ended *ended, int wait_status,
		    struct outcome *out)
{
	if (out->has_status)
		return;
	if (WIFEXITED(wait_status)) {
		out->exit_code = WEXITSTATUS(wait_status);
		outcome_decide(out, STATUS_EXITED);
		return;
	}
	out->signal = WTERMSIG(wait_status);
	if (out->signal == SIGKILL && j->ops->was_oom_killed(j))
		outcome_decide(out, STATUS_OOM);
	else if ((out->signal == SIGKILL || out->signal == SIGXCPU) &&
		 is_cpu_time_used_up(j, ended))
		outcome_decide(out, STATUS_CPU_LIMIT);
	else
		outcome_decide(out, STATUS_SIGNALED);
}

void verdict_without_init(struct jail *j, const struct ended *ended, struct outcome *out)
{
	if (!verdict_was_oom_killed(j))
		jail_warn(j, "init was killed from outside; the program's own end is not known");
	verdict_decide(j, ended, SIGKILL, out);
}
