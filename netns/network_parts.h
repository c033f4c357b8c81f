/* SPDX-License-Identifier: Apache-2.0 */
/* network_parts - what a network holds; for netns/ only, and tests. */
#pragma once

#include "netns/gateway.h"
#include "netns/network.h"
#include "netns/relay/forward.h"
#include "netns/relay/name_servers.h"
#include "netns/rtnetlink/hostaddrs.h"

/* How often something happened in a second. */
struct network_rate {
	uint64_t second;
	unsigned count;
};

struct network {
	const struct network_spec *spec; /* borrowed, as are the endpoints */
	const struct endpoints *endpoints;
	unsigned number;
	struct network_callbacks callbacks;
	struct network_handles handles;
	struct gateway gateway;
	uint32_t drains;                           /* how many were asked of the gateway */
	struct network_rate denial_rate, ask_rate; /* of what it sends */
	int epoll_fd;                              /* -1: nothing to serve yet */
	bool is_building;                          /* the uplink is awaited */
	bool is_filtered;
	enum network_state state;
	char why[NETWORK_WHY_MAX];
	struct hostaddrs *hostaddrs;
	struct name_servers name_servers;
	struct uplink *uplink;
	struct forward *forward;
	struct denials denials;
};
