/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_kill - kills exactly the processes of one exec, and proves that none is left.
 *
 * With a cgroup of its own, by cgroup_kill(): none is left alive, the reaper included.
 * Without one, by rounds over the descendants of the reaper: the reaper itself ends when it has no
 * child left, and says so with STEP_EMPTY.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/session/session_state.h"
#include "runtime/session/session.h"

#define SESSION_ROUND_MS 5 /* between two rounds */

/* The exec of one slot, seen by its worker or by the keeper. */
struct session_target {
	const struct session_row *row;
	const struct cgroup *leaf; /* its own; dir_fd -1: none */
	int proc_fd;               /* the jail's */
	int link_fd;               /* the near end of the reaper's link */
};

enum session_left {
	LEFT_SOME,   /* it has processes, or may have */
	LEFT_NONE,   /* proven */
	LEFT_UNKNOWN /* the reaper was killed: its processes can't be told apart */
};

/*
 * Reads what the reaper says, without waiting.  *is_empty remembers STEP_EMPTY; all other messages
 * are dropped.
 */
enum session_left session_look(const struct session_target *t, bool *is_empty);

/*
 * One round: kills what is there.  Never waits for a process.
 *
 * A chain of processes, each of which forks the next and ends, may be faster than a round.  When
 * `since_ms` have passed since the first round, the reaper is stopped meanwhile: the dead are not
 * reaped then, and the limit of processes ends the chain.
 */
void session_kill_round(const struct session_target *t, uint64_t since_ms);

/* Rounds, until none is left or SESSION_KILL_MS have passed. */
enum session_left session_kill_all(const struct session_target *t, bool *is_empty);
