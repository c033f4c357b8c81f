/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules in the caller's own network namespace, with the host uplink.
 *
 * They match packets of one link only, or of all links with one prefix.  The destination is checked
 * twice, because rules of other tables may translate it in between.  Before that (priority -300) it
 * must not be an address of the host, whenever the host got it.  After it, forward refuses closed
 * ranges, and input refuses all.
 */
#include "netns/firewall/firewall_parts.h"

#include <linux/rtnetlink.h>

static size_t each_source(const struct firewall_host_spec *spec, const struct ip *out[static 2])
{
	out[0] = &spec->ip4;
	out[1] = &spec->ip6;
	return firewall_families_of(&spec->ip6);
}

/* The addresses of all links share so many bytes. */
static uint32_t network_bytes(const struct ip *source)
{
	return source->family == 6 ? 14 : 2;
}

static void match_link(struct nft_batch *b, const struct firewall_host_spec *spec,
		       enum nft_meta_keys key, enum nft_cmp_ops op)
{
	if (spec->is_shared)
		firewall_match_name_prefix(b, key, op, spec->link);
	else
		firewall_match_name(b, key, op, spec->link);
}

/* Strict for a shared table, too: its host has one route to each of its links. */
static void match_source(struct nft_batch *b, const struct firewall_host_spec *spec,
			 const struct ip *source)
{
	if (!spec->is_shared) {
		firewall_match_source(b, source);
		return;
	}
	firewall_match_source_network(b, source, network_bytes(source));
	nft_match_reverse_path(b);
}

static void add_prerouting(struct nft_batch *b, const struct firewall_host_spec *spec)
{
	static const struct nft_hook hook = { "prerouting", "filter", NF_INET_PRE_ROUTING,
					      PRIORITY_RAW, NF_ACCEPT };
	const struct ip *sources[2] = { NULL };
	const size_t count = each_source(spec, sources);

	nft_add_base_chain(b, &hook);
	nft_rule_begin(b, "prerouting");
	match_link(b, spec, NFT_META_IIFNAME, NFT_CMP_NEQ);
	nft_rule_end_with(b, NF_ACCEPT, NULL);

	for (size_t i = 0; i < count; i++) {
		/* Type unicast excludes addresses of the host (local, broadcast, multicast,
		 * anycast) and routes that the administrator has blocked. */
		const uint32_t unicast = RTN_UNICAST;
		nft_rule_begin(b, "prerouting");
		match_source(b, spec, sources[i]);
		nft_load_address_type(b, NFTA_FIB_F_DADDR);
		nft_compare(b, NFT_CMP_EQ, &unicast, sizeof(unicast));
		nft_rule_end_with(b, NF_ACCEPT, NULL);
	}
	for (size_t i = 0; i < count; i++) {
		nft_rule_begin(b, "prerouting");
		match_source(b, spec, sources[i]);
		nft_rule_end_with(b, NFT_GOTO, "refuse");
	}
	nft_add_verdict(b, "prerouting", NF_DROP, NULL);
}

static void add_input(struct nft_batch *b, const struct firewall_host_spec *spec)
{
	static const struct nft_hook hook = { "input", "filter", NF_INET_LOCAL_IN, 0, NF_ACCEPT };

	nft_add_base_chain(b, &hook);
	nft_rule_begin(b, "input");
	match_link(b, spec, NFT_META_IIFNAME, NFT_CMP_EQ);
	nft_rule_end_with(b, NFT_GOTO, "refuse");
}

static void add_out(struct nft_batch *b, const struct firewall_host_spec *spec)
{
	nft_add_chain(b, "out");
	firewall_add_states(b, "out", CT_STATES_ANSWERS, NF_ACCEPT);
	for (size_t i = 0; i < firewall_families_of(&spec->ip6); i++) {
		const struct firewall_family *f = &firewall_families[i];

		if (spec->nallowed > 0) {
			firewall_add_list_set(b, f, f->allowed, spec->allowed, spec->nallowed);
			firewall_add_allowed_rules(b, "out", f, spec->allowed, spec->nallowed);
		}
		firewall_add_closed_map(b, f);
		firewall_refuse_closed(b, "out", f);
	}
}

/*
 * Answers may come when the link of their jail is gone.  Connection tracking still translates their
 * destination, and the host would send them to its default route.
 */
static void drop_late_answers(struct nft_batch *b, const struct firewall_host_spec *spec)
{
	const struct ip *sources[2] = { NULL };
	const size_t count = each_source(spec, sources);

	for (size_t i = 0; i < count; i++) {
		nft_rule_begin(b, "forward");
		firewall_match_name_prefix(b, NFT_META_OIFNAME, NFT_CMP_NEQ, spec->every_link);
		firewall_match_destination_network(b, sources[i], network_bytes(sources[i]));
		nft_rule_end_with(b, NF_DROP, NULL);
	}
}

static void add_forward(struct nft_batch *b, const struct firewall_host_spec *spec)
{
	static const struct nft_hook hook = { "forward", "filter", NF_INET_FORWARD, 0, NF_ACCEPT };

	nft_add_chain(b, "in");
	firewall_add_states(b, "in", CT_STATES_ANSWERS, NF_ACCEPT);
	nft_add_verdict(b, "in", NF_DROP, NULL);

	/* "in" comes first: a packet from one jail to another goes into a jail */
	nft_add_base_chain(b, &hook);
	drop_late_answers(b, spec);
	nft_rule_begin(b, "forward");
	match_link(b, spec, NFT_META_OIFNAME, NFT_CMP_EQ);
	nft_rule_end_with(b, NFT_GOTO, "in");
	nft_rule_begin(b, "forward");
	match_link(b, spec, NFT_META_IIFNAME, NFT_CMP_EQ);
	nft_rule_end_with(b, NFT_GOTO, "out");
}

static void add_postrouting(struct nft_batch *b, const struct firewall_host_spec *spec)
{
	static const struct nft_hook hook = { "postrouting", "nat", NF_INET_POST_ROUTING,
					      PRIORITY_SRCNAT, NF_ACCEPT };
	const struct ip *sources[2] = { NULL };
	const size_t count = each_source(spec, sources);

	nft_add_base_chain(b, &hook);
	for (size_t i = 0; i < count; i++) {
		nft_rule_begin(b, "postrouting");
		if (spec->is_shared) { /* by the link: others may use the same networks */
			match_link(b, spec, NFT_META_IIFNAME, NFT_CMP_EQ);
			firewall_match_family(b, &firewall_families[sources[i]->family == 6]);
		} else {
			firewall_match_source(b, sources[i]);
		}
		nft_masquerade(b);
		nft_rule_end(b);
	}
}

void firewall_build_host(struct nft_batch *b, const struct firewall_host_spec *spec)
{
	nft_batch_begin(b, spec->table);
	nft_add_table(b, NFT_TABLE_F_OWNER);
	firewall_add_answers(b, "refuse");
	add_prerouting(b, spec);
	add_input(b, spec);
	add_out(b, spec);
	add_forward(b, spec);
	add_postrouting(b, spec);
	nft_batch_end(b);
}
