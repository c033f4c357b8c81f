/* SPDX-License-Identifier: Apache-2.0 */
/* network_parts - what a network holds; for netns/ only, and tests. */
#pragma once

#include "netns/gateway.h"
#include "netns/network.h"
#include "netns/relay/forward.h"
#include "netns/relay/name_servers.h"

struct network {
	const struct network_spec *spec; /* borrowed, as are the endpoints */
	const struct endpoints *endpoints;
	unsigned number;
	struct network_callbacks callbacks;
	struct network_handles handles; /* SLOT_JAIL until the gateway is open, and listeners */
	struct gateway gateway;
	int route_fd;     /* NETLINK_ROUTE in the gateway, for the uplink; -1: no gateway */
	int epoll_fd;     /* -1: nothing to serve yet */
	bool is_building; /* the uplink is awaited */
	bool is_filtered;
	enum network_state state;
	char why[NETWORK_WHY_MAX];
	struct name_servers name_servers;
	struct uplink *uplink;
	struct forward *forward;
	struct denials denials;
};
