/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uplink_privileges - the user and the capabilities of a helper.  Acts, on the calling process.
 *
 * All capabilities in here are over the gateway's user namespace; over the host there is none.
 */
#pragma once

#include "runtime/base/error.h"

/* Become the only user and group that the user namespace just joined maps.  Root has no id in
 * there, and the helper must not stay root outside. */
int uplink_privileges_become(struct cj_error *err);

/*
 * uplink_privileges_keep - across the execve(2) of a helper: CAP_SYS_ADMIN (setns(2), and the
 * mounts pasta withdraws with) and CAP_NET_ADMIN (TUNSETIFF, rtnetlink); no new ones. Follows:
 * capabilities(7) "Ambient": our id is not 0 in there.
 */
int uplink_privileges_keep(struct cj_error *err);

/* Clears all sets of capabilities except the bounding set. */
int uplink_privileges_drop(struct cj_error *err);
