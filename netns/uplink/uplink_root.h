/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uplink_root - the file system a helper sees: programs and libraries, read-only, and three
 * devices.  Acts.
 *
 * A helper reads what the jail sends, byte by byte, and slirp4netns keeps its capabilities over
 * the gateway while it does.  So that a hole in it is not a hole in the caller's account, no home
 * directory, no socket of a daemon and no process of the host's is in its reach.
 */
#pragma once

#include "runtime/base/error.h"

/*
 * uplink_root_enter - make that root and move into it.
 *
 * Runs in:  the keeper, in a mount namespace of its own, with CAP_SYS_ADMIN over it.
 * `path` is the helper's own; its directory is there, too.
 * Follows:  mount_namespaces(7), pivot_root(2), mount_setattr(2).
 */
int uplink_root_enter(const char *path, struct cj_error *err);
