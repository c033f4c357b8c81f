/* SPDX-License-Identifier: Apache-2.0 */
/* exec_view - what the functions of jail.h do differently on the view of one exec. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/base/error.h"
#include "runtime/kernel/cgroup/cgroup.h"

struct jail;
struct outcome;
struct session;

/* The part of a struct jail that makes it a view. */
struct session_exec {
	struct session *session; /* borrowed */
	unsigned slot;
	bool is_empty;              /* the reaper said that it has no child left */
	struct cgroup_usage before; /* of the whole session, when this exec began */
};

/* A cell begins: what was counted until now is not its own. */
void session_exec_begin_cell(struct jail *view);
/* The cell whose code runs, for session_exec_cell(); 0: none. */
void session_exec_set_cell(const struct jail *view, uint32_t number);

/* Around STEP_START: from here on the reaper may have children; the program runs. */
void session_exec_starting(struct jail *view);
void session_exec_started(struct jail *view, pid_t main_pid);

/* The reaper, in the jail's pid namespace. */
pid_t session_exec_reaper(const struct jail *view);

/* The keeper killed it, because it used most of the session's memory. */
bool session_exec_was_oom_killed(const struct jail *view);

/* SIGINT to the main process.  False: there is none. */
bool session_exec_interrupt(const struct jail *view);

/*
 * The reaper's link was closed before the main process' end was reported.  Decides *out: the whole
 * session ended, or the reaper was killed.
 */
void session_exec_lost(struct jail *view, struct outcome *out);

/*
 * The end of jail_wait(): processes stay if the main process ended by itself (`may_stay`), else
 * they are killed.  False: one lives; the keeper ends the session then.
 */
bool session_exec_end(struct jail *view, bool may_stay);

/* The calls and packets that this exec was refused, and the session's network. */
int session_exec_evidence(const struct jail *view, struct outcome *out, struct cj_error *err);

/* Limits act on the jail's cgroup, above the exec's own: what was counted there since it began. */
void session_exec_count(const struct jail *view, struct cgroup_usage *cg);

/* Releases the view, not what it borrows from the session. */
void session_exec_close(struct jail **view);
