/* SPDX-License-Identifier: Apache-2.0 */
/*
 * firewall_spec - what the rules of one jail are made from, and the names and limits in them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "netns/address/addresses.h"
#include "netns/address/allowlist.h"
#include "netns/address/ip.h"

#define FIREWALL_TABLE       "cejail"
#define FIREWALL_TABLE_MAX   24        /* "cejail-", 16 digits, a NUL: a container's */
#define FIREWALL_COUNTERS    "refused" /* a set: a mark, its counter */
#define FIREWALL_LOG_GROUP   1
#define FIREWALL_LOG_PREFIX  "cejail"
#define FIREWALL_LOG_BYTES   128   /* of a packet: headers, with room for IPv6 extensions */
#define FIREWALL_LOG_SECOND  200   /* logged refusals a second; the counters are exact */
#define FIREWALL_CONNECTIONS 512   /* tracked connections of one jail at a time */
#define FIREWALL_NEW_SECOND  200   /* new ones a second, FIREWALL_CONNECTIONS in a burst */
#define FIREWALL_UDP_SECOND  20000 /* UDP packets a second out of one jail, as many in a burst */

struct firewall_spec {
	struct addresses addresses; /* the gateway's are closed */
	bool has_dns;               /* but port 53 of gateway4 is open */
	bool is_list; /* --allow: only `allowed` is open; else all that ranges[] does not close */
	const struct endpoint *allowed;
	size_t nallowed;
	const struct ip *host; /* the host's own addresses: closed, also when listed */
	size_t nhost;
};

#define FIREWALL_NAME_SERVERS_MAX 8

/*
 * A network namespace that another program made, with addresses of any kind: a container's.  Port
 * 53 of `name_servers` is open, also in a closed range.
 */
struct firewall_container_spec {
	bool is_list; /* only `allowed` is open; else all that ranges[] does not close */
	const struct endpoint *allowed;
	size_t nallowed;
	const struct ip *name_servers;
	size_t nname_servers;
	const struct ip *host; /* the host's own addresses: closed, also when listed */
	size_t nhost;
};

/*
 * The host's side of the uplink.  A packet that comes in on `link` must have the source `ip4` or
 * `ip6`.  It must not go to an address of the host (fib type local, now or later), nor, after DNAT
 * by other tables, to a closed range that `allowed` does not open.  No new connection goes out on
 * `link`, towards the jail.  The source address becomes the host's (masquerade).
 *
 * A shared table does this for all links whose names begin with `link`.  Then `ip4` and `ip6` are
 * any addresses of the networks (/16, /112) that hold the jails' addresses.  Each link may only
 * have the source addresses that this host routes to it.
 */
struct firewall_host_spec {
	const char *table; /* unique on this host */
	const char *link;
	bool is_shared;         /* `link` is the prefix of many */
	const char *every_link; /* the prefix of all links of such tables on this host */
	struct ip ip4, ip6;     /* of the gateway's uplink; ip6 may be null */
	const struct endpoint *allowed;
	size_t nallowed;
};
