/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules in the gateway.
 *
 * Packets from the jail pass two chains before routing.  So packets that routing would drop without
 * an answer (loopback, multicast) are counted and answered, too.  Nothing after these chains
 * changes a destination.
 *
 *	raw         before connection tracking: checks the source, refuses unusual headers.
 *	            Fragments are reassembled already (priority -400): rules see whole packets.
 *	from_jail   after connection tracking: limits, packets of known connections, the filter of
 *	            destinations for new ones.
 *
 * DNS queries are not tracked: the host shares the table of connections, and queries from 65,536
 * ports would fill it with as many entries, for half a minute.
 */
#include "netns/firewall/firewall_parts.h"

#define PRIORITY_TRACKED  (-150) /* NF_IP_PRI_MANGLE; connection tracking is at -200 */
#define NEIGHBOUR_SOLICIT 135    /* RFC 4861 4.3, 4.4 */
#define NEIGHBOUR_ADVERT  136

static void refuse_odd_headers(struct nft_batch *b, const struct ip *jail)
{
	nft_rule_begin(b, "raw");
	firewall_match_source(b, jail);
	firewall_end_refused(b, "refuse", NET_PROTOCOL);
}

static void pass_others(struct nft_batch *b, const char *chain)
{
	nft_rule_begin(b, chain);
	firewall_match_name(b, NFT_META_IIFNAME, NFT_CMP_NEQ, LINK_GATEWAY);
	nft_rule_end_with(b, NF_ACCEPT, NULL);
}

static void add_raw(struct nft_batch *b, const struct firewall_spec *spec)
{
	static const struct nft_hook hook = { "raw", "filter", NF_INET_PRE_ROUTING, PRIORITY_RAW,
					      NF_DROP };
	nft_add_base_chain(b, &hook);
	pass_others(b, "raw");
	if (spec->has_dns)
		firewall_add_dns(b, "raw", &spec->addresses.gateway4, false);

	const uint8_t first_byte = IPV4_NO_OPTIONS;
	nft_rule_begin(b, "raw");
	firewall_match_source(b, &spec->addresses.jail4);
	nft_match_payload(b, NFT_PAYLOAD_NETWORK_HEADER, 0, NFT_CMP_EQ, &first_byte,
			  sizeof(first_byte));
	nft_rule_end_with(b, NF_ACCEPT, NULL);
	refuse_odd_headers(b, &spec->addresses.jail4);
	if (spec->addresses.jail6.family == 6) {
		/* No extension header of any kind stands between the IPv6 header and these. */
		static const uint8_t next[] = { IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMPV6 };
		for (size_t i = 0; i < sizeof(next); i++) {
			nft_rule_begin(b, "raw");
			firewall_match_source(b, &spec->addresses.jail6);
			nft_match_payload(b, NFT_PAYLOAD_NETWORK_HEADER, IPV6_NEXT_HEADER,
					  NFT_CMP_EQ, &next[i], sizeof(next[i]));
			nft_rule_end_with(b, NF_ACCEPT, NULL);
		}
		refuse_odd_headers(b, &spec->addresses.jail6);
	}
	nft_rule_begin(b, "raw");
	firewall_end_refused(b, "discard", NET_SPOOFED);
}

static void add_from_jail(struct nft_batch *b, const struct firewall_spec *spec)
{
	static const struct nft_hook hook = { "from_jail", "filter", NF_INET_PRE_ROUTING,
					      PRIORITY_TRACKED, NF_DROP };
	nft_add_base_chain(b, &hook);
	pass_others(b, "from_jail");

	/* Dropped: an answer to each packet above the rate would be too many packets. */
	nft_rule_begin(b, "from_jail");
	firewall_match_protocol(b, IPPROTO_UDP);
	nft_match_rate(b, FIREWALL_UDP_SECOND, FIREWALL_UDP_SECOND, true);
	firewall_end_refused(b, "discard", NET_LIMIT);

	if (spec->has_proxy)
		nft_add_verdict(b, "from_jail", NFT_JUMP, "unchecked");
	firewall_add_states(b, "from_jail", CT_STATES_ANSWERS, NF_ACCEPT);
	/* by address and port, not as "untracked": neighbour discovery is untracked, too */
	if (spec->has_dns)
		firewall_add_dns(b, "from_jail", &spec->addresses.gateway4, true);

	nft_add_verdict(b, "from_jail", NFT_JUMP, "filter");
	/* after the filter: also an invalid packet to a closed destination is reported */
	firewall_add_states(b, "from_jail", NF_CT_STATE_INVALID_BIT, NF_DROP);

	nft_rule_begin(b, "from_jail");
	nft_match_connections_above(b, FIREWALL_CONNECTIONS);
	firewall_end_refused(b, "refuse", NET_LIMIT);

	/* Closed connections stay tracked for minutes, here and in the table that all of the host
	 * shares. */
	nft_rule_begin(b, "from_jail");
	nft_match_rate(b, FIREWALL_NEW_SECOND, FIREWALL_CONNECTIONS, true);
	firewall_end_refused(b, "refuse", NET_LIMIT);
	nft_add_verdict(b, "from_jail", NF_ACCEPT, NULL);
}

