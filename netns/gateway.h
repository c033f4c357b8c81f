/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gateway - makes a jail's gateway: the network namespace between the jail and the host.  Acts.
 *
 *	supervisor              opener
 *	clone3 ---------------> keeps the jail's socket and the link, dies with the supervisor
 *	                        joins the user namespace that owns the jail's network namespace
 *	                        creates the gateway, and opens sockets in it
 *	                        enters the jail's network namespace, and opens sockets in it
 *	<--- opened, sockets -- ends
 *	reaps the opener
 *
 * A process that has joined a user namespace can't leave it, so a process of its own does this.
 * The sockets keep the gateway alive, and the supervisor works through them: it never enters a
 * namespace of the jail.
 */
#pragma once

#include "netns/network.h"

/*
 * gateway_open - fill the gateway's and the jail's slots of *h, and h->has_ipv6.
 *
 * h->fds[SLOT_JAIL] is a socket of the jail's namespace; it is closed on success.
 * Must not: be called before the id maps are written.
 * Fails:    with the opener's error; *h is as it was.  The opener is reaped in any case.
 * Follows:  netdevice(7) SIOCGSKNS, ioctl_ns(2), setns(2), network_namespaces(7).
 */
int gateway_open(bool has_dns, struct network_handles *h, struct cj_error *err);

/*
 * gateway_open_here - the opener's part alone, for a trial.
 *
 * Runs in: a process with every capability over the user namespace that owns the namespace of
 * SLOT_JAIL; it is in that network namespace afterwards.  On failure *h may have some sockets.
 */
int gateway_open_here(bool has_dns, struct network_handles *h, struct cj_error *err);
