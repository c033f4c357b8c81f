/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranges - which destinations are closed in a public network, and why.
 *
 * The nftables sets, the tests and the list in cejail-network(7) are made from ranges[].  An
 * address that is in no row is open only if it is IPv4 unicast or lies in 2000::/3.
 */
#pragma once

#include "netns/address/ip.h"

/* Why a packet was refused: the class of its destination, or another reason. */
enum net_class {
	NET_LOOPBACK,
	NET_PRIVATE,
	NET_LINK_LOCAL,
	NET_METADATA,
	NET_SHARED,
	NET_MULTICAST,
	NET_RESERVED,
	NET_DOCUMENTATION,
	NET_TRANSLATED, /* IPv6 that becomes a packet to an IPv4 address: NAT64, 6to4, Teredo */
	NET_MAPPED,     /* IPv4-mapped IPv6 as a destination */
	NET_HOST,       /* an address of the host's, or the gateway's own */
	/* not a class of addresses */
	NET_NOT_ALLOWED, /* not on the --allow list, or on the --deny list */
	NET_PROTOCOL,    /* neither TCP, UDP nor an echo request; IP options, extension headers */
	NET_LIMIT,       /* too many connections, or UDP packets a second */
	NET_SPOOFED,     /* the source address is not the jail's */
	NET_NAME,        /* likewise a query for a name; not a packet */
	NET_CLASS_COUNT
};
#define NET_RANGE_CLASSES NET_NOT_ALLOWED /* those before it are classes of addresses */

extern const char *const net_class_names[NET_CLASS_COUNT]; /* "loopback", "not_allowed", ... */

struct range {
	const char *prefix; /* as ip_net_parse() reads it */
	enum net_class class;
	const char *what;
	const char *source; /* RFC, IANA registry or the vendor's page */
};

/* In ascending order, the wider first.  Rows may be nested: the longest prefix decides. */
extern const struct range ranges[];
extern const size_t ranges_count;

/* True with the class when the address is closed. */
bool ranges_find(const struct ip *ip, enum net_class *out);

struct range_interval {
	struct ip first, last;
	enum net_class class;
};
#define RANGE_INTERVALS_MAX 160

/*
 * The table of one family (4 or 6) as disjoint intervals in ascending order, neighbours of one
 * class merged, as an nftables interval map needs them.  Returns how many.
 */
size_t ranges_flatten(int family, struct range_interval out[static RANGE_INTERVALS_MAX]);
