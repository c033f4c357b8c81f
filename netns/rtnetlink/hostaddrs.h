/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostaddrs - the addresses of this host's interfaces, also those that it gets later.
 *
 * It subscribes before it lists, so no address is missed.  Removed addresses stay closed.
 */
#pragma once

#include "netns/address/ip.h"
#include "runtime/base/error.h"

#define HOSTADDRS_MAX          256   /* more is an error: an incomplete rule set is not loaded */
#define HOSTADDRS_ANSWER_BYTES 32768 /* the kernel's maximum for a part of a list */

/*
 * These addresses of an interface are closed: its own, the peer's, the broadcast, and the first and
 * last of its network, at which the host answers, too (old broadcasts, the anycast address of IPv6
 * routers).  Not kept: loopback and IPv6 link-local addresses.  No router forwards them, ranges.c
 * closes them, and there may be one for every container of the host.
 */
struct hostaddrs_set {
	struct ip items[HOSTADDRS_MAX]; /* in order of arrival, each once */
	size_t count;
};

enum hostaddrs_read {
	HOSTADDRS_MORE, /* the messages are read; others will follow */
	HOSTADDRS_END,  /* the last message of a list was there */
	HOSTADDRS_GAP,  /* the list changed while it was read, or bytes were no messages */
	HOSTADDRS_FULL  /* more than HOSTADDRS_MAX */
};

/* Adds the addresses in rtnetlink messages.  `bytes` is aligned to 4. */
enum hostaddrs_read hostaddrs_read(struct hostaddrs_set *set, const void *bytes, size_t size);

/* Requests the list of all addresses (RTM_GETADDR) in the network namespace of the socket.  The
 * caller receives the answer.  0 or -errno. */
int hostaddrs_ask(int route_fd);

struct hostaddrs;

/* Opens the subscription and lists the addresses of every interface of the caller's
 * network namespace.  Fails: E2BIG, more than HOSTADDRS_MAX. */
int hostaddrs_open(struct hostaddrs **out, struct cj_error *err);
void hostaddrs_close(struct hostaddrs **h);

int hostaddrs_fd(const struct hostaddrs *h);

/* All addresses; valid until the next hostaddrs_receive(). */
const struct ip *hostaddrs_list(const struct hostaddrs *h, size_t *out_count);

/*
 * Reads the kernel's messages.  New addresses are at the end of the list, from index *out_first on.
 * Lists again when messages were lost (ENOBUFS).
 */
int hostaddrs_receive(struct hostaddrs *h, size_t *out_first, struct cj_error *err);
