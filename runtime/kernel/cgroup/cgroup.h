/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup - the jail's own cgroup v2 leaf: limits before the program runs, counters after it, and a
 * way to kill every process inside.
 *
 * The leaf's parent is the first of cgroup_parents[] (cgroup_parent.c) that can be used:
 *
 *	- the directory that --cgroup-parent names
 *	- the delegated subtree that this process is in
 *	- a transient scope, which the user's systemd creates over D-Bus
 *	- the root of a container's own cgroup namespace
 *	- for root, a subtree of cejail's own
 *
 * For each parent that can't be used there is a sentence that says why; cejail doctor shows them.
 * A parent without a controller still serves to kill processes and to count CPU time.  `enforced`
 * tells which limits the leaf enforces.
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/kernel/cgroup/cgroup_text.h"

struct cgroup_limits {
	uint64_t memory_bytes, millicpus, pids;
};

struct cgroup {
	int dir_fd;         /* the leaf; -1: none, or not made yet */
	int init_fd;        /* its child "init"; -1: none (cgroup_divide()) */
	int cpu_fd;         /* its cpu.stat, kept open; -1: none */
	int parent_fd;      /* where the leaf will be made; -1: nowhere, or it has been */
	uint64_t inode;     /* of the leaf, once it is made or found; 0: not known */
	char path[512];     /* absolute, as mounted here; for the record and for messages */
	const char *origin; /* "option", "delegated", "user manager", "container", "own" */
	bool offered[CGROUP_CONTROLLER_COUNT];  /* the leaf will have the controller's files */
	bool enforced[CGROUP_CONTROLLER_COUNT]; /* its limit was written and read back */
	char why_not[256]; /* if a limit isn't enforced: one sentence with the remedy */
};

/* No cgroup; also the value after cgroup_destroy(). */
#define CGROUP_NULL ((struct cgroup){ .dir_fd = -1, .init_fd = -1, .cpu_fd = -1, .parent_fd = -1 })

/*
 * cgroup_find - where the leaf "cejail-ID" will be: its path, known before it exists.
 *
 * Succeeds with an empty path and why_not when the host has no usable parent: --strict refuses
 * that later.  A parent_option that can't be used is an error.
 */
int cgroup_find(const char *parent_option, const char *id, struct cgroup *out,
		struct cj_error *err);

/*
 * cgroup_enter_scope - become part of a scope of the user's manager, if jails get theirs from it.
 *
 * For a process whose children start jails, before it has any: they find a delegated cgroup, and
 * none asks the manager again.  A zygote needs it: CLONE_INTO_CGROUP is EACCES for an ordinary user
 * unless the user may write to the nearest cgroup above both the caller and the leaf.
 * `id` names the scope.  Needs a SIGCHLD that is not ignored.  A failure is left to cgroup_find().
 */
void cgroup_enter_scope(const char *id);

/*
 * cgroup_make - create the leaf in the parent that was found, if any; set its limits and read them
 * back.
 *
 * memory.max, memory.swap.max 0, memory.oom.group 1, pids.max, cpu.max (period 100 ms).
 */
int cgroup_make(struct cgroup *c, const struct cgroup_limits *limits, struct cj_error *err);

/*
 * cgroup_divide - create the leaf's child "init", and enable the leaf's controllers for children.
 *
 * Call it while no process is in the leaf: then init is born in the child, and no process ever
 * moves.  A move by cgroup.procs waits 8 to 17 ms for an RCU grace period, and so does every use of
 * the host's cgroups meanwhile.
 * A leaf that can't be divided stays as it is, and init_fd is -1.
 */
void cgroup_divide(struct cgroup *c);

/* Where a process of the jail is born, by CLONE_INTO_CGROUP; -1: nowhere. */
int cgroup_birth_fd(const struct cgroup *c);

/* Moves the process into the cgroup: 0, or -errno of the write to cgroup.procs. */
int cgroup_move(int dir_fd, pid_t pid);

/* Is a swap area in use?  True also when that can't be read. */
bool cgroup_host_has_swap(void);

/* The leaf's inode number, which no later directory of the same path has; 0: there is no leaf. */
uint64_t cgroup_inode(const struct cgroup *c);

/*
 * cgroup_tree_kill() without a wait.  Of processes whose first thread has exited, one call may
 * leave some: call it again until the cgroup is empty.
 */
void cgroup_kill(const struct cgroup *c);

/* Waits until no process is left, at most timeout_ms.  False: some are left. */
bool cgroup_wait_empty(const struct cgroup *c, unsigned timeout_ms);

/* Kills what is left and removes the directory; *c is CGROUP_NULL then.  False: the directory is
 * still there, and a sweep will find it by its path. */
bool cgroup_destroy(struct cgroup *c);

/* Only forgets it: it ends with the leaf above.  *c is CGROUP_NULL then. */
void cgroup_close(struct cgroup *c);

/* The number in a file of the cgroup; false: there is none ("max"), or no such file. */
bool cgroup_read_number(int dir_fd, const char *file, uint64_t *out);

/* Counters.  One that the kernel does not have stays 0, and its `has` member is false. */
struct cgroup_usage {
	bool has_memory_peak, has_pids_peak, has_cpu;
	uint64_t memory_peak_bytes, pids_peak, cpu_user_us, cpu_system_us;
	uint64_t oom_kills; /* memory.events oom_kill (or oom_group_kill) */
	uint64_t own_ooms;  /* memory.events oom: how often its own limit was reached */
	/* pids.events max: refused forks; before Linux 6.11 also by the limit of a cgroup above. */
	uint64_t pids_max_hits;
	uint64_t throttled_us;
};
void cgroup_read_usage(const struct cgroup *c, struct cgroup_usage *out);
/*
 * Do all visible cgroups above have room for so many more processes, by pids.max and pids.current?
 * Then a refused fork was refused by the leaf's own limit.
 */
bool cgroup_has_room_above(const struct cgroup *c, uint64_t pids);
/* The memory in use now, without files that are cached and were not used lately;
 * UINT64_MAX: not known. */
uint64_t cgroup_memory_bytes(const struct cgroup *c);
/* The CPU time so far in microseconds: one pread(2) of a descriptor that stays open. */
uint64_t cgroup_cpu_us(const struct cgroup *c);

/*
 * cgroup_remove_path - kill every process in the leaf that a record names, and remove it.
 *
 * A later directory of the same path is left alone: the kernel doesn't use an inode number twice.
 * Inode 0: the record was written before the leaf was made.  Then the directory is removed only if
 * it is empty, else the call fails with -EBUSY.
 */
int cgroup_remove_path(const char *path, uint64_t inode, struct cj_error *err);

/*
 * cgroup_sweep - remove leaves of killed runs that no record names, because the runtime directory
 * is gone (logout, tmpfiles.d(5), another mount namespace).
 *
 * Looks where a leaf of this caller would be made, not below --cgroup-parent.  Returns how many
 * were removed.
 *
 * A supervisor keeps an flock(2) on its leaf until it removes it.  So an empty leaf whose lock is
 * free belongs to a dead run, or was created this moment; then its creator notices that it is gone
 * and creates another.
 */
unsigned cgroup_sweep(void);
/* The same in one directory. */
unsigned cgroup_sweep_in(int parent_fd);
