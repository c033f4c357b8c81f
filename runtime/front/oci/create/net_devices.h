/* SPDX-License-Identifier: Apache-2.0 */
/* net_devices - linux.netDevices: devices of the caller's network namespace for the container. */
#pragma once

#include "runtime/base/error.h"
#include "runtime/front/oci/config/oci_linux.h"

/*
 * net_devices_move - move them into the network namespace of the process behind `init_pidfd`.
 *
 * They stay there when create fails later, or the container ends.  With the namespace the kernel
 * removes virtual devices and gives others back: network_namespaces(7).
 * Runs in:  create; it is in the container's namespace for a moment.
 * Fails:    EPERM without CAP_NET_ADMIN over both namespaces; link_move().
 */
int net_devices_move(const struct oci_linux *config, int init_pidfd, struct cj_error *err);
