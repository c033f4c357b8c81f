/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rtmsg - rtnetlink requests, built with libnl-route-3 and added to a batch.  Pure.
 *
 * Error messages name a link, the kernel uses its index.
 */
#pragma once

#include <stdbool.h>

#include "netns/address/ip.h"
#include "netns/rtnetlink/rtbatch.h"

#define RTMSG_LINK_BYTES 6

struct rtmsg_link {
	const char *name;
	int index; /* 0: the kernel's choice (creation only) */
	uint8_t address[RTMSG_LINK_BYTES];
};

/* Both ends down, without ARP; `far` is created in the namespace far_netns_fd.  A given index of
 * `far` is used only when `near` has one, too (a quirk of veth). */
void rtmsg_veth(struct rtbatch *b, const struct rtmsg_link *near, const struct rtmsg_link *far,
		int far_netns_fd, unsigned mtu);

/* Answers with struct rtbatch_link; found by name when the index is 0. */
void rtmsg_get_link(struct rtbatch *b, const struct rtmsg_link *link);
void rtmsg_delete(struct rtbatch *b, const struct rtmsg_link *link);

/* One net.ipv4.conf.LINK.* */
struct rtmsg_setting {
	int key; /* IPV4_DEVCONF_* */
	unsigned value;
};
/* Also turns off automatic IPv6 addresses.  To be sent before the link is up. */
void rtmsg_configure(struct rtbatch *b, const struct rtmsg_link *link,
		     const struct rtmsg_setting *settings, size_t n);
void rtmsg_up(struct rtbatch *b, const struct rtmsg_link *link, unsigned mtu); /* mtu 0: as is */

/* Usable at once, of either family: without duplicate address detection. */
void rtmsg_address(struct rtbatch *b, const struct rtmsg_link *link, const struct ip *ip,
		   uint8_t bits);
/* A permanent neighbour entry: the kernel never sends a request for it. */
void rtmsg_neighbour(struct rtbatch *b, const struct rtmsg_link *link, const struct ip *ip,
		     const uint8_t address[static RTMSG_LINK_BYTES]);
/* A route to one address, directly on the link; EEXIST when there is such a route. */
void rtmsg_route_to(struct rtbatch *b, const struct rtmsg_link *link, const struct ip *ip);
/* The default route; `via` need not lie in a prefix of the link. */
void rtmsg_route_default(struct rtbatch *b, const struct rtmsg_link *link, const struct ip *via);
