/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_firewall - finds tables of this host that drop forwarded packets (Docker's, ufw's).
 *
 * An accept in cejail's table does not override a drop in another one: the user of a jail would
 * only see a network that does not answer.  So cejail warns, unless a rule of that table already
 * names cejail's interfaces.
 */
#pragma once

#include "runtime/base/error.h"

#define HOST_FIREWALL_LINKS "cj" /* prefix of the names of cejail's interfaces on the host */

#define HOST_FIREWALL_CHAINS_MAX 8
#define HOST_FIREWALL_NAME_MAX   64

/* A base chain in the forward hook whose policy is drop. */
struct host_firewall_chain {
	uint8_t family; /* NFPROTO_IPV4, _IPV6, _INET */
	char table[HOST_FIREWALL_NAME_MAX], chain[HOST_FIREWALL_NAME_MAX];
};

struct host_firewall_chains {
	struct host_firewall_chain items[HOST_FIREWALL_CHAINS_MAX]; /* further ones are not kept */
	size_t count;
};

enum host_firewall_read {
	HOST_FIREWALL_MORE,  /* the messages are read; others will follow */
	HOST_FIREWALL_END,   /* of the list */
	HOST_FIREWALL_BROKEN /* an error, or no messages */
};

/* Reads answers to NFT_MSG_GETCHAIN.  `bytes` is aligned to 4. */
enum host_firewall_read host_firewall_read_chains(struct host_firewall_chains *chains,
						  const void *bytes, size_t size);

/* Whether answers to NFT_MSG_GETRULE compare a name with HOST_FIREWALL_LINKS "*". */
bool host_firewall_names_us(const void *bytes, size_t size);

/*
 * host_firewall_look - the first such chain of the caller's network namespace into *out.
 *
 * Returns 1: there is one; 0: none.  Bounded: of very many rules it reads only the first.
 * Fails: EPERM without CAP_NET_ADMIN over the namespace; EINVAL, EPROTONOSUPPORT without nf_tables.
 */
int host_firewall_look(struct host_firewall_chain *out, struct cj_error *err);

const char *host_firewall_family_name(uint8_t family); /* "ip", "ip6", "inet" */
