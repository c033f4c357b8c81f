/* SPDX-License-Identifier: Apache-2.0 */
/* If an attribute does not fit into the batch, the batch keeps ENOBUFS as its error. */
#include "netns/nftables/nft.h"

#include <arpa/inet.h>
#include <assert.h>
#include <endian.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_conntrack_tuple_common.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>

/* Attribute 1 names the table in every object's message, attribute 2 the chain of a rule and the
 * set of elements. */
#define ATTR_TABLE 1
static_assert(NFTA_TABLE_NAME == ATTR_TABLE && NFTA_CHAIN_TABLE == ATTR_TABLE &&
		  NFTA_RULE_TABLE == ATTR_TABLE && NFTA_SET_TABLE == ATTR_TABLE &&
		  NFTA_SET_ELEM_LIST_TABLE == ATTR_TABLE,
	      "the table's name is attribute 1 of every object");

/* How large the message that is being written may become. */
static size_t room(const struct nft_batch *b)
{
	return NFT_BATCH_MAX - b->size;
}

static void begin_message(struct nft_batch *b, int type, uint16_t flags, struct nfgenmsg head)
{
	if (b->error)
		return;
	if (room(b) < NLMSG_HDRLEN + sizeof(head)) {
		b->error = ENOBUFS;
		return;
	}
	b->message = mnl_nlmsg_put_header(b->bytes + b->size);
	b->message->nlmsg_type = (uint16_t)type;
	b->message->nlmsg_flags = NLM_F_REQUEST | flags;
	b->message->nlmsg_seq = ++b->last_seq;
	memcpy(mnl_nlmsg_put_extra_header(b->message, sizeof(head)), &head, sizeof(head));
}

static void end_message(struct nft_batch *b)
{
	if (b->error)
		return;
	b->last = b->message;
	(void)mnl_nlmsg_batch_next(b->mnl); /* it fits, because each attribute did */
	b->size = mnl_nlmsg_batch_size(b->mnl);
}

static void put(struct nft_batch *b, uint16_t type, const void *bytes, size_t size)
{
	if (!b->error && !mnl_attr_put_check(b->message, room(b), type, size, bytes))
		b->error = ENOBUFS;
}

static void put_text(struct nft_batch *b, uint16_t type, const char *text)
{
	put(b, type, text, strlen(text) + 1);
}

static void begin_object(struct nft_batch *b, uint8_t message, uint16_t flags)
{
	begin_message(b, NFNL_SUBSYS_NFTABLES << 8 | message, flags,
		      (struct nfgenmsg){ .nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0 });
	put_text(b, ATTR_TABLE, b->table);
}

/* Big endian, as all of it. */
static void put_number(struct nft_batch *b, uint16_t type, uint64_t value, size_t bytes)
{
	uint64_t big = htobe64(value);
	put(b, type, (const uint8_t *)&big + sizeof(big) - bytes, bytes);
}

static void put_u32(struct nft_batch *b, uint16_t type, uint32_t value)
{
	put_number(b, type, value, sizeof(value));
}

static struct nlattr *begin_nest(struct nft_batch *b, uint16_t type)
{
	if (b->error)
		return NULL;
	struct nlattr *nest = mnl_attr_nest_start_check(b->message, room(b), type);
	if (!nest)
		b->error = ENOBUFS;
	return nest;
}

static void end_nest(struct nft_batch *b, struct nlattr *nest)
{
	if (b->error || !nest)
		return;
	const char *const tail = mnl_nlmsg_get_payload_tail(b->message);
	if (tail - (const char *)nest > UINT16_MAX) /* the length has 16 bits */
		b->error = ENOBUFS;
	else
		mnl_attr_nest_end(b->message, nest);
}

/* Ends the list of expressions or elements, and its message. */
static void end_list(struct nft_batch *b)
{
	end_nest(b, b->list);
	b->list = NULL;
	end_message(b);
}

static void put_value(struct nft_batch *b, uint16_t type, const void *bytes, size_t size)
{
	struct nlattr *nest = begin_nest(b, type);
	put(b, NFTA_DATA_VALUE, bytes, size);
	end_nest(b, nest);
}

void nft_batch_fini(struct nft_batch *b)
{
	if (b->mnl)
		mnl_nlmsg_batch_stop(b->mnl);
	free(b->bytes);
	*b = (struct nft_batch){ 0 };
}

