/* SPDX-License-Identifier: Apache-2.0 */
/*
 * firewall_rules - what the jail's and the gateway's rules share; private to firewall*.c.  Pure.
 *
 * A packet that is refused carries its class in its mark, as class + 1, to chain `refuse` (an
 * answer) or `discard` (none): one counter for each mark, one log rule and two answers serve all
 * classes.  A rule sets the mark itself, whatever was in it before.
 *
 *	judge     refuses what may not leave; returns with what may
 *	refuse    report, then TCP reset or ICMP "administratively prohibited"
 *	discard   report, then drop
 *	report    counts exactly, logs at a limited rate
 */
#pragma once

#include "netns/firewall/firewall.h"

/* One of the two: where its headers keep what the rules look at. */
struct firewall_family {
	uint8_t number; /* struct ip's */
	uint8_t nfproto;
	uint8_t icmp, echo_request;
	uint32_t ip_bytes, source_offset, destination_offset;
	uint32_t key_type;                   /* nft(8)'s */
	const char *host, *closed, *allowed; /* sets */
};
#define FIREWALL_FAMILIES 2
extern const struct firewall_family firewall_families[FIREWALL_FAMILIES];

/* How many families the jail has: 1 is IPv4 alone. */
size_t firewall_families_of(const struct ip *ip6);

/* Chains and sets first: rules name them. */
void firewall_add_refusal(struct nft_batch *b);
void firewall_add_rules(struct nft_batch *b, const struct firewall_spec *spec);

/* A chain with the answers alone, for what is not reported. */
void firewall_add_answers(struct nft_batch *b, const char *chain);

/* For the host's table: the closed ranges, and the rule that refuses them. */
void firewall_add_closed_map(struct nft_batch *b, const struct firewall_family *f);
void firewall_refuse_closed(struct nft_batch *b, const char *chain,
			    const struct firewall_family *f);

/* --- beginnings and ends of rules --- */
void firewall_match_family(struct nft_batch *b, const struct firewall_family *f);
void firewall_match_source(struct nft_batch *b, const struct ip *ip);
void firewall_match_protocol(struct nft_batch *b, uint8_t protocol);
void firewall_match_echo(struct nft_batch *b, const struct firewall_family *f); /* of its ICMP */
void firewall_match_name(struct nft_batch *b, enum nft_meta_keys key, enum nft_cmp_ops op,
			 const char *link);
void firewall_load_destination(struct nft_batch *b, const struct firewall_family *f);

/* The set of the families nothing leads out for, by their NFPROTO_*: in the jail's table. */
#define FIREWALL_UNREACHABLE "unreachable"

/* "refuse" or "discard", and why. */
void firewall_end_refused(struct nft_batch *b, const char *chain, enum net_class class);

/* One rule for UDP and one for TCP: what goes to port 53 of `server` meets `end`. */
void firewall_add_dns(struct nft_batch *b, const char *chain, const struct ip *server,
		      void (*end)(struct nft_batch *));
void firewall_accept(struct nft_batch *b);

/* --- the list of --allow (firewall_allowed.c) --- */

/* Its set for one family, and in `chain` the rules that return with what is in it. */
void firewall_add_allowed_set(struct nft_batch *b, const struct firewall_family *f,
			      const struct endpoint *allowed, size_t count);
void firewall_add_allowed_rules(struct nft_batch *b, const char *chain,
				const struct firewall_family *f, const struct endpoint *allowed,
				size_t count);
