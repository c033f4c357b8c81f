/* SPDX-License-Identifier: Apache-2.0 */
/*
 * firewall - the rules of one jail, in the three places where they stand.
 *
 *	jail     an output hook in the jail's own network namespace: the first lock, and the one
 *	         that answers, so a refused program hears of it at once
 *	gateway  prerouting, forward, input and postrouting hooks between the jail and its uplink:
 *	         the second lock, with the same judgement of destinations, and what only a router
 *	         can do: source check, connection tracking, limits, source NAT
 *	host     with the host uplink only, in the caller's own network namespace: a table the
 *	         kernel removes with the socket it came through (NFT_TABLE_F_OWNER)
 *
 * Nobody inside has a capability over any of them.  Building is pure (firewall_build_*: bytes of
 * one nftables batch); loading acts, and is all or nothing.  A refused packet gets the
 * mark class + 1, is counted exactly by it (in the set FIREWALL_COUNTERS), logged to nflog group
 * FIREWALL_LOG_GROUP with the prefix FIREWALL_LOG_PREFIX and its mark (rate-limited), and answered:
 * TCP reset, or ICMP "administratively prohibited".  Two kinds get no answer: a source address that
 * is not the jail's, and UDP above the rate.
 */
#pragma once

#include "netns/firewall/firewall_spec.h"
#include "netns/nftables/nft_batch.h"
#include "netns/ranges.h"
#include "runtime/base/error.h"

/*
 * Sends the batch through a NETLINK_NETFILTER socket of the namespace it is for, and reads every
 * answer.  Fails: EOPNOTSUPP without nf_tables (hint); the first error with the object it is about.
 */
int firewall_load(int nft_fd, struct nft_batch *b, struct cj_error *err);

/* Build, then load. */
int firewall_apply_jail(int nft_fd, const struct firewall_spec *spec, struct cj_error *err);
int firewall_apply_gateway(int nft_fd, const struct firewall_spec *spec, struct cj_error *err);
int firewall_apply_host(int nft_fd, const struct firewall_host_spec *spec, struct cj_error *err);

/* One more address of the host's, in a loaded jail or gateway table. */
int firewall_close_host(int nft_fd, const struct ip *ip, struct cj_error *err);

/*
 * Nothing leads out for a family (4 or 6) any more: in a loaded jail table, what is not refused is
 * answered at once.  It is no denial and is not counted.
 */
int firewall_unreachable(int nft_fd, int family, struct cj_error *err);

/* Adds what the counters of a jail's or gateway's table hold to counts[]. */
int firewall_read_counters(int nft_fd, uint64_t counts[static NET_CLASS_COUNT],
			   struct cj_error *err);
