/* SPDX-License-Identifier: Apache-2.0 */
/* Beginnings and ends of rules.  Pure. */
#include "netns/firewall/firewall_match.h"

#include <net/if.h>
#include <stdio.h>
#include <string.h>

#define DATA_TYPE_IPV4 7 /* nft(8)'s numbers */
#define DATA_TYPE_IPV6 8

/* Offsets: RFC 791 3.1, RFC 8200 3.  Types: RFC 792, RFC 4443 4.1. */
/* clang-format off */
const struct firewall_family firewall_families[FIREWALL_FAMILIES] = {
	{ 4, NFPROTO_IPV4, IPPROTO_ICMP,   8,   4,  12, 16, DATA_TYPE_IPV4, "host4", "closed4", "allowed4" },
	{ 6, NFPROTO_IPV6, IPPROTO_ICMPV6, 128, 16, 8,  24, DATA_TYPE_IPV6, "host6", "closed6", "allowed6" },
};
/* clang-format on */

size_t firewall_families_of(const struct ip *ip6)
{
	return ip6->family == 6 ? 2 : 1;
}

void firewall_match_family(struct nft_batch *b, const struct firewall_family *f)
{
	nft_match_meta(b, NFT_META_NFPROTO, NFT_CMP_EQ, &f->nfproto, sizeof(f->nfproto));
}

void firewall_match_source(struct nft_batch *b, const struct ip *ip)
{
	firewall_match_source_network(b, ip, firewall_families[ip->family == 6].ip_bytes);
}

void firewall_match_source_network(struct nft_batch *b, const struct ip *ip, uint32_t bytes)
{
	const struct firewall_family *f = &firewall_families[ip->family == 6];

	firewall_match_family(b, f);
	nft_match_payload(b, NFT_PAYLOAD_NETWORK_HEADER, f->source_offset, NFT_CMP_EQ, ip->bytes,
			  bytes);
}

void firewall_match_destination_network(struct nft_batch *b, const struct ip *ip, uint32_t bytes)
{
	const struct firewall_family *f = &firewall_families[ip->family == 6];

	firewall_match_family(b, f);
	nft_match_payload(b, NFT_PAYLOAD_NETWORK_HEADER, f->destination_offset, NFT_CMP_EQ,
			  ip->bytes, bytes);
}

void firewall_match_protocol(struct nft_batch *b, uint8_t protocol)
{
	nft_match_meta(b, NFT_META_L4PROTO, NFT_CMP_EQ, &protocol, sizeof(protocol));
}

void firewall_match_echo(struct nft_batch *b, const struct firewall_family *f)
{
	nft_match_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, 0, NFT_CMP_EQ, &f->echo_request,
			  sizeof(f->echo_request));
}

void firewall_match_name(struct nft_batch *b, enum nft_meta_keys key, enum nft_cmp_ops op,
			 const char *link)
{
	char name[IFNAMSIZ] = { 0 };
	(void)snprintf(name, sizeof(name), "%s", link);
	nft_match_meta(b, key, op, name, sizeof(name));
}

void firewall_match_name_prefix(struct nft_batch *b, enum nft_meta_keys key, enum nft_cmp_ops op,
				const char *prefix)
{
	nft_match_meta(b, key, op, prefix, (uint32_t)strlen(prefix));
}

void firewall_load_destination(struct nft_batch *b, const struct firewall_family *f)
{
	nft_load_payload(b, NFT_PAYLOAD_NETWORK_HEADER, f->destination_offset, f->ip_bytes,
			 NFT_REG32_00);
}

void firewall_end_refused(struct nft_batch *b, const char *chain, enum net_class class)
{
	const uint32_t mark = (uint32_t) class + 1;

	nft_load_value(b, &mark, sizeof(mark), NFT_REG32_00);
	nft_set_mark(b, NFT_REG32_00);
	nft_verdict(b, NFT_GOTO, chain);
}

void firewall_accept(struct nft_batch *b)
{
	nft_verdict(b, NF_ACCEPT, NULL);
}

void firewall_add_dns(struct nft_batch *b, const char *chain, const struct ip *server,
		      void (*end)(struct nft_batch *))
{
	static const uint8_t protocols[] = { IPPROTO_UDP, IPPROTO_TCP };
	const struct firewall_family *f = &firewall_families[server->family == 6];
	const uint16_t port = htons(53);

	for (size_t i = 0; i < sizeof(protocols); i++) {
		nft_rule_begin(b, chain);
		firewall_match_family(b, f);
		nft_match_payload(b, NFT_PAYLOAD_NETWORK_HEADER, f->destination_offset, NFT_CMP_EQ,
				  server->bytes, f->ip_bytes);
		firewall_match_protocol(b, protocols[i]);
		nft_match_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, 2, NFT_CMP_EQ, &port,
				  sizeof(port));
		end(b);
		nft_rule_end(b);
	}
}

void firewall_drop_kernel_icmp(struct nft_batch *b, const struct firewall_family *f)
{
	nft_rule_begin(b, "output");
	firewall_match_family(b, f);
	firewall_match_protocol(b, f->icmp);
	nft_match_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, 0, NFT_CMP_NEQ, &f->echo_request,
			  sizeof(f->echo_request));
	nft_verdict(b, NF_DROP, NULL);
	nft_rule_end(b);
}
