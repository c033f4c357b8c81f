/* SPDX-License-Identifier: Apache-2.0 */
/*
 * denials - what the rules refused, from nflog messages and counters to a short table.
 *
 * A message carries the head of a packet the payload made: hostile bytes, read by denial_parse()
 * (pure).  Logging is rate-limited in the kernel and messages may be lost; the counters are exact,
 * so what was counted and not heard becomes one row of its class without an address.
 */
#pragma once

#include "netns/ranges.h"
#include "runtime/base/error.h"

#define DENIALS_MAX 128 /* different (class, protocol, address, port); further ones only count */

struct denial {
	enum net_class class;
	uint8_t protocol;   /* IPPROTO_*; 0 with a null address */
	struct ip address;  /* null: refusals of the class that no message told of */
	uint16_t port;      /* 0: the protocol has none, or the packet was too short */
	uint64_t count;
};

/* "tcp", "udp", "icmp", "icmpv6", "sctp", ...; "ip" for the rest. */
const char *denial_protocol_name(uint8_t protocol);

/*
 * denial_parse - one nflog message (its netlink payload after the nfgenmsg header) to a denial.
 * Pure, bounded: follows at most eight extension headers, reads nothing past `size`.
 * False: not one of ours (unknown prefix), or not an IP packet.
 */
bool denial_parse(const uint8_t *bytes, size_t size, struct denial *out);

struct denials {
	struct denial items[DENIALS_MAX];
	size_t count;
	uint64_t heard[NET_CLASS_COUNT]; /* told by messages, kept as a row or not */
};

/* Counts one more; the row it is counted in, or NULL when the table is full. */
const struct denial *denials_add(struct denials *d, const struct denial *one);

/* Adds, for every class, a row for what the counters hold above what was heard. */
void denials_settle(struct denials *d, const uint64_t counts[static NET_CLASS_COUNT]);

/* Binds a NETLINK_NETFILTER socket of a namespace to FIREWALL_LOG_GROUP; non-blocking from here. */
int denials_listen(int log_fd, struct cj_error *err);

/*
 * Reads a bounded number of messages and calls `each` for every denial, with its row's count.
 * Returns 0, also when there was nothing or messages were lost.
 */
int denials_hear(int log_fd, struct denials *d, void (*each)(void *context, const struct denial *d),
		 void *context, struct cj_error *err);
