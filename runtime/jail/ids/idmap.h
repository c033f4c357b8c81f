/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idmap - which host id the jail's one user is, and writing it down for the kernel.
 *
 * An ordinary caller (or a root that has only its own id to give, inside a
 * one-id user namespace) maps the jail's user to itself.  Root never maps host
 * uid 0: it takes an id that nobody uses, one per jail, held by a byte lock in
 * "<runtime dir>/ids" that the kernel gives back when the descriptor closes, so two
 * jails never share one.  No setuid helper takes part.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "runtime/base/error.h"

#define IDMAP_INSIDE_UID 1000
#define IDMAP_INSIDE_GID 1000

struct idmap {
	uid_t uid; /* host side */
	gid_t gid;
	bool may_setgroups; /* root: the list of groups is emptied; else denied by the kernel */
	int lock_fd;        /* -1 when there is nothing to hold */
};

/*
 * idmap_choose - pick the host id.
 * Ids are looked for where our own user namespace has them: 0x70000000.. first (systemd's
 * UIDS-GIDS page lists it as unused), else the top of the largest range in /proc/self/uid_map.
 * Fails: EPERM for a root that has only uid 0 to give; EAGAIN when every id is taken.
 */
int idmap_choose(int runtime_dir_fd, struct idmap *out, struct cj_error *err);
void idmap_release(struct idmap *map);

/*
 * idmap_write - write uid_map, setgroups and gid_map of a new user namespace's first process.
 * Runs in:  supervisor, right after clone3(2).  Follows: user_namespaces(7).
 */
int idmap_write(const struct idmap *map, pid_t init_pid, struct cj_error *err);

/*
 * idmap_hint - where *err is a refused clone3(2) or map: name the setting of this host that
 * forbids user namespaces, and what mends it.  Returns -err->code.
 */
int idmap_hint(struct cj_error *err);
