/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names - the names of a live allow list: which ones a program may ask for, and the addresses that
 * their answers open.  No system calls.
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

/* May a program ask for this name?  In lower case, without a dot at the end. */
bool names_has(const struct allowlist_entry *entries, size_t n, const char *name);

#define NAMES_SIZE_MAX 256 /* bytes of a name, with its NUL */

struct names_open {
	struct endpoint endpoint;  /* one address; one port, or all */
	char name[NAMES_SIZE_MAX]; /* that opened it */
	uint64_t until_ms;         /* on clock_ms(); in use it stays open for longer */
	bool is_new;               /* to be loaded, also where the kernel has it already */
};

struct names {
	const struct allowlist_entry *entries;
	size_t nentries;
	const struct endpoints *listed; /* what the list opens by address */
	bool has_ipv6;                  /* false: no answer has an address of it */
	size_t count;
	struct names_open open[NAMES_OPEN_MAX];
};

enum names_end {
	NAMES_CLOSED, /* it is in a closed range, or the name is not on the list: not in the answer */
	NAMES_OPEN,
	NAMES_FULL
};

/*
 * names_take - what an answer for `name` opens: marks it in open[] as is_new.
 *
 * No name opens an address in a closed range.  One that the list opens by itself is NAMES_OPEN.
 */
enum names_end names_take(struct names *n, const char *name, const struct ip *ip, uint64_t now_ms);

/* The new ones are loaded now; or not, and then they are not open. */
void names_loaded(struct names *n, bool are_open);

/*
 * names_change - another list.  What its names have opened for its ports is marked as is_new, at
 * most NAMES_KEPT_MAX of them; the rest is closed.
 */
#define NAMES_KEPT_MAX 1024
void names_change(struct names *n, const struct allowlist_entry *entries, size_t nentries,
		  const struct endpoints *listed, uint64_t now_ms);
