/* SPDX-License-Identifier: Apache-2.0 */
/* Messages and attributes of a batch.  Pure. */
#include "netns/nftables/nft_write.h"

#include <netinet/in.h> /* before linux/: they agree in this order only */

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <string.h>

#include "netns/nftables/nfnl.h"

/* Attribute 1 names the table in every object's message, attribute 2 the chain of a rule and the
 * set of elements. */
#define ATTR_TABLE 1
static_assert(NFTA_TABLE_NAME == ATTR_TABLE && NFTA_CHAIN_TABLE == ATTR_TABLE &&
		  NFTA_RULE_TABLE == ATTR_TABLE && NFTA_SET_TABLE == ATTR_TABLE &&
		  NFTA_SET_ELEM_LIST_TABLE == ATTR_TABLE,
	      "the table's name is attribute 1 of every object");

static void message_begin(struct nft_batch *b, struct nfnl_head head)
{
	if (b->error)
		return;
	head.seq = ++b->last_seq;
	if (nfnl_begin(b->message, &head) < 0)
		b->error = ENOBUFS;
}

void nft_message_begin(struct nft_batch *b, uint8_t message, uint16_t flags)
{
	message_begin(b, (struct nfnl_head){ .subsystem = NFNL_SUBSYS_NFTABLES,
					     .message = message,
					     .flags = flags,
					     .family = NFPROTO_INET });
	nft_put_text(b, ATTR_TABLE, b->table);
}

void nft_message_end(struct nft_batch *b)
{
	if (b->error)
		return;
	const struct nlmsghdr *message = nlmsg_hdr(b->message);
	const size_t size = NLMSG_ALIGN(message->nlmsg_len);
	if (size > NFT_BATCH_MAX - b->size) {
		b->error = ENOBUFS;
		return;
	}
	memcpy(b->bytes + b->size, message, message->nlmsg_len);
	b->size += size;
}

void nft_put(struct nft_batch *b, uint16_t type, const void *bytes, size_t size)
{
	if (!b->error && nla_put(b->message, type, (int)size, bytes) < 0)
		b->error = ENOBUFS;
}

void nft_put_text(struct nft_batch *b, uint16_t type, const char *text)
{
	nft_put(b, type, text, strlen(text) + 1);
}

void nft_put_u16(struct nft_batch *b, uint16_t type, uint16_t value)
{
	uint16_t big = htobe16(value);
	nft_put(b, type, &big, sizeof(big));
}

void nft_put_u32(struct nft_batch *b, uint16_t type, uint32_t value)
{
	uint32_t big = htobe32(value);
	nft_put(b, type, &big, sizeof(big));
}

void nft_put_u64(struct nft_batch *b, uint16_t type, uint64_t value)
{
	uint64_t big = htobe64(value);
	nft_put(b, type, &big, sizeof(big));
}

void nft_put_value(struct nft_batch *b, uint16_t type, const void *bytes, size_t size)
{
	struct nlattr *nest = nft_nest_begin(b, type);
	nft_put(b, NFTA_DATA_VALUE, bytes, size);
	nft_nest_end(b, nest);
}

struct nlattr *nft_nest_begin(struct nft_batch *b, uint16_t type)
{
	if (b->error)
		return NULL;
	struct nlattr *nest = nla_nest_start(b->message, type);
	if (!nest)
		b->error = ENOBUFS;
	return nest;
}

void nft_nest_end(struct nft_batch *b, struct nlattr *nest)
{
	/* it fails if the list is longer than the 16 bits of an attribute's length say */
	if (!b->error && nest && nla_nest_end_keep_empty(b->message, nest) < 0)
		b->error = ENOBUFS;
}

void nft_frame(struct nft_batch *b, uint8_t message)
{
	message_begin(b, (struct nfnl_head){ .message = message,
					     .family = AF_UNSPEC,
					     .resource = NFNL_SUBSYS_NFTABLES });
	nft_message_end(b);
}
