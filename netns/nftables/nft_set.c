/* SPDX-License-Identifier: Apache-2.0 */
/* Sets and maps of a batch, and their elements.  Pure. */
#include "netns/nftables/nft.h"

#include <linux/netlink.h>

#include "netns/nftables/nft_write.h"

#define MAP_DATA_BYTES ((uint32_t)sizeof(uint32_t))
#define DATA_TYPE_MARK 19 /* nft(8)'s number of "mark" */

static void put_fields(struct nft_batch *b, const struct nft_set *set)
{
	struct nlattr *list = nft_nest_begin(b, NFTA_SET_DESC_CONCAT);
	for (size_t i = 0; i < sizeof(set->fields); i++) {
		struct nlattr *field = nft_nest_begin(b, NFTA_LIST_ELEM);
		nft_put_u32(b, NFTA_SET_FIELD_LEN, set->fields[i]);
		nft_nest_end(b, field);
	}
	nft_nest_end(b, list);
}

static void put_description(struct nft_batch *b, const struct nft_set *set)
{
	struct nlattr *description = nft_nest_begin(b, NFTA_SET_DESC);
	if (set->size)
		nft_put_u32(b, NFTA_SET_DESC_SIZE, set->size);
	if (set->flags & NFT_SET_CONCAT)
		put_fields(b, set);
	nft_nest_end(b, description);
}

static void put_counter(struct nft_batch *b)
{
	struct nlattr *expression = nft_nest_begin(b, NFTA_SET_EXPR);
	nft_put_text(b, NFTA_EXPR_NAME, "counter");
	nft_nest_end(b, nft_nest_begin(b, NFTA_EXPR_DATA));
	nft_nest_end(b, expression);
}

void nft_add_set(struct nft_batch *b, const struct nft_set *set)
{
	nft_message_begin(b, NFT_MSG_NEWSET, NLM_F_CREATE | NLM_F_EXCL);
	nft_put_text(b, NFTA_SET_NAME, set->name);
	/* the kernel wants an id that no other set of the batch has */
	nft_put_u32(b, NFTA_SET_ID, b->last_seq);
	nft_put_u32(b, NFTA_SET_FLAGS, set->flags | (set->has_data ? NFT_SET_MAP : 0));
	nft_put_u32(b, NFTA_SET_KEY_TYPE, set->key_type);
	nft_put_u32(b, NFTA_SET_KEY_LEN, set->key_bytes);
	if (set->has_data) {
		nft_put_u32(b, NFTA_SET_DATA_TYPE, DATA_TYPE_MARK);
		nft_put_u32(b, NFTA_SET_DATA_LEN, MAP_DATA_BYTES);
	}
	put_description(b, set);
	if (set->has_counters)
		put_counter(b);
	nft_message_end(b);
}

void nft_elements_begin(struct nft_batch *b, const char *set)
{
	/* no NLM_F_EXCL: the element may be there already */
	nft_message_begin(b, NFT_MSG_NEWSETELEM, NLM_F_CREATE);
	nft_put_text(b, NFTA_SET_ELEM_LIST_SET, set);
	b->list = nft_nest_begin(b, NFTA_SET_ELEM_LIST_ELEMENTS);
}

void nft_element(struct nft_batch *b, const struct nft_element *element)
{
	struct nlattr *nest = nft_nest_begin(b, NFTA_LIST_ELEM);
	if (element->flags)
		nft_put_u32(b, NFTA_SET_ELEM_FLAGS, element->flags);
	nft_put_value(b, NFTA_SET_ELEM_KEY, element->key, element->key_bytes);
	if (element->key_end)
		nft_put_value(b, NFTA_SET_ELEM_KEY_END, element->key_end, element->key_bytes);
	if (element->data)
		nft_put_value(b, NFTA_SET_ELEM_DATA, element->data, MAP_DATA_BYTES);
	nft_nest_end(b, nest);
}

void nft_elements_end(struct nft_batch *b)
{
	nft_nest_end(b, b->list);
	b->list = NULL;
	nft_message_end(b);
}
