/* SPDX-License-Identifier: Apache-2.0 */
/*
 * firewall_parts - the rules of each place as one nftables batch; for netns/firewall/ only.  No
 * system calls.
 *
 * A rule that refuses a packet sets the mark to its class + 1 and goes to chain `refuse` (which
 * answers) or `discard` (which does not).  So one counter for each mark, one log rule and two
 * answers serve all classes.  The rule overwrites any earlier mark.
 *
 *	filter    refuses packets to closed destinations; returns for all others
 *	refuse    report, then TCP reset or ICMP "administratively prohibited"
 *	discard   report, then drop
 *	report    counts exactly, logs at a limited rate
 */
#pragma once

#include "netns/firewall/firewall.h"
#include "netns/nftables/nft.h"

#include <linux/netfilter/nf_conntrack_common.h>

#define PRIORITY_RAW      (-300) /* NF_IP_PRI_RAW: before connection tracking and DNAT */
#define PRIORITY_SRCNAT   100    /* NF_IP_PRI_NAT_SRC */
#define IPV4_NO_OPTIONS   0x45   /* version 4, five words: RFC 791 3.1 */
#define IPV6_NEXT_HEADER  6      /* its offset: RFC 8200 3 */
#define CT_STATES_ANSWERS (NF_CT_STATE_BIT(IP_CT_ESTABLISHED) | NF_CT_STATE_BIT(IP_CT_RELATED))

/* --- firewall_inside.c, firewall_gateway.c, firewall_host.c: a batch each --- */

void firewall_build_jail(struct nft_batch *b, const struct firewall_spec *spec);
void firewall_build_gateway(struct nft_batch *b, const struct firewall_spec *spec);
void firewall_build_host(struct nft_batch *b, const struct firewall_host_spec *spec);

/* In this table, which it replaces. */
void firewall_build_container(struct nft_batch *b, const char *table,
			      const struct firewall_container_spec *spec);

/* --- firewall_rules.c: beginnings and ends of rules --- */

/* An IP family: the places in its headers that rules read. */
struct firewall_family {
	uint8_t number; /* struct ip's */
	uint8_t nfproto;
	uint8_t icmp, echo_request;
	uint32_t ip_bytes, source_offset, destination_offset;
	uint32_t key_type;                            /* nft(8)'s */
	const char *host, *closed, *allowed, *denied; /* sets */
	const char *named, *named_ports; /* of names: all ports of an address, or one */
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

/* A rule with this verdict for packets in one of the states of connection tracking. */
void firewall_add_states(struct nft_batch *b, const char *chain, uint32_t states, int verdict);

/* One rule for UDP and one for TCP, which accept packets to port 53 of `server`, or keep them from
 * being tracked. */
void firewall_add_dns(struct nft_batch *b, const char *chain, const struct ip *server,
		      bool is_tracked);

/* Accepts what goes through `lo`: `key` is NFT_META_OIF or NFT_META_IIF. */
void firewall_accept_loopback(struct nft_batch *b, const char *chain, enum nft_meta_keys key);

/* In the jail's table: the set of the families without a way out, by their NFPROTO_*. */
#define FIREWALL_UNREACHABLE "unreachable"

/*
 * A whole rule of the chain "output".  These come from the kernel itself: multicast reports when a
 * link comes up, errors about late answers.  A program can't send them, so they are not reported as
 * denials.  The kernel also reports groups of IPv6 on a link that has no address of that family.
 */
void firewall_drop_kernel_icmp(struct nft_batch *b, const struct firewall_family *f);

/* --- firewall_rules.c: the rules that several places share --- */

/* Chains and sets first: rules name them. */
void firewall_add_refusal(struct nft_batch *b);
void firewall_add_rules(struct nft_batch *b, const struct firewall_spec *spec);
void firewall_delete_rules(struct nft_batch *b, const struct firewall_spec *spec);

/* A chain with only the answers, for packets that are not reported. */
void firewall_add_answers(struct nft_batch *b, const char *chain);

/* For the host's table: the closed ranges, and the rule that refuses them. */
void firewall_add_closed_map(struct nft_batch *b, const struct firewall_family *f);
void firewall_refuse_closed(struct nft_batch *b, const char *chain,
			    const struct firewall_family *f);

/* --- firewall_allowed.c --- */

/* The set of a list for one family, f->allowed or f->denied, and in `chain` the rules that return
 * for packets that match it; or, of a deny list, that refuse them. */
void firewall_add_list_set(struct nft_batch *b, const struct firewall_family *f, const char *set,
			   const struct endpoint *list, size_t count);
void firewall_add_allowed_rules(struct nft_batch *b, const char *chain,
				const struct firewall_family *f, const struct endpoint *allowed,
				size_t count);
void firewall_add_denied_rules(struct nft_batch *b, const char *chain,
			       const struct firewall_family *f, const struct endpoint *denied,
			       size_t count);

/* Likewise two sets of addresses that names have opened: for all ports, and for one. */
void firewall_add_named_sets(struct nft_batch *b, const struct firewall_family *f);
/* is_checked: but for UDP to the ports where the names of TCP are checked. */
void firewall_add_named_rules(struct nft_batch *b, const char *chain,
			      const struct firewall_family *f, bool is_checked);

/* What names have opened. */
void firewall_add_named(struct nft_batch *b, const struct endpoint *named, size_t n);
void firewall_delete_named(struct nft_batch *b, const struct endpoint *named, size_t n);

/* --- firewall_checked.c: for a gateway with a proxy --- */

#define FIREWALL_CHECKED_PORTS 2
extern const uint16_t firewall_checked_ports[FIREWALL_CHECKED_PORTS];

/* The rules of the chains "redirect" and "unchecked", and none if names are not checked. */
void firewall_add_checks(struct nft_batch *b, const struct firewall_spec *spec);
void firewall_empty_checks(struct nft_batch *b);

void firewall_add_redirected(struct nft_batch *b);    /* the base chain */
void firewall_accept_answers(struct nft_batch *b);    /* in "input" */
void firewall_accept_redirected(struct nft_batch *b); /* the same */
void firewall_filter_proxy(struct nft_batch *b);      /* in "output" */
