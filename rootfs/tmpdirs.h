/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tmpdirs - empty writable directories at places that the caller names: --tmpfs.
 *
 * Each is a directory of the scratch, as /box and /tmp are: so it counts in --disk and in the
 * measured use of the scratch.
 */
#pragma once

#include "rootfs/host/bind_sources.h"
#include "rootfs/rootfs_spec.h"
#include "runtime/base/error.h"

/*
 * tmpdirs_make - make the directory of each BIND_TMPFS, and a detached mount of it.
 * Runs in:  init, as the jail's user, when the scratch is attached.
 */
int tmpdirs_make(struct bind_sources *sources, const struct rootfs_spec *spec, int scratch_fd,
		 struct cj_error *err);
