/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_place - finds and makes places in a tree whose content is hostile.
 *
 * Nothing of an existing entry is changed: neither its mode nor its owner.
 */
#pragma once

#include "runtime/base/error.h"

enum tree_place {
	TREE_PLACE_GIVEN,     /* it must exist */
	TREE_PLACE_DIRECTORY, /* made if it is missing, 0755 */
	TREE_PLACE_FILE,      /* made if it is missing, empty, 0644 */
};

/* A path in the tree. */
struct tree_path {
	int dir_fd;       /* where it begins: the root, or the mount at /dev, /proc or /sys */
	const char *path; /* absolute: from dir_fd on */
	const char *name; /* of the whole path, for messages */
	/* Links are followed inside dir_fd (RESOLVE_IN_ROOT), else a link is an error.  Links of
	 * procfs that lead elsewhere ("/proc/self/root") are never followed. */
	bool follows_links;
	/* Components are made only in directories of this device.  NULL: in any directory. */
	const dev_t *makes_on;
};

/*
 * tree_place_open - open a path; what is missing is made, one component at a time.
 *
 * Returns: an O_PATH descriptor, the caller's to close; mounts_attach() takes it.
 * Fails:   -ENOENT with TREE_PLACE_GIVEN, only if the path leads to nothing; -ENOTDIR, -EISDIR
 *          when something of another type is there; -ELOOP for a link; -EBUSY when the path leads
 *          to dir_fd itself.
 * Follows: openat2(2).
 */
int tree_place_open(const struct tree_path *at, enum tree_place place, struct cj_error *err);

/*
 * tree_place_open_parent - the directory of a path, made if it is missing, without following a
 * link; *out_name is the last component, in at->path.  It may be dir_fd itself.
 */
int tree_place_open_parent(const struct tree_path *at, const char **out_name, struct cj_error *err);
