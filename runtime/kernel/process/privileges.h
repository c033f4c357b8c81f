/* SPDX-License-Identifier: Apache-2.0 */
/*
 * privileges - the privileges that init gives up, in order.  Each function applies to the calling
 * process and cannot be undone.  Runs in init, and in the children that a zygote needs.
 */
#pragma once

#include "runtime/base/error.h"

int privileges_join_keyring(struct cj_error *err); /* an anonymous session keyring: keyrings(7) */
int privileges_become(uid_t uid, gid_t gid, bool may_setgroups,
		      struct cj_error *err); /* ids inside; capabilities stay */
/*
 * Sets limits in the user namespace that init leaves: one more user namespace, for
 * privileges_nest(), and none after it; 16 inotify instances, of which a user has 128.  The kernel
 * counts these for the creator of the namespace, too, so without a limit a jail could use up all of
 * its caller's.  namespaces(7), inotify(7)
 */
int privileges_limit_counts(struct cj_error *err);

/*
 * privileges_nest - move into a user namespace of our own below the one that owns everything.
 *
 * All namespaces of the jail, and its gateway, belong to the user namespace that init leaves.  From
 * here on no capability inside applies to them.  The map has the same one id on both sides.  The
 * namespace above may have no second child (user.max_user_namespaces = 1), so none can be created
 * inside.
 * Must not: run before ids and /proc are the jail's, or after /proc/sys is read-only.
 * Follows:  user_namespaces(7), namespaces(7).
 */
int privileges_nest(uid_t uid, gid_t gid, struct cj_error *err);

/* In a new user namespace: maps one user and one group, each to the same id outside. */
int privileges_map_own(uid_t uid, gid_t gid, struct cj_error *err);
int privileges_no_new(struct cj_error *err); /* prctl(2) PR_SET_NO_NEW_PRIVS */
/*
 * No capability in any set (bounding, inheritable, permitted, effective, ambient), securebits
 * locked, not dumpable; read back and compared: an error if anything is left.  capabilities(7)
 * proc_fd: a procfs that is known to be one; -1: that at /proc, if it is.
 */
int privileges_drop(int proc_fd, struct cj_error *err);

/* Sets no_new_privs, keeps those of these capabilities (a bit each: 1 << CAP_KILL) that the process
 * has, and gives up all others: a process of ours that executes nothing.  capabilities(7) */
int privileges_keep_only(uint64_t kept, struct cj_error *err);

/*
 * privileges_stay_behind - for a fork that outlives its parent and executes nothing: what ps(1)
 * calls it, a session of its own, fds[] as child_reset() keeps them, these capabilities, "/".
 *
 * fds[] has the new numbers, also after a failure; of at most CHILD_FDS_MAX, -1 stays -1.
 */
int privileges_stay_behind(const char *name, int *fds, size_t count, uint64_t kept,
			   struct cj_error *err);
