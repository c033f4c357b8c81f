/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_place - finds and makes places in a tree whose content is hostile.  Acts.
 *
 * Nothing of an existing entry is changed: neither its mode nor its owner.
 */
#pragma once

#include <stdbool.h>

#include "runtime/base/error.h"

enum tree_place {
	TREE_PLACE_GIVEN,     /* it must exist */
	TREE_PLACE_DIRECTORY, /* made if it is missing, 0755 */
	TREE_PLACE_FILE,      /* made if it is missing, empty, 0644 */
};

/*
 * tree_place_open - open `path` (absolute: from root_fd on); what is missing is made, one component
 * at a time.
 *
 * follows_links: links are followed inside root_fd (RESOLVE_IN_ROOT), else a link is an error.
 * Links of procfs that lead elsewhere ("/proc/self/root") are never followed.
 * Returns: an O_PATH descriptor, the caller's to close; mounts_attach() takes it.
 * Fails:   -ENOENT with TREE_PLACE_GIVEN; -ENOTDIR, -EISDIR when something of another type is
 *          there; -ELOOP for a link; -EBUSY when the path leads to root_fd itself.
 * Follows: openat2(2).
 */
int tree_place_open(int root_fd, const char *path, enum tree_place place, bool follows_links,
		    struct cj_error *err);

/*
 * tree_place_open_parent - the directory of `path`, made if it is missing, without following a
 * link; *out_name is the last component, in `path`.  It may be root_fd itself.
 */
int tree_place_open_parent(int root_fd, const char *path, const char **out_name,
			   struct cj_error *err);
