/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rtmsg - rtnetlink requests, built with libnl-route-3, and a batch (rtbatch) that sends several of
 * them in one send(2), each with a text for errors.
 *
 * The kernel executes them in order and answers only failures and the last one, so a batch is two
 * system calls.  libnl builds the messages but does not get the socket, because it would close that
 * borrowed descriptor.
 * Follows: netlink(7).
 */
#pragma once

#include "netns/address/ip.h"
#include "runtime/base/error.h"

#define RTBATCH_MESSAGES_MAX 24
#define RTBATCH_BYTES_MAX    6144
#define RTBATCH_WHAT_MAX     96

struct nl_msg;

/* Zero is an empty batch. */
struct rtbatch {
	_Alignas(4) uint8_t bytes[RTBATCH_BYTES_MAX];
	size_t size, count;
	size_t at[RTBATCH_MESSAGES_MAX];                   /* where in `bytes` each begins */
	int tolerated[RTBATCH_MESSAGES_MAX];               /* positive errno that is no failure */
	char what[RTBATCH_MESSAGES_MAX][RTBATCH_WHAT_MAX]; /* "bring up 'eth0'" */
	int failed; /* positive errno of building it; rtbatch_send() reports it */
};

/* The answer to RTM_GETLINK as the last message. */
struct rtbatch_link {
	int index;
	uint8_t operstate; /* IF_OPER_* */
	bool has_carrier;
	bool has_sent; /* a frame; of a tap device: a program has read one */
};

/* Takes `msg`; NULL is kept as ENOMEM.  The text names action and object. */
void rtbatch_add(struct rtbatch *b, struct nl_msg *msg, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The last message may fail with this errno. */
void rtbatch_tolerate(struct rtbatch *b, int code);

/*
 * rtbatch_send - send, and read the answers up to the last one.
 *
 * Messages after one that failed are executed, too; the first failure is reported.
 * out_link may be NULL; else the last message is an RTM_GETLINK.
 * Owns: borrows route_fd, a NETLINK_ROUTE socket without subscriptions, not in use elsewhere.
 */
int rtbatch_send(int route_fd, struct rtbatch *b, struct rtbatch_link *out_link,
		 struct cj_error *err);

/* --- requests: error messages name a link, the kernel uses its index --- */

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
