/* SPDX-License-Identifier: Apache-2.0 */
/*
 * firewall - the nftables rules of one jail, loaded in three network namespaces; and those of a
 * container, in its own.
 *
 *	jail     an output hook in the jail's own network namespace.  It filters destinations and
 *	         answers at once, so a refused program need not wait for a timeout.
 *	gateway  prerouting, forward, input and postrouting hooks between the jail and its uplink.
 *	         They filter destinations a second time and do what only a router can do: source
 *	         check, connection tracking, limits, source NAT.
 *	host     with the host uplink only, in the caller's own network namespace: a table that the
 *	         kernel removes with the socket that owns it (NFT_TABLE_F_OWNER)
 *
 *	container  an output hook in a network namespace that another program made, for cejail-oci
 *
 * No process inside has a capability over any of them.  A batch of rules is loaded
 * completely or not at all.
 *
 * A refused packet gets its class + 1 as mark.  The rules count it exactly by that mark (set
 * FIREWALL_COUNTERS), log it with the mark to nflog group FIREWALL_LOG_GROUP (rate-limited), and
 * answer it: TCP reset, or ICMP "administratively prohibited".  Two kinds get no answer: packets
 * with a source address that is not the jail's, and UDP above the rate.
 */
#pragma once

#include "netns/address/addresses.h"
#include "netns/address/allowlist.h"
#include "netns/address/ranges.h"
#include "runtime/base/error.h"

#define FIREWALL_TABLE       "cejail"
#define FIREWALL_TABLE_MAX   24        /* "cejail-", 16 digits, a NUL: a container's */
#define FIREWALL_LINK_MAX    16        /* IFNAMSIZ */
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
	bool is_list;   /* --allow: only `allowed` is open; else all that ranges[] does not close */
	bool has_names; /* open addresses: these, and others later */
	bool has_proxy; /* in the gateway: names can be checked (firewall_checked.c) */
	bool checks_names;            /* and are: on ports 443 and 80 of what they have opened */
	const struct endpoint *named; /* each one address, for one port or all */
	size_t nnamed;
	const struct endpoint *allowed;
	size_t nallowed;
	const struct endpoint *denied; /* closed, whatever else is open */
	size_t ndenied;
	const struct ip *host; /* the host's own addresses: closed, also when listed */
	size_t nhost;
};

#define FIREWALL_NAME_SERVERS_MAX 8

/*
 * A network namespace that another program made, with addresses of any kind: a container's.  Port
 * 53 of `name_servers` is open, also in a closed range.
 */
struct firewall_container_spec {
	struct firewall_spec rules; /* but for the addresses and DNS, which are a jail's */
	const struct ip *name_servers;
	size_t nname_servers;
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
	char table[FIREWALL_TABLE_MAX]; /* unique on this host */
	char link[FIREWALL_LINK_MAX];
	bool is_shared; /* `link` is the prefix of many */
	char
	    every_link[FIREWALL_LINK_MAX]; /* the prefix of all links of such tables on this host */
	struct ip ip4, ip6;                /* of the gateway's uplink; ip6 may be null */
	const struct endpoint *allowed;
	size_t nallowed;
};

struct nft_batch;

/*
 * Sends the batch through a NETLINK_NETFILTER socket of the namespace it is for, and reads all
 * answers.  Fails: EOPNOTSUPP without nf_tables (hint); else with the first error and its object.
 */
int firewall_load(int nft_fd, struct nft_batch *b, struct cj_error *err);

/* Build, then load. */
int firewall_apply_jail(int nft_fd, const struct firewall_spec *spec, struct cj_error *err);
int firewall_apply_gateway(int nft_fd, const struct firewall_spec *spec, struct cj_error *err);
int firewall_apply_host(int nft_fd, const struct firewall_host_spec *spec, struct cj_error *err);

/*
 * firewall_apply_container - the rules in a table whose name is made of them: *out_table.
 *
 * Containers that share a namespace and want the same share one table.  With different tables a
 * packet must pass all of them.  A table of this name is replaced, whatever it contains.
 */
int firewall_apply_container(int nft_fd, const struct firewall_container_spec *spec,
			     char out_table[static FIREWALL_TABLE_MAX], struct cj_error *err);

/*
 * firewall_replace - other rules about destinations in a loaded jail or gateway table, in one
 * transaction.  Counters and limits go on.
 *
 * from: what is loaded.  Only the lists may differ, and the host's addresses.
 * Fails: with the rules as they were.
 */
int firewall_replace(int nft_fd, const struct firewall_spec *from, const struct firewall_spec *to,
		     struct cj_error *err);

/*
 * firewall_open_names - load what names have opened into a jail or gateway table with names: all of
 * them or none.
 * Fails: ENFILE when a set has more than NAMES_OPEN_MAX, as the kernel counts.
 */
int firewall_open_names(int nft_fd, const struct endpoint *named, size_t n, struct cj_error *err);

/* Closes one more address of the host, in a loaded jail or gateway table. */
int firewall_close_host(int nft_fd, const struct ip *ip, struct cj_error *err);

/*
 * For a family (4 or 6) without a way out: a loaded jail table rejects at once all packets that it
 * does not refuse.  They are no denials and are not counted.
 */
int firewall_unreachable(int nft_fd, int family, struct cj_error *err);

/* Adds the counters of a table to counts[]. */
int firewall_read_table(int nft_fd, const char *table, uint64_t counts[static NET_CLASS_COUNT],
			struct cj_error *err);
