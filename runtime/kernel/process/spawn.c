/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kernel/process/spawn.h"

#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "runtime/base/sys.h"
#include "runtime/kernel/cgroup/cgroup.h"

pid_t spawn_process(const struct spawn_place *place, uint64_t flags, int signal_at_end,
		    int *out_pidfd)
{
	struct clone_args args = {
		.flags = flags,
		.pidfd = (uintptr_t)out_pidfd,
		.exit_signal = (uint64_t)signal_at_end,
	};
	if (place->cgroup_fd >= 0 && !place->moves) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)place->cgroup_fd;
	}
	pid_t pid = sys_clone3(&args);
	/* Filters of container engines refuse clone3(2) as a whole: they can't see its flags. */
	if (pid < 0 && errno == ENOSYS && (args.flags & ~(uint64_t)CLONE_PIDFD) == 0)
		pid = (pid_t)syscall(SYS_clone, args.flags | args.exit_signal, NULL, out_pidfd,
				     NULL, NULL);
	return pid;
}

int spawn_move(const struct spawn_place *place, pid_t pid, struct cj_error *err)
{
	int rc = place->moves && place->cgroup_fd >= 0 ? cgroup_move(place->cgroup_fd, pid) : 0;
	return rc < 0 ? cj_fail(err, -rc, "move init into the cgroup '%s'", place->path) : 0;
}

bool spawn_kills(const struct spawn_place *place)
{
	if (place->cgroup_fd < 0 || place->moves)
		return false;
	/* No signal at its end, which the caller may wait for or ignore: only __WALL sees it. */
	int status = 0;
	pid_t pid = spawn_process(place, 0, 0, NULL);
	if (pid == 0)
		_exit(0);
	return pid > 0 && sys_waitpid(pid, &status, __WALL) == pid && WIFSIGNALED(status) &&
	       WTERMSIG(status) == SIGKILL;
}
