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

/* --- /proc/PID/uid_map and gid_map as text ------------------------------------------------- */

#define IDMAP_LINES_MAX 340 /* the kernel's own limit: user_namespaces(7) */

struct idrange {
	uint32_t inside, outside, count; /* as in user_namespaces(7) */
};

struct idmap_ranges {
	struct idrange items[IDMAP_LINES_MAX];
	size_t count;
};

/* The text of a uid_map or gid_map; `name` is the file, for messages. */
int idmap_parse(const char *name, const char *text, struct idmap_ranges *out, struct cj_error *err);

/* The id of `id` in the user namespace above; false: it has no mapping. */
bool idmap_outside(const struct idmap_ranges *map, uint32_t id, uint32_t *out);

/* Consecutive ids, all of them mapped. */
struct idmap_block {
	uint32_t first, count;
};

/*
 * idmap_pick - unused ids that are mapped as uid and as gid.
 *
 * 0x70000000 and the 65535 after it where they are mapped (systemd's UIDS-GIDS page lists
 * them as unused), else the upper half of the largest stretch, without what that page
 * and login.defs(5) give away: ids below 1000 and from 60000 to 65535.
 */
bool idmap_pick(const struct idmap_ranges *uids, const struct idmap_ranges *gids,
		struct idmap_block *out);
