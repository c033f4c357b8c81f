/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overlays - directories of the host, copy on write: --overlay.
 *
 * The directory is the read-only lower layer of an overlayfs.  All changes go to an upper layer on
 * the jail's scratch, so they count in --disk and end with the jail.  overlayfs copies a file with
 * its owner before the first change, so the jail's user must own what the program may change.
 */
#pragma once

#include "rootfs/host/bind_sources.h"
#include "rootfs/rootfs_spec.h"
#include "runtime/base/error.h"

/*
 * overlays_check_lower - fail if other file systems are mounted below the directory dir_fd.
 * The overlay would show what they cover.  Runs in: init, with the caller's ids.
 */
int overlays_check_lower(int dir_fd, const char *name, struct cj_error *err);

/*
 * overlays_adopt - replace the sources of the overlays by `count` detached trees.
 * Takes each descriptor that it uses (it becomes -1).
 */
int overlays_adopt(struct bind_sources *sources, const struct rootfs_spec *spec, int *fds,
		   size_t count, struct cj_error *err);

/*
 * overlays_mount - replace the source of each overlay by the overlay itself, detached.
 *
 * Trees of the supervisor are parked at park_fd first: rootfs.c says why.
 * Runs in:  init, as the jail's user.
 */
int overlays_mount(struct bind_sources *sources, const struct rootfs_spec *spec, int scratch_fd,
		   int park_fd, struct cj_error *err);
