/* SPDX-License-Identifier: Apache-2.0 */
/* jail_init - the supervisor's stages of init: its process, its ids, what it hands out. */
#pragma once

#include "rootfs/rootfs.h"
#include "runtime/base/error.h"
#include "runtime/kernel/ids/idmap.h"

struct jail;
struct plan;

/*
 * jail_hold - the limits, the cgroup, the record and the signals of a run, for a front that makes
 * init itself: runtime/front/bwrap.
 *
 * The caller creates init in cgroup_birth_fd(), sets j->init_pid and j->init_pidfd, and calls
 * jail_hold_init(), which completes the record.  jail_destroy() releases all.
 * Fails: with nothing held.
 */
int jail_hold(const struct plan *plan, const char *id, struct jail **out, struct cj_error *err);
int jail_hold_init(struct jail *j, struct cj_error *err);

/*
 * jail_hold_network - the network of the plan, in the network namespace of init, before the program
 * starts: jail_hold() has looked up its names.
 *
 * j->link leads to init, which calls init_network_open() when its id maps are written; the
 * caller sets both ends.
 * Fails: jail_destroy() releases what was built.
 */
int jail_hold_network(struct jail *j, struct cj_error *err);

/* Creates init with clone3(2), in all of its namespaces and in the jail's cgroup. */
int jail_init_enter(struct jail *j, struct cj_error *err);
void jail_init_leave(struct jail *j);

/* Chooses the jail's ids. */
int jail_init_ids_enter(struct jail *j, struct cj_error *err);
void jail_init_ids_leave(struct jail *j);

/* With plan->reduced: the private directory's name; the directory, and its end when no process is
 * left. */
int jail_init_private_name(struct jail *j, struct cj_error *err);
int jail_init_private_enter(struct jail *j, struct cj_error *err);
void jail_init_private_leave(struct jail *j);

/* Writes the id maps and sends STEP_IDS_MAPPED. */
int jail_init_map_enter(struct jail *j, struct cj_error *err);

/*
 * jail_init_shift - clone the source of each overlay and of a kept directory of `root`, in the
 * order of its binds, as a mount in which the jail's user owns the directory: mount_setattr(2),
 * MOUNT_ATTR_IDMAP.
 *
 * Root's jail runs with an id that owns no file of the host, and overlayfs can't copy up a file
 * whose owner has no id in the user namespace.  An ordinary caller needs no clone, because its
 * files have the jail's id already: *out_count is 0 then.  The descriptors are the caller's to
 * close; on failure none is open.
 * Runs in:  supervisor, as root.
 */
int jail_init_shift(const struct rootfs_spec *root, const struct idmap *ids,
		    int out_fds[OVERLAYS_MAX], size_t *out_count, struct cj_error *err);

/* Waits for STEP_SEALED and takes over its descriptors. */
int jail_init_seal_enter(struct jail *j, struct cj_error *err);
void jail_init_seal_leave(struct jail *j);

/*
 * jail_init_kill - kill every process of the jail, at the end of a run or a session.  False: one
 * still lives.
 *
 * The kernel kills every process in the pid namespace when init dies, and lets init go last:
 * pid_namespaces(7).  So when init is dead the jail is empty.  is_alone: init has said that no
 * other process is left.
 */
bool jail_init_kill(struct jail *j, bool is_alone);
