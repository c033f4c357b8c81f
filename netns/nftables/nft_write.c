/* SPDX-License-Identifier: Apache-2.0 */
/* Messages and attributes of a batch.  Pure. */
#include "netns/nftables/nft_write.h"

#include <netinet/in.h> /* before linux/: they agree in this order only */

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <libmnl/libmnl.h>
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

static size_t room(const struct nft_batch *b)
{
	return NFT_BATCH_MAX - b->size;
}

static void message_begin(struct nft_batch *b, struct nfnl_head head)
{
	if (b->error)
		return;
	if (room(b) < MNL_NLMSG_HDRLEN + MNL_ALIGN(sizeof(struct nfgenmsg))) {
		b->error = ENOBUFS;
		return;
	}

	head.seq = ++b->last_seq;
	b->message = nfnl_put_header(b->bytes + b->size, &head);
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
	if (b->error || !b->message)
		return;
	b->size += MNL_ALIGN(b->message->nlmsg_len);
	b->message = NULL;
}

void nft_put(struct nft_batch *b, uint16_t type, const void *bytes, size_t size)
{
	if (b->error)
		return;

	uint8_t *attr = mnl_nlmsg_get_payload_tail(b->message);
	if (!mnl_attr_put_check(b->message, room(b), type, size, bytes)) {
		b->error = ENOBUFS;
		return;
	}
	/* libmnl does not clear the padding to four bytes */
	memset(attr + MNL_ATTR_HDRLEN + size, 0, MNL_ALIGN(size) - size);
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
	struct nlattr *nest = mnl_attr_nest_start_check(b->message, room(b), type);
	if (!nest)
		b->error = ENOBUFS;
	return nest;
}

void nft_nest_end(struct nft_batch *b, struct nlattr *nest)
{
	if (b->error || !nest)
		return;
	/* an attribute's length has 16 bits, which libmnl does not check */
	size_t size = (size_t)((uint8_t *)mnl_nlmsg_get_payload_tail(b->message) - (uint8_t *)nest);
	if (size > UINT16_MAX)
		b->error = ENOBUFS;
	else
		mnl_attr_nest_end(b->message, nest);
}

void nft_frame(struct nft_batch *b, uint8_t message)
{
	message_begin(b, (struct nfnl_head){ .message = message,
					     .family = AF_UNSPEC,
					     .resource = NFNL_SUBSYS_NFTABLES });
	nft_message_end(b);
}
