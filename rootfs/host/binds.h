/* SPDX-License-Identifier: Apache-2.0 */
/*
 * binds - host paths that the caller shows in the jail: --ro-bind, --bind, --overlay,
 * --connect unix:.
 */
#pragma once

#include "rootfs/host/bind_sources.h"
#include "rootfs/host/layers.h"
#include "rootfs/rootfs_spec.h"
#include "runtime/base/arena.h"
#include "runtime/base/error.h"

/*
 * binds_open - resolve each source once, without crossing a link, check what it is, clone it.
 *
 * `layers`: of the image, to refuse a target that goes through one of its links.
 * Runs in:  init, with the caller's ids.  On failure nothing is open.
 */
int binds_open(struct bind_sources *out, const struct rootfs_spec *spec,
	       const struct layers *layers, struct arena *a, struct cj_error *err);
void binds_close(struct bind_sources *sources);

/* Adds the mount points to the skeleton. */
int binds_add_places(const struct bind_sources *sources, const struct rootfs_spec *spec,
		     int skeleton_fd, struct cj_error *err);

/*
 * binds_attach - attach the binds in the given order, after all other mounts.
 *
 * A missing mount point on the scratch (scratch_fd) is made; one in a tree of the host must exist.
 */
int binds_attach(const struct bind_sources *sources, const struct rootfs_spec *spec, int scratch_fd,
		 int root_fd, struct cj_error *err);
