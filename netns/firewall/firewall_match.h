/* SPDX-License-Identifier: Apache-2.0 */
/*
 * firewall_match - beginnings and ends of rules, for firewall*.c only.  Pure.
 */
#pragma once

#include "netns/address/ip.h"
#include "netns/nftables/nft.h"
#include "netns/address/ranges.h"

/* An IP family: the places in its headers that rules read. */
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

/* How many families the jail has; 1: only IPv4. */
size_t firewall_families_of(const struct ip *ip6);

void firewall_match_family(struct nft_batch *b, const struct firewall_family *f);
void firewall_match_source(struct nft_batch *b, const struct ip *ip);
/* As many bytes of the source, or of the destination, from its first on. */
void firewall_match_source_network(struct nft_batch *b, const struct ip *ip, uint32_t bytes);
void firewall_match_destination_network(struct nft_batch *b, const struct ip *ip, uint32_t bytes);
void firewall_match_protocol(struct nft_batch *b, uint8_t protocol);
void firewall_match_echo(struct nft_batch *b, const struct firewall_family *f); /* of its ICMP */
void firewall_match_name(struct nft_batch *b, enum nft_meta_keys key, enum nft_cmp_ops op,
			 const char *link);
void firewall_match_name_prefix(struct nft_batch *b, enum nft_meta_keys key, enum nft_cmp_ops op,
				const char *prefix);
void firewall_load_destination(struct nft_batch *b, const struct firewall_family *f);

/* Ends a rule: sets the mark of the class and goes to `chain`, "refuse" or "discard". */
void firewall_end_refused(struct nft_batch *b, const char *chain, enum net_class class);

/* One rule for UDP and one for TCP: packets to port 53 of `server`, then the statements of
 * `end`. */
void firewall_add_dns(struct nft_batch *b, const char *chain, const struct ip *server,
		      void (*end)(struct nft_batch *));
void firewall_accept(struct nft_batch *b);

/* In the jail's table: the set of the families without a way out, by their NFPROTO_*. */
#define FIREWALL_UNREACHABLE "unreachable"

/*
 * A whole rule of the chain "output".  These come from the kernel itself: multicast reports when a
 * link comes up, errors about late answers.  A program can't send them, so they are not reported as
 * denials.  The kernel also reports groups of IPv6 on a link that has no address of that family.
 */
void firewall_drop_kernel_icmp(struct nft_batch *b, const struct firewall_family *f);
