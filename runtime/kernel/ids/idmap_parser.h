/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idmap_parser - /proc/PID/uid_map and gid_map as text, and which of their ids are unused.  Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/error.h"

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
