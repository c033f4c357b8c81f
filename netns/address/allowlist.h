/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allowlist - --allow and --deny: text to entries, entries to addresses.
 */
#pragma once

#include "netns/address/ip.h"
#include "runtime/base/arena.h"
#include "runtime/base/error.h"

#define ALLOWLIST_MAX       64    /* --allow options of one run, and as many of --deny */
#define ENDPOINTS_MAX       512   /* addresses they may resolve to, together */
#define ALLOWLIST_HOSTS_MAX 65536 /* bytes of hosts(5) lines, with a NUL */

/* One --allow or --deny.  Ports: 0..65535 when none is given. */
struct allowlist_entry {
	const char *text; /* as written; for messages */
	const char *name; /* a host name to resolve, in lower case; NULL: `net` */
	bool is_wildcard; /* every name below `name`, at any depth, and not that one itself */
	bool is_live;     /* not looked up before the program asks for it, as every wildcard is */
	struct ip_net net;
	uint16_t first_port, last_port;
};

/* A range of addresses and ports that is open, for TCP and UDP. */
struct endpoint {
	struct ip first, last;
	uint16_t first_port, last_port;
};

/* Whether all of `e` is in `wide`. */
bool endpoint_covers(const struct endpoint *wide, const struct endpoint *e);

/*
 * allowlist_parse - HOST[:PORT], ADDRESS[:PORT], [ADDRESS6][:PORT], CIDR[:PORT] (brackets around
 * an IPv6 address or CIDR with a port).  Copies what it keeps into `a`.
 *
 * "*.NAME" is a wildcard; NAME has at least two parts, because a public suffix has one or more.
 *
 * Fails: with a message that names the part and the accepted form: empty host, a name that is no
 * host name (letters, digits, '-', '.', at most 253 characters, labels of at most 63), host bits in
 * a CIDR, odd spellings of addresses (0x7f.1, 010.0.0.1, 2130706433), port 0 or above 65535.
 */
int allowlist_parse(const char *text, struct arena *a, struct allowlist_entry *out,
		    struct cj_error *err);

/*
 * allowlist_parse_denied - the same for --deny.  A name is denied with all of its ports: its server
 * refuses the name before anybody knows the port.
 */
int allowlist_parse_denied(const char *text, struct arena *a, struct allowlist_entry *out,
			   struct cj_error *err);

typedef int allowlist_parser(const char *text, struct arena *a, struct allowlist_entry *out,
			     struct cj_error *err);

/* One of the two for each text.  Fails: as it does; EINVAL more than ALLOWLIST_MAX. */
int allowlist_parse_all(const struct strings *texts, allowlist_parser *parse, struct arena *a,
			struct allowlist_entry **out, struct cj_error *err);

/* The first wildcard of the list; NULL: it has none. */
const struct allowlist_entry *allowlist_wildcard(const struct allowlist_entry *entries, size_t n);
/* Then the jail needs a name server for the names of the list (names.h). */
bool allowlist_has_wildcard(const struct allowlist_entry *entries, size_t n);
void allowlist_make_live(struct allowlist_entry *entries, size_t n);

/* The addresses of all entries, checked against ranges[], for rules and /etc/hosts. */
struct endpoints {
	struct endpoint *items;
	size_t count;
	const char *hosts;       /* lines "ADDRESS\tNAME\n" for /etc/hosts, "" without names */
	struct strings warnings; /* one for each entry that opens a closed range */
	bool opens_closed_range; /* there is such an entry */
	struct endpoint *denied; /* closed, whatever else is open */
	size_t ndenied;
};

/*
 * allowlist_resolve - look up the names (getaddrinfo(3), with the caller's resolver), check each
 * address against ranges[], fill *out from `a`.
 *
 * Live names are left out.  Blocks as long as the host's resolver does.  An address in a closed
 * range is refused, with the range's class in the message, unless may_be_private: then there is
 * one warning.  These are never opened: loopback (the hint is --connect), multicast, mapped and
 * translated addresses, and the host's own addresses, which are not in the table and stay closed
 * in the rules.  A wide CIDR is checked against every range it overlaps.  An address that an
 * earlier item already opens becomes no item of its own, but its name keeps its line in `hosts`.
 * Fails: EINVAL refused; ENOENT the name is not known; EAGAIN no answer from the resolver; E2BIG.
 */
int allowlist_resolve(const struct allowlist_entry *entries, size_t n, bool may_be_private,
		      struct arena *a, struct endpoints *out, struct cj_error *err);

/*
 * allowlist_deny - then what --deny closes: out->denied.
 *
 * Wildcards are left out.  A name that this host's resolver does not know has no address to close.
 * Fails: as above, but no address is refused.
 */
int allowlist_deny(const struct allowlist_entry *entries, size_t n, struct arena *a,
		   struct endpoints *out, struct cj_error *err);
