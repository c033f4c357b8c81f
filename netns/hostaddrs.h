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

struct hostaddrs;

/* Opens the subscription (non-blocking) and reads what there is; local, peer and broadcast
 * addresses of every interface of the caller's network namespace. */
int hostaddrs_open(struct hostaddrs **out, struct cj_error *err);
void hostaddrs_close(struct hostaddrs **h);

int hostaddrs_fd(const struct hostaddrs *h);

/* All that are known; valid until the next hostaddrs_hear(). */
const struct ip *hostaddrs_list(const struct hostaddrs *h, size_t *out_count);

/*
 * Reads what the kernel has to say; new addresses are at the end of the list, from index *out_first
 * on.  Lists again when messages were lost (ENOBUFS).
 */
int hostaddrs_hear(struct hostaddrs *h, size_t *out_first, struct cj_error *err);
