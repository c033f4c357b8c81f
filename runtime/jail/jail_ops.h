/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jail_ops - what the engine does differently for a run and for an exec of a session.
 *
 * The program of a run has a jail of its own, and is a child of its init.  An exec shares the jail
 * of its session with other programs and is a child of a reaper: runtime/session/session.h.
 * prepare.c has the table of a run, runtime/session/exec_view.c that of an exec.  Where both do the
 * same, or only a number differs, the members of struct jail say so.
 */
#pragma once

#include <poll.h>

#include "runtime/base/error.h"

struct cgroup_usage;
struct ended;
struct jail;
struct outcome;

/* A main process that is interrupted by SIGINT has so long to end, before it is killed. */
#define INTERRUPT_MS 2000

struct jail_ops {
	/* NULL: nothing to do.  main_pid 0: the program is sent next, and then has processes. */
	void (*starts)(struct jail *j, pid_t main_pid);

	/* SIGINT to the main process.  NULL: it is never interrupted.  False: there is none. */
	bool (*interrupt)(const struct jail *j);

	/* SIGKILL came because of the memory limit; signal 9 alone does not show that. */
	bool (*was_oom_killed)(const struct jail *j);

	/* The parent has ended and did not report the main process' end: decides *out. */
	void (*lose)(struct jail *j, const struct ended *ended, struct outcome *out);

	/*
	 * The end of jail_wait(): kills the processes of the program.  `has_ended_itself`: they may
	 * also stay, if the jail does.  False: one may live.
	 */
	bool (*end)(struct jail *j, const struct ended *ended, bool has_ended_itself);

	/* What the cgroups have counted for this program. */
	void (*count)(const struct jail *j, struct cgroup_usage *out);

	/* The refused calls and packets, and the network, into the outcome. */
	int (*report)(struct jail *j, struct outcome *out, struct cj_error *err);

	/* Releases all but what belongs to the program's streams; *j is NULL then. */
	void (*destroy)(struct jail **j);
};

extern const struct jail_ops jail_run_ops;

/*
 * A cell: a program whose main process is an interpreter, which runs already and goes on after it.
 * It is an exec with these operations besides.
 */
struct cell_ops {
	/* For poll(2): its channel; fd -1: nothing more is to come. */
	struct pollfd (*watch)(const struct jail *j);
	/* Sends and receives without blocking.  Decides *out when the cell has ended. */
	void (*serve)(struct jail *j, struct outcome *out);
	/* What decided *out was not the end of the cell.  False: its interpreter is killed. */
	bool (*interrupt)(const struct jail *j, const struct outcome *out);
	/* The interpreter waits for the next cell. */
	bool (*has_ended)(const struct jail *j);
};
