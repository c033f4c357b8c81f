/* SPDX-License-Identifier: Apache-2.0 */
/*
 * addresses - the addresses and link names of the network between jail and gateway.
 *
 * They are the same in every jail.  Both namespaces are private to the jail, and the gateway
 * translates the source address, so two jails never conflict.  The addresses lie in closed ranges
 * (benchmarking, RFC 2544; unique local, RFC 4193).
 */
#pragma once

#include "netns/address/ip.h"

/* One /31 and one /127; jail6 and gateway6 null: no IPv6. */
struct addresses {
	struct ip jail4, gateway4, jail6, gateway6;
};
struct addresses addresses_make(bool has_ipv6);

extern const struct ip address_gateway4;
#define ADDRESS_GATEWAY4_TEXT "198.18.0.3"

/* Interface names: in the jail, in the gateway towards it and towards the world. */
#define LINK_JAIL    "eth0"
#define LINK_GATEWAY "jail"
#define LINK_UPLINK  "uplink"