static void add_frame(struct nft_batch *b, int type)
{
	begin_message(
	    b, type, 0,
	    (struct nfgenmsg){ .version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES) });
	end_message(b);
}

void nft_batch_begin(struct nft_batch *b, const char *table)
{
	if (!b->bytes)
		b->bytes = calloc(1, NFT_BATCH_MAX);
	if (b->bytes && !b->mnl)
		b->mnl = mnl_nlmsg_batch_start(b->bytes, NFT_BATCH_MAX);
	b->error = b->mnl ? 0 : ENOMEM;
	if (b->mnl)
		mnl_nlmsg_batch_reset(b->mnl);
	b->size = 0;
	b->last = b->message = NULL;
	b->table = table;
	b->list = NULL;
	b->first_seq = b->last_seq + 1;
	add_frame(b, NFNL_MSG_BATCH_BEGIN);
}

void nft_batch_end(struct nft_batch *b)
{
	if (b->error)
		return;

	/* The end of a batch is acknowledged by Linux 6.10 and later only; the last object always,
	 * after the transaction is committed. */
	if (b->last_seq > b->first_seq)
		b->last->nlmsg_flags |= NLM_F_ACK;

	add_frame(b, NFNL_MSG_BATCH_END);
}

void nft_add_table(struct nft_batch *b, uint32_t flags)
{
	begin_object(b, NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_EXCL);
	put_u32(b, NFTA_TABLE_FLAGS, flags);
	end_message(b);
}

void nft_ensure_table(struct nft_batch *b)
{
	begin_object(b, NFT_MSG_NEWTABLE, NLM_F_CREATE);
	end_message(b);
}

void nft_delete_table(struct nft_batch *b)
{
	begin_object(b, NFT_MSG_DELTABLE, 0);
	end_message(b);
}

void nft_add_chain(struct nft_batch *b, const char *name)
{
	begin_object(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE | NLM_F_EXCL);
	put_text(b, NFTA_CHAIN_NAME, name);
	end_message(b);
}

void nft_empty_chain(struct nft_batch *b, const char *name)
{
	begin_object(b, NFT_MSG_DELRULE, 0);
	put_text(b, NFTA_RULE_CHAIN, name);
	end_message(b);
}

void nft_add_base_chain(struct nft_batch *b, const struct nft_hook *hook)
{
	begin_object(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE | NLM_F_EXCL);
	put_text(b, NFTA_CHAIN_NAME, hook->name);
	put_text(b, NFTA_CHAIN_TYPE, hook->type);
	put_u32(b, NFTA_CHAIN_POLICY, (uint32_t)hook->policy);

	struct nlattr *nest = begin_nest(b, NFTA_CHAIN_HOOK);
	put_u32(b, NFTA_HOOK_HOOKNUM, (uint32_t)hook->hook);
	put_u32(b, NFTA_HOOK_PRIORITY, (uint32_t)hook->priority);
	end_nest(b, nest);
	end_message(b);
}

#define MAP_DATA_BYTES ((uint32_t)sizeof(uint32_t))
#define DATA_TYPE_MARK 19 /* nft(8)'s number of "mark" */

/* The largest number of elements, and the fields of a concatenation. */
static void put_description(struct nft_batch *b, const struct nft_set *set)
{
	struct nlattr *description = begin_nest(b, NFTA_SET_DESC);
	if (set->size)
		put_u32(b, NFTA_SET_DESC_SIZE, set->size);
	if (set->flags & NFT_SET_CONCAT) {
		struct nlattr *list = begin_nest(b, NFTA_SET_DESC_CONCAT);
		for (size_t i = 0; i < sizeof(set->fields); i++) {
			struct nlattr *field = begin_nest(b, NFTA_LIST_ELEM);
			put_u32(b, NFTA_SET_FIELD_LEN, set->fields[i]);
			end_nest(b, field);
		}
		end_nest(b, list);
	}
	end_nest(b, description);
}

