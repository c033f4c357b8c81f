/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules in the jail's own network namespace, and those in a container's.
 *
 * In a jail there is no connection tracking: for each packet it would cost more than the filter
 * does.  So every outgoing packet is filtered, also of old connections, and a new address of the
 * host is closed to them at once.  Inwards the gateway passes only answers.  As a second check, two
 * rules here drop packets that would open a TCP connection, which needs no tracking.
 *
 * The namespace of a container was made and connected by an engine.  These rules filter what the
 * container sends.  Packets that answer an incoming connection pass: the
 * engine decides which ports are published.  Every packet of a connection that the container opens
 * is filtered, also when the connection is older than these rules.
 */
#include "netns/firewall/firewall_parts.h"

#include <linux/rtnetlink.h>

#define DATA_TYPE_NFPROTO 2 /* nft(8)'s number */

#define TCP_FLAGS_OFFSET 13 /* RFC 9293 3.1 */
#define TCP_SYN          0x02
#define TCP_ACK          0x10

#define IPV6_SOURCE 8 /* its offset: RFC 8200 3 */

/* RFC 4861 4.1, 4.3, 4.4.  Without CAP_NET_RAW only the kernel sends these. */
static const uint8_t neighbour_types[] = { 133, 135, 136 };

static void add_output(struct nft_batch *b, const struct firewall_spec *spec)
{
	static const struct nft_hook output = { "output", "filter", NF_INET_LOCAL_OUT, 0, NF_DROP };

	nft_add_base_chain(b, &output);
	firewall_accept_loopback(b, "output", NFT_META_OIF);
	for (size_t i = 0; i < FIREWALL_FAMILIES; i++)
		firewall_drop_kernel_icmp(b, &firewall_families[i]);
	if (spec->has_dns)
		firewall_add_dns(b, "output", &spec->addresses.gateway4, true);

	nft_add_verdict(b, "output", NFT_JUMP, "filter");

	/* Packets that the gateway could not route are rejected here.  The gateway's ICMP error
	 * would arrive while connect(2) locks the socket, and then TCP only retries, for
	 * minutes. */
	nft_rule_begin(b, "output");
	nft_load_meta(b, NFT_META_NFPROTO, NFT_REG32_00);
	nft_match_set(b, FIREWALL_UNREACHABLE);
	nft_rule_end_with(b, NFT_GOTO, "answer");
	nft_add_verdict(b, "output", NF_ACCEPT, NULL);
}

static void add_input(struct nft_batch *b)
{
	static const struct nft_hook input = { "input", "filter", NF_INET_LOCAL_IN, 0, NF_ACCEPT };

	nft_add_base_chain(b, &input);
	firewall_accept_loopback(b, "input", NFT_META_IIF);

	nft_rule_begin(b, "input");
	firewall_match_protocol(b, IPPROTO_TCP);
	nft_match_payload_bits(b, NFT_PAYLOAD_TRANSPORT_HEADER, TCP_FLAGS_OFFSET, TCP_SYN | TCP_ACK,
			       TCP_SYN);
	nft_rule_end_with(b, NF_DROP, NULL);
}

void firewall_build_jail(struct nft_batch *b, const struct firewall_spec *spec)
{
	nft_batch_begin(b, FIREWALL_TABLE);
	nft_add_table(b, 0);
	firewall_add_refusal(b);
	firewall_add_rules(b, spec);
	nft_add_set(b, &(struct nft_set){ .name = FIREWALL_UNREACHABLE,
					  .key_type = DATA_TYPE_NFPROTO,
					  .key_bytes = sizeof(uint8_t),
					  .size = FIREWALL_FAMILIES });
	firewall_add_answers(b, "answer");
	add_output(b, spec);
	add_input(b);
	nft_batch_end(b);
}

/*
 * A socket of IPv6 may have any source: ipv6(7), IPV6_FREEBIND.  Sent to an address of the
 * container's own, such a packet would begin a connection that comes from outside, and what goes to
 * that source would be its answers.  The kernel alone sends from "::", and what it refuses by a
 * reset or by ICMP comes from the refused destination, related to the refused packet.
 */
