/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules in the jail's own network namespace.  Pure.
 *
 * There is no connection tracking here: for each packet it would cost more than the filter does.
 * So every outgoing packet is filtered, also of old connections, and a new address of the host is
 * closed to them at once.  Inwards the gateway passes only answers.  As a second check, two rules
 * here drop packets that would open a TCP connection, which needs no tracking.
 */
#include "netns/firewall/firewall_build.h"

#include <net/if.h>

#include "netns/firewall/firewall_rules.h"

#define DATA_TYPE_NFPROTO 2 /* nft(8)'s number */

#define LOOPBACK_INDEX 1u /* of `lo` in every namespace: linux/net.h LOOPBACK_IFINDEX */

#define TCP_FLAGS_OFFSET 13 /* RFC 9293 3.1 */
#define TCP_SYN          0x02
#define TCP_ACK          0x10

static void accept_loopback(struct nft_batch *b, const char *chain, enum nft_meta_keys key)
{
	const uint32_t index = LOOPBACK_INDEX;

	nft_rule_begin(b, chain);
	nft_match_meta(b, key, NFT_CMP_EQ, &index, sizeof(index));
	nft_verdict(b, NF_ACCEPT, NULL);
	nft_rule_end(b);
}

/*
 * Packets that the gateway could not route are rejected here.  The gateway's ICMP error would
 * arrive while connect(2) locks the socket, and then TCP only retries, for minutes.
 */
static void answer_unreachable(struct nft_batch *b)
{
	nft_rule_begin(b, "output");
	nft_load_meta(b, NFT_META_NFPROTO, NFT_REG32_00);
	nft_match_set(b, FIREWALL_UNREACHABLE);
	nft_verdict(b, NFT_GOTO, "answer");
	nft_rule_end(b);
}

static void add_unreachable(struct nft_batch *b)
{
	nft_add_set(b, &(struct nft_set){ .name = FIREWALL_UNREACHABLE,
					  .key_type = DATA_TYPE_NFPROTO,
					  .key_bytes = sizeof(uint8_t),
					  .size = FIREWALL_FAMILIES });
	firewall_add_answers(b, "answer");
}

static void add_output(struct nft_batch *b, const struct firewall_spec *spec)
{
	static const struct nft_hook output = { "output", "filter", NF_INET_LOCAL_OUT, 0, NF_DROP };

	nft_add_base_chain(b, &output);
	accept_loopback(b, "output", NFT_META_OIF);
	for (size_t i = 0; i < FIREWALL_FAMILIES; i++)
		firewall_drop_kernel_icmp(b, &firewall_families[i]);
	if (spec->has_dns)
		firewall_add_dns(b, "output", &spec->addresses.gateway4, firewall_accept);

	nft_rule_begin(b, "output");
	nft_verdict(b, NFT_JUMP, "filter");
	nft_rule_end(b);
	answer_unreachable(b);
	nft_rule_begin(b, "output");
	nft_verdict(b, NF_ACCEPT, NULL);
	nft_rule_end(b);
}

static void add_input(struct nft_batch *b)
{
	static const struct nft_hook input = { "input", "filter", NF_INET_LOCAL_IN, 0, NF_ACCEPT };

	nft_add_base_chain(b, &input);
	accept_loopback(b, "input", NFT_META_IIF);

	nft_rule_begin(b, "input");
	firewall_match_protocol(b, IPPROTO_TCP);
	nft_match_payload_bits(b, NFT_PAYLOAD_TRANSPORT_HEADER, TCP_FLAGS_OFFSET, TCP_SYN | TCP_ACK,
			       TCP_SYN);
	nft_verdict(b, NF_DROP, NULL);
	nft_rule_end(b);
}

int firewall_build_jail(struct nft_batch *b, const struct firewall_spec *spec)
{
	nft_batch_begin(b, FIREWALL_TABLE);
	nft_add_table(b, 0);
	firewall_add_refusal(b);
	firewall_add_rules(b, spec);
	add_unreachable(b);
	add_output(b, spec);
	add_input(b);
	return nft_batch_end(b);
}
