/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In the gateway: connections to addresses that a name has opened, whose names are checked.
 *
 * The filter of destinations comes first, as for every packet.  Then a new connection to a checked
 * port goes to the proxy of the gateway's process (name_proxy.h), unless the list opens
 * its destination by address.  The proxy's own connections pass the same filter on their way out.
 *
 *	redirect   new connections, for the chain "redirected" of the type nat
 *	unchecked  refuses a connection that is older than the list: it is not redirected, and
 *	           would be now
 */
#include "netns/firewall/firewall_parts.h"

#include "netns/relay/name_proxy.h"

#define PRIORITY_DSTNAT (-100) /* NF_IP_PRI_NAT_DST */

const uint16_t firewall_checked_ports[FIREWALL_CHECKED_PORTS] = { 443, 80 };

static void begin_rule(struct nft_batch *b, const char *chain, const struct firewall_family *f,
		       uint16_t port)
{
	const uint16_t big = htons(port);
	nft_rule_begin(b, chain);
	firewall_match_family(b, f);
	firewall_match_protocol(b, IPPROTO_TCP);
	nft_match_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, 2, NFT_CMP_EQ, &big, sizeof(big));
}

/* The two sets that names open: of addresses, and of addresses with a port. */
static void match_named(struct nft_batch *b, const struct firewall_family *f, bool has_port)
{
	firewall_load_destination(b, f);
	if (has_port)
		nft_load_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, 2, sizeof(uint16_t),
				 NFT_REG32_00 + f->ip_bytes / 4);
	nft_match_set(b, has_port ? f->named_ports : f->named);
}

static void redirect(struct nft_batch *b, const struct firewall_family *f, uint16_t port,
		     bool has_port)
{
	const uint16_t to = htons(NAME_PROXY_PORT);
	begin_rule(b, "redirect", f, port);
	match_named(b, f, has_port);
	nft_redirect(b, to);
	nft_rule_end(b);
}

void firewall_add_checks(struct nft_batch *b, const struct firewall_spec *spec)
{
	if (!spec->checks_names)
		return;
	/* A connection is redirected by its first packet.  This chain has the later ones. */
	nft_rule_begin(b, "unchecked");
	nft_match_ct_redirected(b);
	nft_rule_end_with(b, NFT_RETURN, NULL);
	firewall_add_states(b, "unchecked", NF_CT_STATE_BIT(IP_CT_NEW), NFT_RETURN);

	for (size_t i = 0; i < firewall_families_of(&spec->addresses.jail6); i++) {
		const struct firewall_family *f = &firewall_families[i];
		firewall_add_allowed_rules(b, "redirect", f, spec->allowed, spec->nallowed);
		firewall_add_allowed_rules(b, "unchecked", f, spec->allowed, spec->nallowed);
		for (size_t k = 0; k < 2 * FIREWALL_CHECKED_PORTS; k++) {
			redirect(b, f, firewall_checked_ports[k / 2], k % 2);
			begin_rule(b, "unchecked", f, firewall_checked_ports[k / 2]);
			match_named(b, f, k % 2);
			firewall_end_refused(b, "refuse", NET_NOT_ALLOWED);
		}
	}
}

void firewall_empty_checks(struct nft_batch *b)
{
	nft_empty_chain(b, "redirect");
	nft_empty_chain(b, "unchecked");
}

void firewall_add_redirected(struct nft_batch *b)
{
	static const struct nft_hook hook = { "redirected", "nat", NF_INET_PRE_ROUTING,
					      PRIORITY_DSTNAT, NF_ACCEPT };
	nft_add_base_chain(b, &hook);
	nft_rule_begin(b, "redirected");
	firewall_match_name(b, NFT_META_IIFNAME, NFT_CMP_EQ, LINK_GATEWAY);
	nft_rule_end_with(b, NFT_JUMP, "redirect");
}

/* From servers come only the answers to the proxy's own connections. */
void firewall_accept_answers(struct nft_batch *b)
{
	nft_rule_begin(b, "input");
	firewall_match_name(b, NFT_META_IIFNAME, NFT_CMP_EQ, LINK_UPLINK);
	nft_match_ct_state(b, CT_STATES_ANSWERS);
	nft_rule_end_with(b, NF_ACCEPT, NULL);
}

/* The jail can't name this port: its destination would be the gateway, which is closed. */
void firewall_accept_redirected(struct nft_batch *b)
{
	const uint16_t port = htons(NAME_PROXY_PORT);
	nft_rule_begin(b, "input");
	firewall_match_protocol(b, IPPROTO_TCP);
	nft_match_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, 2, NFT_CMP_EQ, &port, sizeof(port));
	nft_match_ct_redirected(b);
	nft_rule_end_with(b, NF_ACCEPT, NULL);
}

/* Every packet is filtered, as in the jail: an address that is closed later ends a connection. */
void firewall_filter_proxy(struct nft_batch *b)
{
	const uint16_t port = htons(NAME_PROXY_PORT);
	nft_rule_begin(b, "output");
	firewall_match_name(b, NFT_META_OIFNAME, NFT_CMP_EQ, LINK_UPLINK);
	firewall_match_protocol(b, IPPROTO_TCP);
	nft_rule_end_with(b, NFT_JUMP, "filter");

	/* tracked, because the answers get back the address that the program chose */
	nft_rule_begin(b, "output");
	firewall_match_name(b, NFT_META_OIFNAME, NFT_CMP_EQ, LINK_GATEWAY);
	firewall_match_protocol(b, IPPROTO_TCP);
	nft_match_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, 0, NFT_CMP_EQ, &port, sizeof(port));
	nft_rule_end_with(b, NF_ACCEPT, NULL);
}
