/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layers - stacked directories (overlayfs), read-only or under a temporary upper layer.
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"

#define LAYERS_MAX 60 /* what fits into one option of fsconfig(2), 255 bytes, as numbers */

struct layers {
	int *fds; /* first on top; in the arena given */
	size_t count;
};

/*
 * layers_open - open host directories, without crossing a link.
 * Runs in:  init, with the caller's ids.  On failure nothing is open.
 */
int layers_open(struct layers *out, const struct strings *paths, struct arena *a,
		struct cj_error *err);
void layers_close(struct layers *layers);

/* The layers of one overlay: descriptors on attached mounts, all borrowed. */
struct overlay {
	const char *name; /* for messages */
	int top_fd;       /* lies over `below`; -1: none */
	struct layers below;
	int upper_fd, work_fd; /* -1: read-only */
};

/*
 * layers_join - create that overlay, detached.
 * Changes the working directory to "/proc/self/fd".
 */
int layers_join(const struct overlay *overlay, uint64_t attrs, struct cj_error *err);

/* The same with options of the caller's, in which numbers of descriptors stand for paths. */
struct mounts_option;
int layers_create(const struct mounts_option *options, size_t noptions, uint64_t attrs,
		  const char *name, struct cj_error *err);
