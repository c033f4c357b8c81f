/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idmap - chooses the host id of the jail's one user and writes the id maps.
 *
 * An ordinary caller maps the jail's user to itself, and so does a root in a user namespace with a
 * single id.  Any other root never maps host uid 0: it chooses an unused id for each jail and locks
 * a byte for it in "<runtime dir>/ids".  The kernel releases the lock with the descriptor, so two
 * jails never share an id.  No setuid helper takes part.
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
	bool may_setgroups; /* root: init empties the list of groups; else the kernel denies that */
	int lock_fd;        /* -1: the id needs no lock */
};

/*
 * idmap_choose - choose the host id.
 * Searches the ids of our own user namespace: first from 0x70000000 on (systemd's UIDS-GIDS page
 * lists them as unused), else the top of the largest range in /proc/self/uid_map.
 * Fails: EPERM for a root whose only id is uid 0; EAGAIN when every id is in use.
 */
int idmap_choose(int runtime_dir_fd, struct idmap *out, struct cj_error *err);
void idmap_release(struct idmap *map);

/*
 * idmap_write - write uid_map, setgroups and gid_map of a new user namespace's first process.
 * Runs in:  supervisor, right after clone3(2).  Follows: user_namespaces(7).
 */
int idmap_write(const struct idmap *map, pid_t init_pid, struct cj_error *err);

/*
 * idmap_is_initial - whether this process is in the user namespace of the host: every id stands for
 * itself (user_namespaces(7)).  True, too, where that can't be read.
 */
bool idmap_is_initial(void);

/* This process's user id in the user namespace above; its own if that can't be read. */
uid_t idmap_outside_uid(void);
