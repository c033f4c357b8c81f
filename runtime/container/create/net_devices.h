/* SPDX-License-Identifier: Apache-2.0 */
/* net_devices - linux.netDevices: devices of the caller's network namespace for the container. */
#pragma once

#include "runtime/base/error.h"
#include "runtime/container/config/oci_linux.h"

/* The moved ones. */
struct net_devices {
	int there_fd; /* a NETLINK_ROUTE socket, which keeps their namespace; -1: none is moved */
	int *indexes; /* there, in the order of the configuration; 0: not moved */
};

/*
 * net_devices_move - move them into the network namespace of the process behind `init_pidfd`.
 *
 * `out` is for net_devices_return(), also after a failure.  When the container ends they stay in a
 * namespace that stays.  With it the kernel removes virtual devices, and moves the others to the
 * first network namespace of the machine.
 * Runs in:  create; it is in the container's namespace for a moment.
 * Fails:    EPERM without CAP_NET_ADMIN over both namespaces; links_move().
 */
int net_devices_move(const struct oci_linux *config, int init_pidfd, struct arena *a,
		     struct net_devices *out, struct cj_error *err);

/* Moves them back, after a create that fails; tries each.  They get their old names, and are up. */
int net_devices_return(const struct oci_linux *config, const struct net_devices *moved,
		       struct cj_error *err);
