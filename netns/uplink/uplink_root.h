/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uplink_root - the file system a helper sees: programs and libraries, read-only, and three
 * devices.  Acts.
 *
 * A helper parses packets of the jail, and keeps CAP_SYS_ADMIN over the gateway's user namespace
 * while it does.  A compromised helper must not reach the caller's account: it sees no home
 * directory, no socket of a daemon and no process of the host.
 */
#pragma once

#include "runtime/base/error.h"

/*
 * uplink_root_enter - make that root and move into it.
 *
 * Runs in:  the keeper, in a mount namespace of its own, with CAP_SYS_ADMIN over it.
 * `path` is the helper's executable; its directory is visible, too.
 * Follows:  mount_namespaces(7), pivot_root(2), mount_setattr(2).
 */
int uplink_root_enter(const char *path, struct cj_error *err);
