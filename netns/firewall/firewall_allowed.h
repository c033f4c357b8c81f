/* SPDX-License-Identifier: Apache-2.0 */
/*
 * firewall_allowed - the allow list (--allow) as a set and rules, for firewall*.c only.  Pure.
 */
#pragma once

#include "netns/address/allowlist.h"
#include "netns/firewall/firewall_match.h"

/* The set for one family, and in `chain` the rules that return for packets that match it. */
void firewall_add_allowed_set(struct nft_batch *b, const struct firewall_family *f,
			      const struct endpoint *allowed, size_t count);
void firewall_add_allowed_rules(struct nft_batch *b, const char *chain,
				const struct firewall_family *f, const struct endpoint *allowed,
				size_t count);
