/* SPDX-License-Identifier: Apache-2.0 */
/*
 * denials - what was refused: a short table of packets, from nflog messages and counters, and of
 * names that a program with a live allow list asked for.
 *
 * A message has the head of a packet of the payload: untrusted bytes, parsed by denial_parse().
 * The kernel limits the rate of logging, and messages may be lost, but the counters are
 * exact.  So refusals that were counted and not logged become one row of their class, without an
 * address.
 *
 * At the end of the run: denials_receive() until it returns 0, read the counters, denials_settle().
 */
#pragma once

#include "netns/address/ranges.h"
#include "runtime/base/error.h"

#define DENIALS_MAX                                                                                \
	256 /* different (class, protocol, address, port); further ones are only counted */
#define DENIALS_NAMES_MAX 64 /* of these rows names may have so many */
#define DENIALS_AT_ONCE   64 /* messages that one denials_receive() reads */

#define DENIAL_NAME_MAX 64 /* a longer name loses its beginning */

struct denial {
	enum net_class class;
	uint8_t protocol; /* IPPROTO_*; 0 with a null address */
	/* Null: of a name, or else refusals of the class that are in no other row. */
	struct ip address;
	uint16_t port; /* 0: the protocol has none, or the packet was too short */
	uint64_t count;
	bool is_shared; /* several programs lived in the jail: each of them could have sent these */
	char name
	    [DENIAL_NAME_MAX]; /* of NET_NAME, but not of a connection without one; else empty */
};

/* A query for a name, in lower case. */
struct denial denial_of_name(const char *name);

/* A connection there that states no name (name_proxy.h). */
struct denial denial_of_nameless(const struct ip *address, uint16_t port);

/* Is it one that one of these functions may have made? */
bool denial_is_valid(const struct denial *d);

/* "tcp", "udp", "icmp", "icmpv6", "sctp", ...; "ip" for the rest. */
const char *denial_protocol_name(uint8_t protocol);

/* Is the second word behind its header a port? */
bool denial_has_port(uint8_t protocol);

/* All zero is the empty table. */
struct denials {
	/* The last ones have no address: for each class one, and one that is shared. */
	struct denial items[DENIALS_MAX + 2 * NET_CLASS_COUNT];
	size_t count;
	uint64_t counted[NET_CLASS_COUNT]; /* of each class: the sum of its rows */
};

/* Counts one more denial.  Returns its row; NULL when the table is full: then it is only in the
 * kernel's counter. */
const struct denial *denials_add(struct denials *d, const struct denial *one);

/* Adds for each class a row for the refusals that were counted and are in no row yet: of packets by
 * the kernel. */
void denials_settle(struct denials *d, const uint64_t counts[static NET_CLASS_COUNT]);

/*
 * Adds all rows of `from`, as shared ones or as others.  What finds no room has a row of its class,
 * without an address.
 */
void denials_merge(struct denials *into, const struct denials *from, bool is_shared);

/* --- denial_log.c: in the gateway's program, by libmnl --------------------------------------- */

/*
 * denial_parse - one nflog message (its netlink payload after the nfgenmsg header) to a denial.
 * Bounded: follows at most eight extension headers, reads nothing past `size`.
 * False: not from cejail's rules (no class in its mark), or not an IP packet.
 */
bool denial_parse(const uint8_t *bytes, size_t size, struct denial *out);

/*
 * Binds a NETLINK_NETFILTER socket of a namespace to FIREWALL_LOG_GROUP and makes it non-blocking.
 * Fails: EPERM without CAP_NET_ADMIN over the namespace, or when another socket has the group;
 * EINVAL or EOPNOTSUPP without nfnetlink_log (hint).
 */
int denials_listen(int log_fd, struct cj_error *err);

/*
 * Reads at most DENIALS_AT_ONCE waiting messages, and calls `each` (unless NULL) for every denial
 * that has a row, with the row's count.  Lost messages are no error.
 * Returns how many messages were read; 0: none waits.
 */
int denials_receive(int log_fd, struct denials *d,
		    void (*each)(void *context, const struct denial *d), void *context,
		    struct cj_error *err);
