/* SPDX-License-Identifier: Apache-2.0 */
/*
 * firewall_rules - the rules that the jail's and the gateway's table share; for firewall_*.c only.
 * Pure.
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

#include "netns/firewall/firewall_match.h"
#include "netns/firewall/firewall_spec.h"

/* Chains and sets first: rules name them. */
void firewall_add_refusal(struct nft_batch *b);
void firewall_add_rules(struct nft_batch *b, const struct firewall_spec *spec);

/* A chain with only the answers, for packets that are not reported. */
void firewall_add_answers(struct nft_batch *b, const char *chain);

/* For the host's table: the closed ranges, and the rule that refuses them. */
void firewall_add_closed_map(struct nft_batch *b, const struct firewall_family *f);
void firewall_refuse_closed(struct nft_batch *b, const char *chain,
			    const struct firewall_family *f);
