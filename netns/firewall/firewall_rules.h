/* SPDX-License-Identifier: Apache-2.0 */
/*
 * firewall_rules - what the jail's and the gateway's rules share; for firewall_*.c only.  Pure.
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

#include "netns/firewall/firewall_match.h"
#include "netns/firewall/firewall_spec.h"

/* Chains and sets first: rules name them. */
void firewall_add_refusal(struct nft_batch *b);
void firewall_add_rules(struct nft_batch *b, const struct firewall_spec *spec);

/* A chain with the answers alone, for what is not reported. */
void firewall_add_answers(struct nft_batch *b, const char *chain);

/* For the host's table: the closed ranges, and the rule that refuses them. */
void firewall_add_closed_map(struct nft_batch *b, const struct firewall_family *f);
void firewall_refuse_closed(struct nft_batch *b, const char *chain,
			    const struct firewall_family *f);
