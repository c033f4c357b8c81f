/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_use - a jail keeps the layers of its image.  Acts: opens and locks.
 *
 * A jail holds a shared flock(2) on the directory of each of its layers.  A removal renames a layer
 * away only while it holds the exclusive lock, so it leaves a layer in use where it is.  The kernel
 * releases the locks of a supervisor that is killed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"

struct image_use {
	int *fds; /* in the arena given */
	size_t count;
};

/*
 * image_use_begin - lock the layers, which are absolute paths in a store.
 *
 * Fails: ENOENT when the image was removed since the plan was made.  On failure nothing is held.
 */
int image_use_begin(struct image_use *out, const struct strings *layers, struct arena *a,
		    struct cj_error *err);
void image_use_end(struct image_use *use);

/*
 * image_use_claim - the exclusive lock on the layer dir_fd/name, until *out_fd is closed.
 *
 * *out_fd is -1 when a jail uses the layer.
 */
int image_use_claim(int dir_fd, const char *name, int *out_fd, struct cj_error *err);