void nft_add_set(struct nft_batch *b, const struct nft_set *set)
{
	begin_object(b, NFT_MSG_NEWSET, NLM_F_CREATE | NLM_F_EXCL);
	put_text(b, NFTA_SET_NAME, set->name);
	/* the kernel wants an id that no other set of the batch has */
	put_u32(b, NFTA_SET_ID, b->last_seq);
	put_u32(b, NFTA_SET_FLAGS,
		set->flags | (set->has_data ? NFT_SET_MAP : 0) |
		    (set->timeout_ms ? NFT_SET_TIMEOUT | NFT_SET_EVAL : 0));
	put_u32(b, NFTA_SET_KEY_TYPE, set->key_type);
	put_u32(b, NFTA_SET_KEY_LEN, set->key_bytes);
	if (set->has_data) {
		put_u32(b, NFTA_SET_DATA_TYPE, DATA_TYPE_MARK);
		put_u32(b, NFTA_SET_DATA_LEN, MAP_DATA_BYTES);
	}
	put_description(b, set);
	if (set->timeout_ms)
		put_number(b, NFTA_SET_TIMEOUT, set->timeout_ms, 8);
	if (set->has_counters) {
		struct nlattr *expression = begin_nest(b, NFTA_SET_EXPR);
		put_text(b, NFTA_EXPR_NAME, "counter");
		end_nest(b, begin_nest(b, NFTA_EXPR_DATA));
		end_nest(b, expression);
	}
	end_message(b);
}

void nft_delete_set(struct nft_batch *b, const char *name)
{
	begin_object(b, NFT_MSG_DELSET, 0);
	put_text(b, NFTA_SET_NAME, name);
	end_message(b);
}

static void begin_elements(struct nft_batch *b, uint8_t message, uint16_t flags, const char *set)
{
	begin_object(b, message, flags);
	put_text(b, NFTA_SET_ELEM_LIST_SET, set);
	b->list = begin_nest(b, NFTA_SET_ELEM_LIST_ELEMENTS);
}

void nft_elements_begin(struct nft_batch *b, const char *set)
{
	/* no NLM_F_EXCL: the element may be there already */
	begin_elements(b, NFT_MSG_NEWSETELEM, NLM_F_CREATE, set);
}

void nft_elements_delete(struct nft_batch *b, const char *set)
{
	begin_elements(b, NFT_MSG_DELSETELEM, 0, set);
}

void nft_element(struct nft_batch *b, const struct nft_element *element)
{
	struct nlattr *nest = begin_nest(b, NFTA_LIST_ELEM);
	if (element->flags)
		put_u32(b, NFTA_SET_ELEM_FLAGS, element->flags);
	put_value(b, NFTA_SET_ELEM_KEY, element->key, element->key_bytes);
	if (element->key_end)
		put_value(b, NFTA_SET_ELEM_KEY_END, element->key_end, element->key_bytes);
	if (element->data)
		put_value(b, NFTA_SET_ELEM_DATA, element->data, MAP_DATA_BYTES);
	end_nest(b, nest);
}

void nft_elements_end(struct nft_batch *b)
{
	end_list(b);
}

/* The register that single matches use: no value in it must survive them. */
#define SCRATCH NFT_REG32_00

