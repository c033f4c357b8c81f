/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uplink_tap - the tap device LINK_UPLINK that a helper attaches to.  Acts, on the calling process.
 *
 * If a helper made the device, its end would remove the device, and wait 25 to 40 ms for that.
 * This one is persistent: the helper's end only takes away its carrier.  The kernel removes it with
 * the gateway's network namespace, in a worker.
 */
#pragma once

#include "runtime/base/error.h"

/*
 * uplink_tap_make - join the network namespace and make the device there: down, without carrier,
 * for this user alone.  A device that an earlier helper left is taken as it is.
 *
 * Runs in:  a process that ends soon, because it can't leave that namespace again.
 * Fails:    EBUSY while a helper is attached.  EACCES, EPERM or ENOENT: this user can't open
 *           /dev/net/tun, so the helper could not either.
 * Follows:  tun(4): Documentation/networking/tuntap.rst of the kernel; TUNSETIFF, TUNSETPERSIST.
 */
int uplink_tap_make(int netns_fd, struct cj_error *err);
