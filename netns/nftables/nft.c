/* SPDX-License-Identifier: Apache-2.0 */
/* The transaction of a batch, its tables and chains, and the object of a message.  Pure. */
#include "netns/nftables/nft.h"

#include <assert.h>
#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "netns/nftables/nfnl.h"
#include "netns/nftables/nft_write.h"

struct nft_batch *nft_batch_create(void)
{
	struct nft_batch *b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->bytes = malloc(NFT_BATCH_MAX);
	b->message = nlmsg_alloc_size(NFT_BATCH_MAX);
	if (!b->bytes || !b->message)
		nft_batch_destroy(&b);
	return b;
}

void nft_batch_destroy(struct nft_batch **b)
{
	if (!*b)
		return;
	nlmsg_free((*b)->message);
	free((*b)->bytes);
	free(*b);
	*b = NULL;
}

/* --- the transaction --- */

void nft_batch_begin(struct nft_batch *b, const char *table)
{
	b->size = 0;
	b->error = 0;
	b->table = table;
	b->list = NULL;
	b->first_seq = b->last_seq + 1;
	nft_frame(b, NFNL_MSG_BATCH_BEGIN);
}

static struct nlmsghdr *find_message(const struct nft_batch *b, uint32_t seq)
{
	int left = (int)b->size;
	struct nlmsghdr *message = (struct nlmsghdr *)b->bytes;

	for (; nlmsg_ok(message, left); message = nlmsg_next(message, &left)) {
		if (message->nlmsg_seq == seq)
			return message;
	}
	return NULL;
}

int nft_batch_end(struct nft_batch *b)
{
	if (b->error)
		return -b->error;

	/* The end of a batch is acknowledged by Linux 6.10 and later only; the last object always,
	 * after the transaction is committed. */
	struct nlmsghdr *last = find_message(b, b->last_seq);
	assert(last); /* nft_batch_begin() wrote at least one */
	if (b->last_seq > b->first_seq)
		last->nlmsg_flags |= NLM_F_ACK;

	nft_frame(b, NFNL_MSG_BATCH_END);
	return -b->error;
}

/* --- the object of a message --- */

struct nft_kind {
	uint16_t type;
	const char *object;
	uint16_t name; /* attribute */
};

static const struct nft_kind nft_kinds[] = {
	{ NFT_MSG_NEWTABLE, "table", NFTA_TABLE_NAME },
	{ NFT_MSG_NEWCHAIN, "chain", NFTA_CHAIN_NAME },
	{ NFT_MSG_NEWSET, "set", NFTA_SET_NAME },
	{ NFT_MSG_NEWSETELEM, "elements of set", NFTA_SET_ELEM_LIST_SET },
	{ NFT_MSG_NEWRULE, "rule of chain", NFTA_RULE_CHAIN },
};

static const char *text_of(const struct nlmsghdr *message, uint16_t type)
{
	const struct nlattr *attr = nfnl_find(message, type);
	return attr ? nla_data(attr) : "";
}

static unsigned rule_number(const struct nft_batch *b, const struct nlmsghdr *rule)
{
	unsigned number = 1;
	int left = (int)b->size;
	const struct nlmsghdr *m = (const struct nlmsghdr *)b->bytes;

	for (; m != rule && nlmsg_ok(m, left); m = nfnl_next(m, &left)) {
		if (m->nlmsg_type == rule->nlmsg_type &&
		    strcmp(text_of(m, NFTA_RULE_CHAIN), text_of(rule, NFTA_RULE_CHAIN)) == 0)
			number++;
	}
	return number;
}

void nft_batch_describe(const struct nft_batch *b, uint32_t seq, char *out, size_t out_size)
{
	const struct nlmsghdr *message = find_message(b, seq);

	for (size_t i = 0; message && i < sizeof(nft_kinds) / sizeof(nft_kinds[0]); i++) {
		const struct nft_kind *kind = &nft_kinds[i];
		if (message->nlmsg_type != ((NFNL_SUBSYS_NFTABLES << 8) | kind->type))
			continue;
		if (kind->type == NFT_MSG_NEWRULE)
			(void)snprintf(out, out_size, "rule %u of chain '%s'",
				       rule_number(b, message), text_of(message, kind->name));
		else
			(void)snprintf(out, out_size, "%s '%s'", kind->object,
				       text_of(message, kind->name));
		return;
	}
	(void)snprintf(out, out_size, "the transaction");
}

/* --- tables and chains --- */

void nft_add_table(struct nft_batch *b, uint32_t flags)
{
	nft_message_begin(b, NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_EXCL);
	nft_put_u32(b, NFTA_TABLE_FLAGS, flags);
	nft_message_end(b);
}

void nft_ensure_table(struct nft_batch *b)
{
	nft_message_begin(b, NFT_MSG_NEWTABLE, NLM_F_CREATE);
	nft_message_end(b);
}

void nft_delete_table(struct nft_batch *b)
{
	nft_message_begin(b, NFT_MSG_DELTABLE, 0);
	nft_message_end(b);
}

void nft_add_chain(struct nft_batch *b, const char *name)
{
	nft_message_begin(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE | NLM_F_EXCL);
	nft_put_text(b, NFTA_CHAIN_NAME, name);
	nft_message_end(b);
}

void nft_add_base_chain(struct nft_batch *b, const struct nft_hook *hook)
{
	nft_message_begin(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE | NLM_F_EXCL);
	nft_put_text(b, NFTA_CHAIN_NAME, hook->name);
	nft_put_text(b, NFTA_CHAIN_TYPE, hook->type);
	nft_put_u32(b, NFTA_CHAIN_POLICY, (uint32_t)hook->policy);

	struct nlattr *nest = nft_nest_begin(b, NFTA_CHAIN_HOOK);
	nft_put_u32(b, NFTA_HOOK_HOOKNUM, (uint32_t)hook->hook);
	nft_put_u32(b, NFTA_HOOK_PRIORITY, (uint32_t)hook->priority);
	nft_nest_end(b, nest);
	nft_message_end(b);
}