void nft_rule_begin(struct nft_batch *b, const char *chain)
{
	begin_object(b, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
	put_text(b, NFTA_RULE_CHAIN, chain);
	b->list = begin_nest(b, NFTA_RULE_EXPRESSIONS);
}

void nft_rule_end(struct nft_batch *b)
{
	end_list(b);
}

void nft_rule_end_with(struct nft_batch *b, int code, const char *chain)
{
	nft_verdict(b, code, chain);
	nft_rule_end(b);
}

void nft_add_verdict(struct nft_batch *b, const char *chain, int code, const char *to)
{
	nft_rule_begin(b, chain);
	nft_rule_end_with(b, code, to);
}

struct expression {
	struct nlattr *whole, *data;
};

static struct expression begin(struct nft_batch *b, const char *name)
{
	struct expression e = { .whole = begin_nest(b, NFTA_LIST_ELEM) };
	put_text(b, NFTA_EXPR_NAME, name);
	e.data = begin_nest(b, NFTA_EXPR_DATA);
	return e;
}

static void end(struct nft_batch *b, struct expression e)
{
	end_nest(b, e.data);
	end_nest(b, e.whole);
}

void nft_load_meta(struct nft_batch *b, enum nft_meta_keys key, uint32_t reg)
{
	struct expression e = begin(b, "meta");
	put_u32(b, NFTA_META_KEY, key);
	put_u32(b, NFTA_META_DREG, reg);
	end(b, e);
}

void nft_set_mark(struct nft_batch *b, uint32_t from_reg)
{
	struct expression e = begin(b, "meta");
	put_u32(b, NFTA_META_KEY, NFT_META_MARK);
	put_u32(b, NFTA_META_SREG, from_reg);
	end(b, e);
}

void nft_load_payload(struct nft_batch *b, enum nft_payload_bases base, uint32_t offset,
		      uint32_t bytes, uint32_t reg)
{
	struct expression e = begin(b, "payload");
	put_u32(b, NFTA_PAYLOAD_DREG, reg);
	put_u32(b, NFTA_PAYLOAD_BASE, base);
	put_u32(b, NFTA_PAYLOAD_OFFSET, offset);
	put_u32(b, NFTA_PAYLOAD_LEN, bytes);
	end(b, e);
}

void nft_load_value(struct nft_batch *b, const void *value, uint32_t bytes, uint32_t reg)
{
	struct expression e = begin(b, "immediate");
	put_u32(b, NFTA_IMMEDIATE_DREG, reg);
	put_value(b, NFTA_IMMEDIATE_DATA, value, bytes);
	end(b, e);
}

static void load_fib(struct nft_batch *b, enum nft_fib_result result, uint32_t flags)
{
	struct expression e = begin(b, "fib");
	put_u32(b, NFTA_FIB_DREG, SCRATCH);
	put_u32(b, NFTA_FIB_RESULT, result);
	put_u32(b, NFTA_FIB_FLAGS, flags);
	end(b, e);
}

void nft_load_address_type(struct nft_batch *b, enum nft_fib_flags which)
{
	load_fib(b, NFT_FIB_RESULT_ADDRTYPE, which);
}

void nft_match_reverse_path(struct nft_batch *b)
{
	const uint32_t no_link = 0;
	load_fib(b, NFT_FIB_RESULT_OIF, NFTA_FIB_F_SADDR | NFTA_FIB_F_IIF);
	nft_compare(b, NFT_CMP_NEQ, &no_link, sizeof(no_link));
}

void nft_compare(struct nft_batch *b, enum nft_cmp_ops op, const void *value, uint32_t bytes)
{
	struct expression e = begin(b, "cmp");
	put_u32(b, NFTA_CMP_SREG, SCRATCH);
	put_u32(b, NFTA_CMP_OP, op);
	put_value(b, NFTA_CMP_DATA, value, bytes);
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
	put_u32(b, NFTA_RANGE_SREG, SCRATCH);
	put_u32(b, NFTA_RANGE_OP, NFT_RANGE_EQ);
	put_value(b, NFTA_RANGE_FROM_DATA, first, bytes);
	put_value(b, NFTA_RANGE_TO_DATA, last, bytes);
	end(b, e);
}

static void mask(struct nft_batch *b, const void *bits, const void *none, uint32_t bytes)
{
	struct expression e = begin(b, "bitwise");
	put_u32(b, NFTA_BITWISE_SREG, SCRATCH);
	put_u32(b, NFTA_BITWISE_DREG, SCRATCH);
	put_u32(b, NFTA_BITWISE_LEN, bytes);
	put_value(b, NFTA_BITWISE_MASK, bits, bytes);
	put_value(b, NFTA_BITWISE_XOR, none, bytes);
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

static void load_ct(struct nft_batch *b, enum nft_ct_keys key)
{
	struct expression e = begin(b, "ct");
	put_u32(b, NFTA_CT_KEY, key);
	put_u32(b, NFTA_CT_DREG, SCRATCH);
	end(b, e);
}

void nft_match_ct_state(struct nft_batch *b, uint32_t states)
{
	const uint32_t none = 0;
	load_ct(b, NFT_CT_STATE);
	mask(b, &states, &none, sizeof(states));
	nft_compare(b, NFT_CMP_NEQ, &none, sizeof(none));
}

void nft_match_ct_reply(struct nft_batch *b)
{
	const uint8_t reply = IP_CT_DIR_REPLY;
	load_ct(b, NFT_CT_DIRECTION);
	nft_compare(b, NFT_CMP_EQ, &reply, sizeof(reply));
}

void nft_match_ct_redirected(struct nft_batch *b)
{
	const uint32_t bits = IPS_DST_NAT, none = 0;
	load_ct(b, NFT_CT_STATUS);
	mask(b, &bits, &none, sizeof(bits));
	nft_compare(b, NFT_CMP_NEQ, &none, sizeof(none));
}

static void look_up(struct nft_batch *b, const char *set, const uint32_t *to_reg)
{
	struct expression e = begin(b, "lookup");
	put_text(b, NFTA_LOOKUP_SET, set);
	put_u32(b, NFTA_LOOKUP_SREG, SCRATCH);
	if (to_reg)
		put_u32(b, NFTA_LOOKUP_DREG, *to_reg);
	end(b, e);
}

void nft_match_set(struct nft_batch *b, const char *set)
{
	look_up(b, set, NULL);
}

void nft_refresh(struct nft_batch *b, const char *set)
{
	struct expression e = begin(b, "dynset");
	put_text(b, NFTA_DYNSET_SET_NAME, set);
	put_u32(b, NFTA_DYNSET_OP, NFT_DYNSET_OP_UPDATE);
	put_u32(b, NFTA_DYNSET_SREG_KEY, SCRATCH);
	end(b, e);
}

void nft_lookup_map(struct nft_batch *b, const char *map, uint32_t to_reg)
{
	look_up(b, map, &to_reg);
}

void nft_match_rate(struct nft_batch *b, uint64_t packets_second, uint32_t burst, bool is_above)
{
	struct expression e = begin(b, "limit");
	put_number(b, NFTA_LIMIT_RATE, packets_second, 8);
	put_number(b, NFTA_LIMIT_UNIT, 1, 8);
	put_u32(b, NFTA_LIMIT_BURST, burst);
	put_u32(b, NFTA_LIMIT_TYPE, NFT_LIMIT_PKTS);
	put_u32(b, NFTA_LIMIT_FLAGS, is_above ? NFT_LIMIT_F_INV : 0);
	end(b, e);
}

void nft_match_connections_above(struct nft_batch *b, uint32_t count)
{
	struct expression e = begin(b, "connlimit");
	put_u32(b, NFTA_CONNLIMIT_COUNT, count);
	put_u32(b, NFTA_CONNLIMIT_FLAGS, NFT_CONNLIMIT_F_INV);
	end(b, e);
}

void nft_log(struct nft_batch *b, const struct nft_log *log)
{
	struct expression e = begin(b, "log");
	put_number(b, NFTA_LOG_GROUP, log->group, 2);
	put_text(b, NFTA_LOG_PREFIX, log->prefix);
	put_u32(b, NFTA_LOG_SNAPLEN, log->packet_bytes);
	/* send a message for each packet at once: the default collects for a second */
	put_number(b, NFTA_LOG_QTHRESHOLD, 1, 2);
	end(b, e);
}

void nft_reject(struct nft_batch *b, enum nft_reject_types type, uint8_t code)
{
	struct expression e = begin(b, "reject");
	put_u32(b, NFTA_REJECT_TYPE, type);
	put(b, NFTA_REJECT_ICMP_CODE, &code, sizeof(code));
	end(b, e);
}

void nft_masquerade(struct nft_batch *b)
{
	end(b, begin(b, "masq"));
}

void nft_redirect(struct nft_batch *b, uint16_t port)
{
	nft_load_value(b, &port, sizeof(port), SCRATCH);
	struct expression e = begin(b, "redir");
	put_u32(b, NFTA_REDIR_REG_PROTO_MIN, SCRATCH);
	end(b, e);
}

void nft_notrack(struct nft_batch *b)
{
	end(b, begin(b, "notrack"));
}

void nft_verdict(struct nft_batch *b, int code, const char *chain)
{
	struct expression e = begin(b, "immediate");
	put_u32(b, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	struct nlattr *data = begin_nest(b, NFTA_IMMEDIATE_DATA);
	struct nlattr *verdict = begin_nest(b, NFTA_DATA_VERDICT);
	put_u32(b, NFTA_VERDICT_CODE, (uint32_t)code);
	if (chain)
		put_text(b, NFTA_VERDICT_CHAIN, chain);
	end_nest(b, verdict);
	end_nest(b, data);
	end(b, e);
}
