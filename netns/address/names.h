/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names - which names a program with a live list may ask for, and the addresses that their answers
 * open.  No system calls.
 *
 * An answer opens each of its addresses for the ports of every entry that has the name.  It stays
 * open for NAMES_OPEN_S after that, and after each packet to it, or in the gateway each connection:
 * the kernel counts the time.  When
 * the list changes, what a name of the new list has opened stays open.
 */
#pragma once

#include "netns/address/allowlist.h"

#define NAMES_OPEN_MAX                                                                             \
	4096 /* addresses of one jail that are open at a time, each for a port or all */
#define NAMES_OPEN_S   3600
#define NAMES_ANSWER_S 60 /* the longest that a program may use an answer without a new one */

/* What is open; of a list: what it names.  What is denied is closed whatever else is open. */
struct names_rules {
	bool is_list;
	const struct allowlist_entry *allow;
	size_t nallow;
	const struct allowlist_entry *deny;
	size_t ndeny;
	bool checks_names; /* the connections to what names have opened must state them */
	const struct endpoints *endpoints; /* of both: addresses, and names that were looked up */
};

/* Is this name one of the entries?  In lower case, without a dot at the end. */
bool names_has(const struct allowlist_entry *entries, size_t n, const char *name);
/* May a program ask for this name? */
bool names_may_ask(const struct names_rules *rules, const char *name);
/* May a connection that states this name go to this port? */
bool names_may_reach(const struct names_rules *rules, const char *name, uint16_t port);

/* Else it may ask for every name, and every answer is passed on as it is. */
static inline bool names_are_filtered(const struct names_rules *rules)
{
	return rules->is_list || rules->ndeny > 0;
}

#define NAMES_SIZE_MAX 256 /* bytes of a name, with its NUL */

struct names_open {
	struct endpoint endpoint;  /* one address; one port, or all */
	char name[NAMES_SIZE_MAX]; /* that opened it */
	/* Of the answer, each with its NUL, and one NUL more; has_more: some had no room. */
	char aliases[2 * NAMES_SIZE_MAX];
	bool has_more;
	uint64_t until_ms; /* on clock_ms(); in use it stays open for longer */
	bool is_new;       /* to be loaded, also where the kernel has it already */
};

struct names {
	struct names_rules rules;
	bool has_ipv6; /* false: no answer has an address of it */
	size_t count;
	struct names_open open[NAMES_OPEN_MAX];
	struct endpoint fresh[NAMES_OPEN_MAX]; /* names_new() */
};

enum names_end {
	NAMES_CLOSED, /* it is in a closed range or denied, or the name is: not in the answer */
	NAMES_OPEN,
	NAMES_FULL
};

/* A name and the aliases that an answer has for it: NAMES_SIZE_MAX bytes for each. */
struct names_answer {
	const char *name, *aliases;
	size_t naliases;
};

/*
 * names_take - what an answer opens: marks it in open[] as is_new.
 *
 * No name opens an address in a closed range.  One that the list opens by itself is NAMES_OPEN, and
 * without a list each that is not denied.
 */
enum names_end names_take(struct names *n, const struct names_answer *answer, const struct ip *ip,
			  uint64_t now_ms);

/* The new ones, to be loaded.  Valid until the next call. */
const struct endpoint *names_new(struct names *n, size_t *out_count);

/* The new ones are loaded now; or not, and then they are not open. */
void names_loaded(struct names *n, bool are_open);

/*
 * names_change - other rules.  What its names have opened for its ports is marked as is_new, at
 * most NAMES_KEPT_MAX of them; the rest is closed, and so is what a name has opened whose answer
 * had an alias that is denied now.
 */
#define NAMES_KEPT_MAX 1024
void names_change(struct names *n, const struct names_rules *rules, uint64_t now_ms);
