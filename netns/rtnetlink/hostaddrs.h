/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostaddrs - the addresses of this host's interfaces, now and as they come.  Acts.
 *
 * Subscribes first and lists second, so none falls between.  Addresses that go away stay closed.
 */
#pragma once

#include "netns/ip.h"
#include "runtime/base/error.h"

#define HOSTADDRS_MAX 256 /* more is refused: a rule set that is not whole is none */

/*
 * An interface stands for more than its own address: the peer's, the broadcast, and the first and
 * last of its network, which the host takes for itself (old broadcasts, the IPv6 routers' anycast
 * address).  All are closed.  Not kept: loopback and IPv6 link-local ones, which no router passes
 * on and which are closed without us; there may be one for every container of the host.
 */
struct hostaddrs_set {
	struct ip items[HOSTADDRS_MAX]; /* in the order of their coming, each once */
	size_t count;
};

enum hostaddrs_read {
	HOSTADDRS_MORE, /* the messages are read; others will follow */
	HOSTADDRS_END,  /* the last message of a list was there */
	HOSTADDRS_GAP,  /* the list changed while it was read, or bytes were no messages */
	HOSTADDRS_FULL  /* more than HOSTADDRS_MAX */
};

/* Adds what rtnetlink messages say.  Pure; `bytes` is aligned to 4. */
enum hostaddrs_read hostaddrs_read(struct hostaddrs_set *set, const void *bytes, size_t size);

struct hostaddrs;

/* Opens the subscription (non-blocking) and reads what there is, of every interface of the
 * caller's network namespace.  Fails: E2BIG, more than HOSTADDRS_MAX. */
int hostaddrs_open(struct hostaddrs **out, struct cj_error *err);
void hostaddrs_close(struct hostaddrs **h);

int hostaddrs_fd(const struct hostaddrs *h);

/* All of the set; valid until the next hostaddrs_receive(). */
const struct ip *hostaddrs_list(const struct hostaddrs *h, size_t *out_count);

/*
 * Reads what the kernel has to say; new addresses are at the end of the list, from index *out_first
 * on.  Lists again when messages were lost (ENOBUFS).
 */
int hostaddrs_receive(struct hostaddrs *h, size_t *out_first, struct cj_error *err);
