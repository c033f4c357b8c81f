/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of a batch, and the expressions they are made of.  Pure. */
#include "netns/nftables/nft.h"

#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_conntrack_tuple_common.h>
#include <linux/netlink.h>

#include "netns/nftables/nft_write.h"

/* The register that single matches use: no value in it must survive them. */
#define SCRATCH NFT_REG32_00

void nft_rule_begin(struct nft_batch *b, const char *chain)
{
	nft_message_begin(b, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
	nft_put_text(b, NFTA_RULE_CHAIN, chain);
	b->list = nft_nest_begin(b, NFTA_RULE_EXPRESSIONS);
}

void nft_rule_end(struct nft_batch *b)
{
	nft_nest_end(b, b->list);
	b->list = NULL;
	nft_message_end(b);
}

struct expression {
	struct nlattr *whole, *data;
};

static struct expression begin(struct nft_batch *b, const char *name)
{
	struct expression e = { .whole = nft_nest_begin(b, NFTA_LIST_ELEM) };
	nft_put_text(b, NFTA_EXPR_NAME, name);
	e.data = nft_nest_begin(b, NFTA_EXPR_DATA);
	return e;
}

static void end(struct nft_batch *b, struct expression e)
{
	nft_nest_end(b, e.data);
	nft_nest_end(b, e.whole);
}

void nft_load_meta(struct nft_batch *b, enum nft_meta_keys key, uint32_t reg)
{
	struct expression e = begin(b, "meta");
	nft_put_u32(b, NFTA_META_KEY, key);
	nft_put_u32(b, NFTA_META_DREG, reg);
	end(b, e);
}

void nft_set_mark(struct nft_batch *b, uint32_t from_reg)
{
	struct expression e = begin(b, "meta");
	nft_put_u32(b, NFTA_META_KEY, NFT_META_MARK);
	nft_put_u32(b, NFTA_META_SREG, from_reg);
	end(b, e);
}

void nft_load_payload(struct nft_batch *b, enum nft_payload_bases base, uint32_t offset,
		      uint32_t bytes, uint32_t reg)
{
	struct expression e = begin(b, "payload");
	nft_put_u32(b, NFTA_PAYLOAD_DREG, reg);
	nft_put_u32(b, NFTA_PAYLOAD_BASE, base);
	nft_put_u32(b, NFTA_PAYLOAD_OFFSET, offset);
	nft_put_u32(b, NFTA_PAYLOAD_LEN, bytes);
	end(b, e);
}

void nft_load_value(struct nft_batch *b, const void *value, uint32_t bytes, uint32_t reg)
{
	struct expression e = begin(b, "immediate");
	nft_put_u32(b, NFTA_IMMEDIATE_DREG, reg);
	nft_put_value(b, NFTA_IMMEDIATE_DATA, value, bytes);
	end(b, e);
}

static void load_address_type(struct nft_batch *b, uint32_t which)
{
	struct expression e = begin(b, "fib");
	nft_put_u32(b, NFTA_FIB_DREG, SCRATCH);
	nft_put_u32(b, NFTA_FIB_RESULT, NFT_FIB_RESULT_ADDRTYPE);
	nft_put_u32(b, NFTA_FIB_FLAGS, which);
	end(b, e);
}

void nft_load_destination_type(struct nft_batch *b)
{
	load_address_type(b, NFTA_FIB_F_DADDR);
}

void nft_load_source_type(struct nft_batch *b)
{
	load_address_type(b, NFTA_FIB_F_SADDR);
}

void nft_match_reverse_path(struct nft_batch *b)
{
	const uint32_t no_link = 0;

	struct expression e = begin(b, "fib");
	nft_put_u32(b, NFTA_FIB_DREG, SCRATCH);
	nft_put_u32(b, NFTA_FIB_RESULT, NFT_FIB_RESULT_OIF);
	nft_put_u32(b, NFTA_FIB_FLAGS, NFTA_FIB_F_SADDR | NFTA_FIB_F_IIF);
	end(b, e);
	nft_compare(b, NFT_CMP_NEQ, &no_link, sizeof(no_link));
}

void nft_compare(struct nft_batch *b, enum nft_cmp_ops op, const void *value, uint32_t bytes)
{
	struct expression e = begin(b, "cmp");
	nft_put_u32(b, NFTA_CMP_SREG, SCRATCH);
	nft_put_u32(b, NFTA_CMP_OP, op);
	nft_put_value(b, NFTA_CMP_DATA, value, bytes);
	end(b, e);
}

void nft_match_meta(struct nft_batch *b, enum nft_meta_keys key, enum nft_cmp_ops op,
		    const void *value, uint32_t bytes)
{
	nft_load_meta(b, key, SCRATCH);
	nft_compare(b, op, value, bytes);
}

void nft_match_payload(struct nft_batch *b, enum nft_payload_bases base, uint32_t offset,
		       enum nft_cmp_ops op, const void *value, uint32_t bytes)
{
	nft_load_payload(b, base, offset, bytes, SCRATCH);
	nft_compare(b, op, value, bytes);
}

void nft_match_range(struct nft_batch *b, const void *first, const void *last, uint32_t bytes)
{
	struct expression e = begin(b, "range");
	nft_put_u32(b, NFTA_RANGE_SREG, SCRATCH);
	nft_put_u32(b, NFTA_RANGE_OP, NFT_RANGE_EQ);
	nft_put_value(b, NFTA_RANGE_FROM_DATA, first, bytes);
	nft_put_value(b, NFTA_RANGE_TO_DATA, last, bytes);
	end(b, e);
}

static void mask(struct nft_batch *b, const void *bits, const void *none, uint32_t bytes)
{
	struct expression e = begin(b, "bitwise");
	nft_put_u32(b, NFTA_BITWISE_SREG, SCRATCH);
	nft_put_u32(b, NFTA_BITWISE_DREG, SCRATCH);
	nft_put_u32(b, NFTA_BITWISE_LEN, bytes);
	nft_put_value(b, NFTA_BITWISE_MASK, bits, bytes);
	nft_put_value(b, NFTA_BITWISE_XOR, none, bytes);
	end(b, e);
}

void nft_match_payload_bits(struct nft_batch *b, enum nft_payload_bases base, uint32_t offset,
			    uint8_t bits, uint8_t value)
{
	const uint8_t none = 0;

	nft_load_payload(b, base, offset, sizeof(bits), SCRATCH);
	mask(b, &bits, &none, sizeof(bits));
	nft_compare(b, NFT_CMP_EQ, &value, sizeof(value));
}

void nft_match_ct_state(struct nft_batch *b, uint32_t states)
{
	const uint32_t none = 0;

	struct expression e = begin(b, "ct");
	nft_put_u32(b, NFTA_CT_KEY, NFT_CT_STATE);
	nft_put_u32(b, NFTA_CT_DREG, SCRATCH);
	end(b, e);
	mask(b, &states, &none, sizeof(states));
	nft_compare(b, NFT_CMP_NEQ, &none, sizeof(none));
}

void nft_match_ct_reply(struct nft_batch *b)
{
	const uint8_t reply = IP_CT_DIR_REPLY;

	struct expression e = begin(b, "ct");
	nft_put_u32(b, NFTA_CT_KEY, NFT_CT_DIRECTION);
	nft_put_u32(b, NFTA_CT_DREG, SCRATCH);
	end(b, e);
	nft_compare(b, NFT_CMP_EQ, &reply, sizeof(reply));
}

void nft_match_set(struct nft_batch *b, const char *set)
{
	struct expression e = begin(b, "lookup");
	nft_put_text(b, NFTA_LOOKUP_SET, set);
	nft_put_u32(b, NFTA_LOOKUP_SREG, SCRATCH);
	end(b, e);
}

void nft_lookup_map(struct nft_batch *b, const char *map, uint32_t to_reg)
{
	struct expression e = begin(b, "lookup");
	nft_put_text(b, NFTA_LOOKUP_SET, map);
	nft_put_u32(b, NFTA_LOOKUP_SREG, SCRATCH);
	nft_put_u32(b, NFTA_LOOKUP_DREG, to_reg);
	end(b, e);
}

void nft_match_rate(struct nft_batch *b, uint64_t packets_second, uint32_t burst, bool is_above)
{
	struct expression e = begin(b, "limit");
	nft_put_u64(b, NFTA_LIMIT_RATE, packets_second);
	nft_put_u64(b, NFTA_LIMIT_UNIT, 1);
	nft_put_u32(b, NFTA_LIMIT_BURST, burst);
	nft_put_u32(b, NFTA_LIMIT_TYPE, NFT_LIMIT_PKTS);
	nft_put_u32(b, NFTA_LIMIT_FLAGS, is_above ? NFT_LIMIT_F_INV : 0);
	end(b, e);
}

void nft_match_connections_above(struct nft_batch *b, uint32_t count)
{
	struct expression e = begin(b, "connlimit");
	nft_put_u32(b, NFTA_CONNLIMIT_COUNT, count);
	nft_put_u32(b, NFTA_CONNLIMIT_FLAGS, NFT_CONNLIMIT_F_INV);
	end(b, e);
}

void nft_log(struct nft_batch *b, const struct nft_log *log)
{
	struct expression e = begin(b, "log");
	nft_put_u16(b, NFTA_LOG_GROUP, log->group);
	nft_put_text(b, NFTA_LOG_PREFIX, log->prefix);
	nft_put_u32(b, NFTA_LOG_SNAPLEN, log->packet_bytes);
	/* send a message for each packet at once: the default collects for a second */
	nft_put_u16(b, NFTA_LOG_QTHRESHOLD, 1);
	end(b, e);
}

static void reject(struct nft_batch *b, uint32_t type, uint8_t code)
{
	struct expression e = begin(b, "reject");
	nft_put_u32(b, NFTA_REJECT_TYPE, type);
	nft_put(b, NFTA_REJECT_ICMP_CODE, &code, sizeof(code));
	end(b, e);
}

void nft_reject_tcp(struct nft_batch *b)
{
	reject(b, NFT_REJECT_TCP_RST, 0);
}

void nft_reject_admin(struct nft_batch *b)
{
	reject(b, NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_ADMIN_PROHIBITED);
}

void nft_masquerade(struct nft_batch *b)
{
	end(b, begin(b, "masq"));
}

void nft_notrack(struct nft_batch *b)
{
	end(b, begin(b, "notrack"));
}

void nft_verdict(struct nft_batch *b, int code, const char *chain)
{
	struct expression e = begin(b, "immediate");
	nft_put_u32(b, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	struct nlattr *data = nft_nest_begin(b, NFTA_IMMEDIATE_DATA);
	struct nlattr *verdict = nft_nest_begin(b, NFTA_DATA_VERDICT);
	nft_put_u32(b, NFTA_VERDICT_CODE, (uint32_t)code);
	if (chain)
		nft_put_text(b, NFTA_VERDICT_CHAIN, chain);
	nft_nest_end(b, verdict);
	nft_nest_end(b, data);
	end(b, e);
}