/* The gateway has one service, DNS, and only for the jail; and what is redirected to its proxy. */
static void add_input(struct nft_batch *b, const struct firewall_spec *spec)
{
	static const struct nft_hook hook = { "input", "filter", NF_INET_LOCAL_IN, 0, NF_DROP };

	nft_add_base_chain(b, &hook);
	if (spec->addresses.jail6.family == 6) {
		/* On a helper's tap device the gateway must find its neighbour. */
		static const uint8_t types[] = { NEIGHBOUR_SOLICIT, NEIGHBOUR_ADVERT };
		for (size_t i = 0; i < sizeof(types); i++) {
			nft_rule_begin(b, "input");
			firewall_match_name(b, NFT_META_IIFNAME, NFT_CMP_EQ, LINK_UPLINK);
			firewall_match_protocol(b, IPPROTO_ICMPV6);
			nft_match_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, 0, NFT_CMP_EQ, &types[i],
					  sizeof(types[i]));
			nft_rule_end_with(b, NF_ACCEPT, NULL);
		}
	}
	if (!spec->has_dns)
		return;
	if (spec->has_proxy)
		firewall_accept_answers(b);
	nft_rule_begin(b, "input");
	firewall_match_name(b, NFT_META_IIFNAME, NFT_CMP_NEQ, LINK_GATEWAY);
	nft_rule_end_with(b, NF_DROP, NULL);
	firewall_add_dns(b, "input", &spec->addresses.gateway4, true);
	if (spec->has_proxy)
		firewall_accept_redirected(b);
}

/*
 * pasta sends each IPv6 answer to the source address of the last packet it saw.  The gateway's
 * multicast listener reports come from "::" (RFC 3810 5.2.13), a random time after the link is up.
 * A connection that waits for data at that moment would lose it: pasta would send it to "::".
 */
static void drop_multicast(struct nft_batch *b)
{
	const struct firewall_family *six = &firewall_families[1];
	const uint8_t multicast = 0xff; /* the first byte: RFC 4291 2.7 */

	nft_rule_begin(b, "output");
	firewall_match_name(b, NFT_META_OIFNAME, NFT_CMP_EQ, LINK_UPLINK);
	firewall_match_family(b, six);
	nft_match_payload(b, NFT_PAYLOAD_NETWORK_HEADER, six->destination_offset, NFT_CMP_EQ,
			  &multicast, sizeof(multicast));
	nft_rule_end_with(b, NF_DROP, NULL);
}

/* What the gateway itself sends. */
static void add_output(struct nft_batch *b, const struct firewall_spec *spec)
{
	static const struct nft_hook hook = { "output", "filter", NF_INET_LOCAL_OUT, PRIORITY_RAW,
					      NF_ACCEPT };

	nft_add_base_chain(b, &hook);
	if (spec->addresses.jail6.family == 6)
		drop_multicast(b);
	if (!spec->has_dns)
		return;
	/* The process that answers name queries could send from port 53 to anywhere. */
	nft_rule_begin(b, "output");
	firewall_match_name(b, NFT_META_OIFNAME, NFT_CMP_EQ, LINK_UPLINK);
	firewall_match_protocol(b, IPPROTO_UDP);
	nft_rule_end_with(b, NF_DROP, NULL);
	if (spec->has_proxy)
		firewall_filter_proxy(b);
	/* the answers to name queries, which are not tracked */
	nft_rule_begin(b, "output");
	firewall_match_name(b, NFT_META_OIFNAME, NFT_CMP_EQ, LINK_GATEWAY);
	nft_notrack(b);
	nft_rule_end(b);
}

static void begin_forward(struct nft_batch *b, const char *from, const char *to)
{
	nft_rule_begin(b, "forward");
	firewall_match_name(b, NFT_META_IIFNAME, NFT_CMP_EQ, from);
	firewall_match_name(b, NFT_META_OIFNAME, NFT_CMP_EQ, to);
}

static void add_forward(struct nft_batch *b)
{
	static const struct nft_hook hook = { "forward", "filter", NF_INET_FORWARD, 0, NF_DROP };

	nft_add_base_chain(b, &hook);
	begin_forward(b, LINK_GATEWAY, LINK_UPLINK);
	nft_rule_end_with(b, NF_ACCEPT, NULL);
	begin_forward(b, LINK_UPLINK, LINK_GATEWAY);
	nft_match_ct_state(b, CT_STATES_ANSWERS);
	nft_rule_end_with(b, NF_ACCEPT, NULL);
}

static void add_postrouting(struct nft_batch *b)
{
	static const struct nft_hook hook = { "postrouting", "nat", NF_INET_POST_ROUTING,
					      PRIORITY_SRCNAT, NF_ACCEPT };

	nft_add_base_chain(b, &hook);
	nft_rule_begin(b, "postrouting");
	firewall_match_name(b, NFT_META_OIFNAME, NFT_CMP_EQ, LINK_UPLINK);
	nft_masquerade(b);
	nft_rule_end(b);
}

void firewall_build_gateway(struct nft_batch *b, const struct firewall_spec *spec)
{
	nft_batch_begin(b, FIREWALL_TABLE);
	nft_add_table(b, 0);
	firewall_add_refusal(b);
	firewall_add_rules(b, spec);
	if (spec->has_proxy) {
		nft_add_chain(b, "redirect");
		nft_add_chain(b, "unchecked");
		firewall_add_checks(b, spec);
		firewall_add_redirected(b);
	}
	add_raw(b, spec);
	add_from_jail(b, spec);
	add_input(b, spec);
	add_output(b, spec);
	add_forward(b);
	add_postrouting(b);
	nft_batch_end(b);
}
