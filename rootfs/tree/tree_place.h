/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_place - finds and makes places in a tree whose content is hostile.  Acts.
 *
 * Links of the tree are followed inside it (RESOLVE_IN_ROOT), but none at or below /dev, /proc
 * and /sys.  Nothing of an existing entry is changed: neither its mode nor its owner.
 */
#pragma once

#include <sys/types.h>

#include "runtime/base/error.h"

enum tree_place {
	TREE_PLACE_GIVEN,     /* it must exist */
	TREE_PLACE_DIRECTORY, /* made if it is missing, 0755 */
	TREE_PLACE_FILE,      /* made if it is missing, empty, 0644 */
};

/*
 * tree_place_open - open `path` (absolute) beneath root_fd; parents that are missing are made.
 *
 * Returns: an O_PATH descriptor, the caller's to close.  A mount is attached on it by
 *          mounts_attach().  It is never the root itself.
 * Fails:   -ENOENT with TREE_PLACE_GIVEN; -ENOTDIR, -EISDIR when something of another type is
 *          there; -ELOOP for a link that may not be followed or leads to nothing.
 * Follows: openat2(2).
 */
int tree_place_open(int root_fd, const char *path, enum tree_place place, struct cj_error *err);

/*
 * tree_place_open_parent - the directory of `path`, made if it is missing, without following a
 * link; *out_name is the last component, in `path`.
 */
int tree_place_open_parent(int root_fd, const char *path, const char **out_name,
			   struct cj_error *err);
