/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_mask - hides paths of a tree, or makes them read-only.  Acts.
 */
#pragma once

#include <stdbool.h>

#include "runtime/base/error.h"

/* What masks are made of: both are attached where they are used first, and cloned from there. */
struct tree_masks {
	int null_fd;  /* a clone of the host's /dev/null; -1: none */
	int empty_fd; /* an empty, read-only tmpfs; -1: none yet */
	bool null_is_attached, empty_is_attached;
};
#define TREE_MASKS_NULL ((struct tree_masks){ .null_fd = -1, .empty_fd = -1 })

/*
 * tree_mask_open - clone /dev/null below dev_fd, the host's /dev, once it is known to be the device
 * 1:3 (CVE-2025-31133: an image's own can be anything).
 * Owns: *masks, until tree_mask_close().
 */
int tree_mask_open(struct tree_masks *masks, int dev_fd, struct cj_error *err);
void tree_mask_close(struct tree_masks *masks);

/* Covers what is at place_fd: a directory by an empty one, all else by /dev/null. */
int tree_mask_cover(struct tree_masks *masks, int place_fd, const char *name, struct cj_error *err);

/* Covers what is at place_fd by a read-only clone of it and of the mounts below it. */
int tree_mask_make_read_only(int place_fd, const char *name, struct cj_error *err);
