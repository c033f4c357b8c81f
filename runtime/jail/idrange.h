/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idrange - /proc/PID/uid_map and gid_map as text, and which ids in them nobody uses.  Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/error.h"

#define IDRANGE_LINES_MAX 340 /* the kernel's own limit: user_namespaces(7) */

struct idrange {
	uint32_t inside, outside, count; /* as in user_namespaces(7) */
};

struct idrange_map {
	struct idrange items[IDRANGE_LINES_MAX];
	size_t count;
};

/* The text of a uid_map or gid_map; `name` is the file, for messages. */
int idrange_parse(const char *name, const char *text, struct idrange_map *out,
		  struct cj_error *err);

/* What `id` is called one user namespace up; false: it has no mapping. */
bool idrange_outside(const struct idrange_map *map, uint32_t id, uint32_t *out);

/* Consecutive ids, all of them mapped. */
struct idrange_block {
	uint32_t first, count;
};

/*
 * idrange_pick - ids, valid as uid and as gid, that nobody is expected to use.
 *
 * 0x70000000 and the 65535 after it where they are mapped (systemd's UIDS-GIDS page lists
 * them as unused), else the upper half of the largest stretch, without what that page
 * and login.defs(5) give away: ids below 1000 and from 60000 to 65535.
 */
bool idrange_pick(const struct idrange_map *uids, const struct idrange_map *gids,
		  struct idrange_block *out);
