/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign - other people's tables that drop what this host forwards (Docker's, ufw's).
 *
 * An accept in our table does not help against a drop in another: all that a jail's user would see
 * is a network that does not answer.  So the administrator is told, unless a rule of that table
 * already speaks of our interfaces.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/error.h"

#define FOREIGN_LINKS "cj" /* what the names of our interfaces on the host begin with */

#define FOREIGN_CHAINS_MAX 8
#define FOREIGN_NAME_MAX   64

/* A base chain in the forward hook whose policy is drop. */
struct foreign_chain {
	uint8_t family; /* NFPROTO_IPV4, _IPV6, _INET */
	char table[FOREIGN_NAME_MAX], chain[FOREIGN_NAME_MAX];
};

struct foreign_chains {
	struct foreign_chain items[FOREIGN_CHAINS_MAX]; /* further ones are not kept */
	size_t count;
};

enum foreign_read {
	FOREIGN_MORE,  /* the messages are read; others will follow */
	FOREIGN_END,   /* of the list */
	FOREIGN_BROKEN /* an error, or no messages */
};

/* Reads answers to NFT_MSG_GETCHAIN.  Pure; `bytes` is aligned to 4. */
enum foreign_read foreign_read_chains(struct foreign_chains *chains, const void *bytes,
				      size_t size);

/* Whether answers to NFT_MSG_GETRULE compare a name with FOREIGN_LINKS "*".  Pure. */
bool foreign_names_us(const void *bytes, size_t size);

/*
 * foreign_look - the first such chain of the caller's network namespace into *out.
 *
 * Returns 1: there is one; 0: none.  Bounded: on hosts with endless rules it looks at the first.
 * Fails: EPERM without CAP_NET_ADMIN over the namespace; EINVAL, EPROTONOSUPPORT without nf_tables.
 */
int foreign_look(struct foreign_chain *out, struct cj_error *err);

const char *foreign_family_name(uint8_t family); /* "ip", "ip6", "inet" */
