/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_memory - the memory limit of a session, and what the whole session used.
 *
 * When all execs together need more memory than the session may have, one of them ends if it uses
 * at least as much as all the others; else no single one is the cause, and the session ends.
 * Where the cgroup enforces the limit, the kernel has killed an exec by then; else the keeper does.
 */
#pragma once

#include "runtime/session/session_state.h"
#include "runtime/jail/usage/usage_watch.h"

struct session_memory {
	int events_fd;            /* memory.events of the jail's cgroup; -1: none */
	struct usage_watch usage; /* where no cgroup counts */
	bool is_sampled;          /* the keeper enforces the limit */
	bool was_idle;            /* at the last sample: no exec and no cell ran */
	uint64_t dying_ms; /* since then a killed exec still has memory, on clock_ms(); 0: none */
};

void session_memory_init(struct session_memory *m, const struct session *s);
void session_memory_fini(struct session_memory *m);

/* When the next sample is due, on clock_ms(); 0: never.  Without execs there is none. */
uint64_t session_memory_next_ms(const struct session *s, const struct session_memory *m);

/* After each poll(2); `is_event`: memory.events has changed. */
enum session_end session_memory_turn(struct session *s, struct session_memory *m, bool is_event,
				     struct cj_error *err);

/* Init has ended: was it the kernel's OOM killer? */
bool session_memory_killed_init(const struct session *s);
/* SESSION_OOM, and its sentence. */
enum session_end session_memory_fail(struct cj_error *err);

/* In use now; UINT64_MAX: not known.  After session_memory_usage(). */
uint64_t session_memory_now(const struct session *s, const struct session_memory *m);
/* Of all processes of the session, since its begin; without wall_ms. */
void session_memory_usage(struct session *s, struct session_memory *m, struct usage *out);
