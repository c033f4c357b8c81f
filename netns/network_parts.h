/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network_parts - what a network holds, and the opener of its gateway; for netns/ only, tests, and
 * `cejail doctor`.
 */
#pragma once

#include "netns/network.h"
#include "netns/relay/forward.h"
#include "netns/relay/resolver.h"
#include "netns/rtnetlink/hostaddrs.h"

struct network {
	const struct network_spec *spec; /* borrowed, as are the endpoints */
	const struct endpoints *endpoints;
	unsigned number;
	struct network_callbacks callbacks;
	struct network_handles handles;
	int epoll_fd;     /* -1: nothing to serve yet */
	bool is_building; /* the uplink is awaited */
	bool is_filtered;
	enum network_state state;
	char why[NETWORK_WHY_MAX];
	struct hostaddrs *hostaddrs;
	struct uplink *uplink;
	struct forward *forward;
	struct resolver *resolver;
	struct denials denials;
};

/* --- gateway.c ---------------------------------------------------------------------------- */

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
