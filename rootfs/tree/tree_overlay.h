/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_overlay - overlays whose paths are longer than an option of fsconfig(2) may be.  Acts.
 *
 * The directories of an engine's store have long paths, and an image has many.  Each is opened, and
 * the kernel reads the number of its descriptor: rootfs/layers.c.
 */
#pragma once

#include <stdbool.h>

#include "rootfs/tree/tree_spec.h"
#include "runtime/base/error.h"

/* Does the operation make an overlay with an option of more than MOUNTS_OPTION_MAX bytes? */
bool tree_overlay_is_long(const struct tree_op *op);

/*
 * tree_overlay_create - that overlay, detached, with `attrs`.
 *
 * Relative paths begin in the working directory.  Must not: run where "/proc" is the container's.
 * Fails:   as open(2) for a directory; ENAMETOOLONG for more layers than fit as numbers, 60 at
 *          least.
 * Follows: overlayfs.rst: ':' separates the paths of lowerdir, '\\' stands before a ':' of a path.
 */
int tree_overlay_create(const struct tree_op *op, uint64_t attrs, struct cj_error *err);
