/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn - a process in new namespaces that is born in its cgroup: clone3(2), CLONE_INTO_CGROUP.
 *
 * Linux since 6.14 counts the uses of cgroup.kill.  If the caller's cgroup and the new process'
 * have different counts, however old, the kernel takes that for a kill during the clone, and the
 * process gets SIGKILL before its first instruction.  Such a process is made once more, in the
 * caller's cgroup, and moved.
 */
#pragma once

#include "runtime/base/error.h"

struct spawn_place {
	int cgroup_fd;    /* -1: the caller's cgroup */
	const char *path; /* of the cgroup, for messages */
	bool moves;       /* the process is moved there instead of born there */
};

/*
 * spawn_process - as fork(2): 0 in the new process, -1 with errno.  `flags` are those of clone3(2).
 * *out_pidfd is set with CLONE_PIDFD.  A process that moves has to wait for spawn_move().
 */
pid_t spawn_process(const struct spawn_place *place, uint64_t flags, int signal_at_end,
		    int *out_pidfd);

/* Moves the process, if it was not born in its place. */
int spawn_move(const struct spawn_place *place, pid_t pid, struct cj_error *err);

/*
 * spawn_kills - does the kernel kill what is born in this place?  Tries it with a process that ends
 * at once: only for the way of an error.
 */
bool spawn_kills(const struct spawn_place *place);
