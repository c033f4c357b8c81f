/* SPDX-License-Identifier: Apache-2.0 */
/*
 * denials - what the rules refused, from nflog messages and counters to a short table.
 *
 * A message carries the head of a packet the payload made: hostile bytes, read by denial_parse()
 * (pure).  Logging is rate-limited in the kernel and messages may be lost; the counters are exact,
 * so what was counted and stands in no row becomes one row of its class without an address.
 *
 * At the end: denials_receive() until it returns 0, read the counters, denials_settle().
 */
#pragma once

#include "netns/ranges.h"
#include "runtime/base/error.h"

#define DENIALS_MAX     256 /* different (class, protocol, address, port); further ones only count */
#define DENIALS_AT_ONCE 64  /* messages denials_receive() reads before it comes back */

struct denial {
	enum net_class class;
	uint8_t protocol;  /* IPPROTO_*; 0 with a null address */
	struct ip address; /* null: refusals of the class that no row tells of */
	uint16_t port;     /* 0: the protocol has none, or the packet was too short */
	uint64_t count;
};

/* "tcp", "udp", "icmp", "icmpv6", "sctp", ...; "ip" for the rest. */
const char *denial_protocol_name(uint8_t protocol);

/*
 * denial_parse - one nflog message (its netlink payload after the nfgenmsg header) to a denial.
 * Pure, bounded: follows at most eight extension headers, reads nothing past `size`.
 * False: not one of ours (no class in its mark), or not an IP packet.
 */
bool denial_parse(const uint8_t *bytes, size_t size, struct denial *out);

/* All zero is the empty table. */
struct denials {
	struct denial items[DENIALS_MAX + NET_CLASS_COUNT]; /* the last are denials_settle()'s */
	size_t count;
	uint64_t counted[NET_CLASS_COUNT]; /* of each class: what its rows add up to */
};

/* Counts one more; the row it is counted in, or NULL when the table is full: then only the kernel's
 * counter knows of it. */
const struct denial *denials_add(struct denials *d, const struct denial *one);

/* Adds, for every class, a row for what the counters hold above what was heard. */
void denials_settle(struct denials *d, const uint64_t counts[static NET_CLASS_COUNT]);

/*
 * Binds a NETLINK_NETFILTER socket of a namespace to FIREWALL_LOG_GROUP; non-blocking from here.
 * Fails: EPERM without CAP_NET_ADMIN over the namespace, or when another socket has the group;
 * EINVAL or EOPNOTSUPP without nfnetlink_log (hint).
 */
int denials_listen(int log_fd, struct cj_error *err);

/*
 * Reads what waits, at most DENIALS_AT_ONCE messages, and calls `each` (NULL: nobody) for every
 * denial that has a row, with the row's count.  Messages that were lost are no error.
 * Returns how many messages were read; 0: nothing waits.
 */
int denials_receive(int log_fd, struct denials *d,
		    void (*each)(void *context, const struct denial *d), void *context,
		    struct cj_error *err);
