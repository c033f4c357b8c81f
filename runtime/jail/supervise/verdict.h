/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict - what the main process' end means, by evidence that no process inside can forge; what
 * the run used, which limits it met, what it was refused.
 */
#pragma once

#include "runtime/jail/outcome.h"
#include "runtime/jail/protocol.h"
#include "runtime/jail/usage/process_usage.h"

struct jail;

/* The jail's cgroup has counted a kill for lack of memory; signal 9 alone shows nothing. */
bool verdict_was_oom_killed(const struct jail *j);

/* Decides *out, unless it is decided, by `wait_status` of waitpid(2) and what init has reaped. */
void verdict_decide(const struct jail *j, const struct ended *ended, int wait_status,
		    struct outcome *out);

/* The same for a run whose init ended without a report: it was killed too, or from outside. */
void verdict_without_init(struct jail *j, const struct ended *ended, struct outcome *out);

/* What the supervisor observed while it watched. */
struct watched {
	struct process_usage peak; /* the highest seen where we sample */
	struct ended ended;        /* init's report; zero without one */
	bool has_ended;
	uint64_t wall_ms; /* until the first terminal event */
};

/* Copies what is known of the jail and its program: limits, layers, the code's hash, the start. */
void verdict_adopt(const struct jail *j, struct outcome *out);

/* The refused calls and packets of a run, and its network. */
int verdict_report_run(struct jail *j, struct outcome *out, struct cj_error *err);

/* Fills usage, limits, layers and the refused calls of *out, once its status is decided. */
int verdict_read(struct jail *j, const struct watched *seen, struct outcome *out,
		 struct cj_error *err);

/* Warns of changed files (bind_watch.h), when no process of the jail is alive to change more. */
void verdict_warn_of_binds(struct jail *j);
