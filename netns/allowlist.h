/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allowlist - what --allow names: text to targets (pure), targets to addresses (acts).
 */
#pragma once

#include "netns/ip.h"
#include "runtime/base/arena.h"
#include "runtime/base/error.h"

#define ALLOWLIST_MAX       64    /* --allow options of one run */
#define ENDPOINTS_MAX       512   /* addresses they may resolve to, together */
#define ALLOWLIST_HOSTS_MAX 65536 /* bytes of hosts(5) lines, with a NUL */

/* One --allow.  Ports: 0..65535 when none is given. */
struct allowlist_entry {
	const char *text; /* as written; for messages */
	const char *name; /* a host name to resolve; NULL: `net` */
	struct ip_net net;
	uint16_t first_port, last_port;
};

/* An address or network that is open, TCP and UDP. */
struct endpoint {
	struct ip first, last;
	uint16_t first_port, last_port;
};

/*
 * allowlist_parse - HOST[:PORT], ADDRESS[:PORT], [ADDRESS6][:PORT], CIDR[:PORT] (an IPv6 address or
 * CIDR with a port stands in brackets).  Copies what it keeps into `a`.
 *
 * Fails: a message that names the part and what is accepted: empty host, a name that is no host
 * name (letters, digits, '-', '.', at most 253 characters, labels of at most 63), host bits in a
 * CIDR, odd spellings of addresses (0x7f.1, 010.0.0.1, 2130706433), port 0 or above 65535.
 */
int allowlist_parse(const char *text, struct arena *a, struct allowlist_entry *out,
		    struct cj_error *err);

/* What the targets stand for, judged and ready to be pinned. */
struct endpoints {
	struct endpoint *items;
	size_t count;
	const char *hosts;       /* lines "ADDRESS\tNAME\n" for /etc/hosts, "" without names */
	struct strings warnings; /* one for each closed target that was opened */
};

/*
 * allowlist_resolve - look the names up (getaddrinfo(3), with the caller's resolver), judge each
 * address against ranges[], fill *out from `a`.
 *
 * Blocks as long as the host's resolver does.  An address in a closed range is refused, with the
 * range's class in the message, unless may_be_private; then it is one warning.  Never opened,
 * not even then: loopback (the hint is --connect), multicast, mapped and translated addresses,
 * and the host's own addresses, which are not in the table and stay closed in the rules.
 * A CIDR that is wider than one closed range is judged by every range it touches.  What is open by
 * another item already is no item, but a name keeps its line in `hosts`.
 * Fails: EINVAL refused; ENOENT the name is not known; EAGAIN no answer from the resolver; E2BIG.
 */
int allowlist_resolve(const struct allowlist_entry *entries, size_t n, bool may_be_private,
		      struct arena *a, struct endpoints *out, struct cj_error *err);
