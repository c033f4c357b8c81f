/* SPDX-License-Identifier: Apache-2.0 */
/*
 * firewall - the nftables rules of one jail, loaded in three network namespaces; and those of a
 * container, in its own.
 *
 *	jail     an output hook in the jail's own network namespace.  It filters destinations and
 *	         answers at once, so a refused program need not wait for a timeout.
 *	gateway  prerouting, forward, input and postrouting hooks between the jail and its uplink.
 *	         They filter destinations a second time and do what only a router can do: source
 *	         check, connection tracking, limits, source NAT.
 *	host     with the host uplink only, in the caller's own network namespace: a table that the
 *	         kernel removes with the socket that owns it (NFT_TABLE_F_OWNER)
 *
 *	container  an output hook in a network namespace that another program made, for cejail-oci
 *
 * No process inside has a capability over any of them.  firewall_build.h makes the bytes of one
 * nftables batch (pure); loading acts, and a batch is loaded completely or not at all.
 *
 * A refused packet gets its class + 1 as mark.  The rules count it exactly by that mark (set
 * FIREWALL_COUNTERS), log it with the mark to nflog group FIREWALL_LOG_GROUP (rate-limited), and
 * answer it: TCP reset, or ICMP "administratively prohibited".  Two kinds get no answer: packets
 * with a source address that is not the jail's, and UDP above the rate.
 */
#pragma once

#include "netns/firewall/firewall_spec.h"
#include "netns/nftables/nft_batch.h"
#include "netns/address/ranges.h"
#include "runtime/base/error.h"

/*
 * Sends the batch through a NETLINK_NETFILTER socket of the namespace it is for, and reads all
 * answers.  Fails: EOPNOTSUPP without nf_tables (hint); else with the first error and its object.
 */
int firewall_load(int nft_fd, struct nft_batch *b, struct cj_error *err);

/* Build, then load. */
int firewall_apply_jail(int nft_fd, const struct firewall_spec *spec, struct cj_error *err);
int firewall_apply_gateway(int nft_fd, const struct firewall_spec *spec, struct cj_error *err);
int firewall_apply_host(int nft_fd, const struct firewall_host_spec *spec, struct cj_error *err);

/*
 * firewall_apply_container - the rules in a table whose name is made of them: *out_table.
 *
 * Containers that share a namespace and want the same share one table.  With different tables a
 * packet must pass all of them.  A table of this name is replaced, whatever it contains.
 */
int firewall_apply_container(int nft_fd, const struct firewall_container_spec *spec,
			     char out_table[static FIREWALL_TABLE_MAX], struct cj_error *err);

/* Removes a table that this socket owns.  Unlike closing the socket it does not wait for an RCU
 * grace period.  Best effort: closing removes the table, too. */
void firewall_remove(int nft_fd, const char *table);

/* Closes one more address of the host, in a loaded jail or gateway table. */
int firewall_close_host(int nft_fd, const struct ip *ip, struct cj_error *err);

/*
 * For a family (4 or 6) without a way out: a loaded jail table rejects at once all packets that it
 * does not refuse.  They are no denials and are not counted.
 */
int firewall_unreachable(int nft_fd, int family, struct cj_error *err);

/* Adds the counters of a jail or gateway table to counts[]. */
int firewall_read_counters(int nft_fd, uint64_t counts[static NET_CLASS_COUNT],
			   struct cj_error *err);
/* The same of a container's table. */
int firewall_read_table(int nft_fd, const char *table, uint64_t counts[static NET_CLASS_COUNT],
			struct cj_error *err);
