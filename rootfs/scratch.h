/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scratch - all that a jail can write: one tmpfs, limited in bytes and in inodes.
 *
 * /box, /tmp, /dev/shm and --tmpfs are directories of it, and so are the upper layers of
 * --writable: --disk holds for all of them together.
 */
#pragma once

#include <stdint.h>

#include "rootfs/rootfs_spec.h"
#include "runtime/base/error.h"

/* Names of the layers a --writable jail writes to, each with its work directory (overlayfs.rst). */
#define SCRATCH_ROOT_UPPER "root"
#define SCRATCH_ROOT_WORK  "root.work"
#define SCRATCH_USR_UPPER  "usr"
#define SCRATCH_USR_WORK   "usr.work"

/* The attributes of every mount of it. */
uint64_t scratch_attrs(const struct rootfs_spec *spec);

/*
 * scratch_create - the tmpfs and its directories, detached.
 * Runs in:  init, as the jail's user (it owns them), umask 0.
 */
int scratch_create(const struct rootfs_spec *spec, struct cj_error *err);

/* Attaches /box, /tmp and /dev/shm.  The scratch itself must be attached (open_tree(2)). */
int scratch_attach(int scratch_fd, const struct rootfs_spec *spec, int root_fd,
		   struct cj_error *err);
