/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup - a cgroup v2 leaf of the jail's own: limits before any byte runs, evidence
 * after, and the one way to end everything inside.
 *
 * Where the leaf may be made, in order (cgroup_parents[] in cgroup.c, a row each):
 * the option; the delegated subtree we are in; a transient scope from the user's
 * systemd over D-Bus; the root of a container's own cgroup namespace; as root, a
 * subtree of our own.  A row that can't serve leaves a sentence that says why
 * (cejail doctor shows them).  A parent that has the unified hierarchy but not a
 * controller still serves for kill and CPU accounting; which limits it really holds
 * is in `held`.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/jail/cgroup/cgroup_text.h"

struct cgroup_limits {
	uint64_t memory_bytes, millicpus, pids;
};

struct cgroup {
	int dir_fd;         /* the leaf; -1: none, or not made yet */
	int cpu_fd;         /* its cpu.stat, kept open; -1: none */
	int parent_fd;      /* where the leaf will be made; -1: nowhere, or it has been */
	char path[512];     /* absolute, as mounted here; for the record and for messages */
	const char *origin; /* "option", "delegated", "user manager", "container", "own" */
	bool offered[CGROUP_CONTROLLER_COUNT]; /* the leaf will have the controller's files */
	bool held[CGROUP_CONTROLLER_COUNT];    /* written and read back */
	char why_not[256]; /* where something isn't held: one sentence with the remedy */
};

/* Nothing held: what cgroup_destroy leaves, too. */
#define CGROUP_NULL ((struct cgroup){ .dir_fd = -1, .cpu_fd = -1, .parent_fd = -1 })

/*
 * cgroup_find - where the leaf "cejail-ID" will be: its path, known before it exists.
 *
 * Succeeds with an empty path and why_not when the host offers nothing: the caller decides what
 * that means (--strict refuses).  An explicit parent that can't serve is an error.
 */
int cgroup_find(const char *parent_option, const char *id, struct cgroup *out,
		struct cj_error *err);
/*
 * cgroup_make - make the leaf that was found, if one was, set and read back its limits.
 *
 * memory.max, memory.swap.max 0, memory.oom.group 1, pids.max, cpu.max (period 100 ms).
 */
int cgroup_make(struct cgroup *c, const struct cgroup_limits *limits, struct cj_error *err);

/* What tells it from any other of the same path; 0: there is none. */
uint64_t cgroup_inode(const struct cgroup *c);

/* cgroup.kill, or, before Linux 5.14, SIGKILL to each process until none is left. Cannot fail
 * usefully. */
void cgroup_kill(const struct cgroup *c);

/* Waits until no process is left, at most timeout_ms.  False: some are. */
bool cgroup_wait_empty(const struct cgroup *c, unsigned timeout_ms);

/* Kills what is left and removes the directory; the empty value afterwards.  False: it is still
 * there, for a sweep by path. */
bool cgroup_destroy(struct cgroup *c);

/* Evidence; what the kernel does not tell stays 0 and its bit in `has` is clear. */
struct cgroup_usage {
	bool has_memory_peak, has_pids_peak, has_cpu;
	uint64_t memory_peak_bytes, pids_peak, cpu_user_us, cpu_system_us;
	uint64_t oom_kills; /* memory.events oom_kill (or oom_group_kill) */
	uint64_t own_ooms;  /* memory.events oom: times its own limit left nothing */
	/* pids.events max: refused forks; before Linux 6.11 also by the limit of a cgroup above. */
	uint64_t pids_max_hits;
	uint64_t throttled_us;
};
void cgroup_read_usage(const struct cgroup *c, struct cgroup_usage *out);
/*
 * Whether each cgroup above that can be seen has room for so many more processes, by its pids.max
 * and pids.current.  Then a refusal was by the leaf's own limit.
 */
bool cgroup_has_room_above(const struct cgroup *c, uint64_t pids);
/* Just the CPU time so far, in microseconds: one pread of a descriptor kept open. */
uint64_t cgroup_cpu_us(const struct cgroup *c);

/*
 * A leaf known only from a record: end everything in it and remove it.  Another directory of the
 * same path, made since, is left alone: the kernel doesn't use a cgroup's inode number twice.
 * Inode 0 is a record of before the leaf was made: whatever has the path is removed if it is empty,
 * and nothing in it is ended; -EBUSY then.
 */
int cgroup_remove_path(const char *path, uint64_t inode, struct cj_error *err);

/*
 * Removes leaves that a killed run left and that no record names: the runtime directory went away
 * (logout, tmpfiles.d(5), another mount namespace).  Looks where a leaf of this caller would be
 * made, not below --cgroup-parent.  Returns how many.
 *
 * Whoever makes a leaf holds an flock(2) on it until it is removed.  So an empty leaf of ours whose
 * lock is free is a dead run's, or was made this moment: then its maker sees that it is gone, and
 * makes another.
 */
unsigned cgroup_sweep(void);
/* The same in one directory. */
unsigned cgroup_sweep_in(int parent_fd);