static void refuse_foreign_sources(struct nft_batch *b)
{
	const uint32_t local = RTN_LOCAL;
	const uint32_t not_related = NF_CT_STATE_BIT(IP_CT_NEW) |
				     NF_CT_STATE_BIT(IP_CT_ESTABLISHED) | NF_CT_STATE_INVALID_BIT |
				     NF_CT_STATE_UNTRACKED_BIT;
	static const uint8_t unspecified[16];

	nft_rule_begin(b, "output");
	firewall_match_family(b, &firewall_families[1]);
	nft_match_payload(b, NFT_PAYLOAD_NETWORK_HEADER, IPV6_SOURCE, NFT_CMP_NEQ, unspecified,
			  sizeof(unspecified));
	nft_match_ct_state(b, not_related);
	nft_load_address_type(b, NFTA_FIB_F_SADDR);
	nft_compare(b, NFT_CMP_NEQ, &local, sizeof(local));
	firewall_end_refused(b, "refuse", NET_PROTOCOL);
}

/*
 * A source route in the options of IPv4, or in an extension header of IPv6, leads to another
 * destination than the one that is filtered.  RFC 791 3.1, RFC 8200 4.4
 */
static void refuse_odd_headers(struct nft_batch *b)
{
	const uint8_t plain4 = IPV4_NO_OPTIONS;
	static const uint8_t next6[] = { IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMPV6 };

	nft_rule_begin(b, "output");
	firewall_match_family(b, &firewall_families[0]);
	nft_match_payload(b, NFT_PAYLOAD_NETWORK_HEADER, 0, NFT_CMP_NEQ, &plain4, sizeof(plain4));
	firewall_end_refused(b, "refuse", NET_PROTOCOL);

	nft_rule_begin(b, "output");
	firewall_match_family(b, &firewall_families[1]);
	for (size_t i = 0; i < sizeof(next6); i++)
		nft_match_payload(b, NFT_PAYLOAD_NETWORK_HEADER, IPV6_NEXT_HEADER, NFT_CMP_NEQ,
				  &next6[i], sizeof(next6[i]));
	firewall_end_refused(b, "refuse", NET_PROTOCOL);
}

static void add_container_output(struct nft_batch *b, const struct firewall_container_spec *spec)
{
	static const struct nft_hook output = { "output", "filter", NF_INET_LOCAL_OUT, 0, NF_DROP };

	nft_add_base_chain(b, &output);
	refuse_foreign_sources(b);
	firewall_accept_loopback(b, "output", NFT_META_OIF);

	nft_rule_begin(b, "output"); /* answers to incoming connections */
	nft_match_ct_reply(b);
	nft_rule_end_with(b, NF_ACCEPT, NULL);

	for (size_t i = 0; i < sizeof(neighbour_types); i++) {
		nft_rule_begin(b, "output");
		firewall_match_protocol(b, IPPROTO_ICMPV6);
		nft_match_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, 0, NFT_CMP_EQ,
				  &neighbour_types[i], sizeof(neighbour_types[i]));
		nft_rule_end_with(b, NF_ACCEPT, NULL);
	}
	for (size_t i = 0; i < FIREWALL_FAMILIES; i++)
		firewall_drop_kernel_icmp(b, &firewall_families[i]);
	refuse_odd_headers(b);
	for (size_t i = 0; i < spec->nname_servers; i++)
		firewall_add_dns(b, "output", &spec->name_servers[i], true);

	nft_add_verdict(b, "output", NFT_JUMP, "filter");
	nft_add_verdict(b, "output", NF_ACCEPT, NULL);
}

/* The first two messages are for a table that exists already, with the objects of another load. */
void firewall_build_container(struct nft_batch *b, const char *table,
			      const struct firewall_container_spec *spec)
{
	struct firewall_spec rules = spec->rules;

	rules.addresses = addresses_make(true); /* both families */
	nft_batch_begin(b, table);
	nft_ensure_table(b);
	nft_delete_table(b);
	nft_add_table(b, 0);
	firewall_add_refusal(b);
	firewall_add_rules(b, &rules);
	add_container_output(b, spec);
	nft_batch_end(b);
}
