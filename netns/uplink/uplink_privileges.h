/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uplink_privileges - the user and the capabilities of a helper, and how a process gets
 * capabilities over a gateway.  Acts, on the calling process.
 *
 * All capabilities in here are over the gateway's user namespace; over the host there is none.
 */
#pragma once

#include <stdbool.h>

#include "runtime/base/error.h"

/*
 * uplink_privileges_join - join the user namespace that owns the network namespace of this socket.
 *
 * Runs in: a short-lived child, which has every capability there afterwards.  A request to die
 * with the parent does not survive it.  Returns the network namespace.
 */
int uplink_privileges_join(int sock_fd, struct cj_error *err);

/* Become the only user and group that the user namespace just joined maps.  Root has no id in
 * there, and the helper must not stay root outside. */
int uplink_privileges_become(struct cj_error *err);

/*
 * uplink_privileges_keep - across the execve(2) of a helper: CAP_SYS_ADMIN (setns(2), and the
 * mounts pasta withdraws with), and CAP_NET_ADMIN if it is wanted (rtnetlink); no new ones.
 *
 * Attaching to the tap device needs no capability: the helper's user owns it.
 * Follows: capabilities(7) "Ambient": our id is not 0 in there.
 */
int uplink_privileges_keep(bool is_net_admin, struct cj_error *err);

/* Clears all sets of capabilities except the bounding set. */
int uplink_privileges_drop(struct cj_error *err);
