/* SPDX-License-Identifier: Apache-2.0 */
/*
 * firewall_build - the rules of each place as one nftables batch: firewall_jail.c,
 * firewall_gateway.c, firewall_host.c and firewall_container.c.  Pure.
 */
#pragma once

#include "netns/firewall/firewall_spec.h"
#include "netns/nftables/nft_batch.h"

/* Each returns what nft_batch_end() does. */
int firewall_build_jail(struct nft_batch *b, const struct firewall_spec *spec);
int firewall_build_gateway(struct nft_batch *b, const struct firewall_spec *spec);
int firewall_build_host(struct nft_batch *b, const struct firewall_host_spec *spec);

/* In this table, which it replaces. */
int firewall_build_container(struct nft_batch *b, const char *table,
			     const struct firewall_container_spec *spec);
