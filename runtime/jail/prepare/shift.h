/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shift - ID-mapped clones of --overlay sources, in which the jail's user owns the directory.
 *
 * Root's jail runs with an id that owns no file of the host, and overlayfs can't copy up a file
 * whose owner has no id in the user namespace.  So the supervisor clones the directory's mount as
 * an ID-mapped one: mount_setattr(2), MOUNT_ATTR_IDMAP.  An ordinary caller needs no clone: its
 * files have the jail's id already.
 */
#pragma once

#include <stddef.h>

#include "rootfs/rootfs.h"
#include "runtime/base/error.h"
#include "runtime/kernel/ids/idmap.h"

/*
 * shift_lowers - clone the source of each overlay of `root`, in the order of its binds.
 *
 * *out_count is 0 where the jail's id is the caller's own.  The descriptors are the caller's to
 * close; on failure none is open.
 * Runs in:  supervisor, as root.
 */
int shift_lowers(const struct rootfs_spec *root, const struct idmap *ids, int out_fds[OVERLAYS_MAX],
		 size_t *out_count, struct cj_error *err);
