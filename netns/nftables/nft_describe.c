/* SPDX-License-Identifier: Apache-2.0 */
/* What a message of a batch is about, for errors: the kernel answers with its number only. */
#include "netns/nftables/nft.h"

#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>

static const struct nft_kind {
	uint16_t type;
	const char *object;
	uint16_t name; /* attribute */
} nft_kinds[] = {
	{ NFT_MSG_NEWTABLE, "table", NFTA_TABLE_NAME },
	{ NFT_MSG_NEWCHAIN, "chain", NFTA_CHAIN_NAME },
	{ NFT_MSG_NEWSET, "set", NFTA_SET_NAME },
	{ NFT_MSG_NEWSETELEM, "elements of set", NFTA_SET_ELEM_LIST_SET },
	{ NFT_MSG_DELSETELEM, "elements of set", NFTA_SET_ELEM_LIST_SET },
	{ NFT_MSG_NEWRULE, "rule of chain", NFTA_RULE_CHAIN },
	{ NFT_MSG_DELRULE, "the rules of chain", NFTA_RULE_CHAIN },
	{ NFT_MSG_DELSET, "set", NFTA_SET_NAME },
};

struct nft_text {
	uint16_t type;
	const char *text;
};

static int take_text(const struct nlattr *attribute, void *data)
{
	struct nft_text *out = data;
	if (mnl_attr_get_type(attribute) == out->type)
		out->text = mnl_attr_get_str(attribute);
	return MNL_CB_OK;
}

static const char *text_of(const struct nlmsghdr *message, uint16_t type)
{
	struct nft_text found = { type, "" };
	(void)mnl_attr_parse(message, sizeof(struct nfgenmsg), take_text, &found);
	return found.text;
}

static unsigned rule_number(const struct nft_batch *b, const struct nlmsghdr *rule)
{
	unsigned number = 1;
	int left = (int)b->size;
	const struct nlmsghdr *m = (const struct nlmsghdr *)b->bytes;

	for (; m != rule && mnl_nlmsg_ok(m, left); m = mnl_nlmsg_next(m, &left)) {
		if (m->nlmsg_type == rule->nlmsg_type &&
		    strcmp(text_of(m, NFTA_RULE_CHAIN), text_of(rule, NFTA_RULE_CHAIN)) == 0)
			number++;
	}
	return number;
}

void nft_batch_describe(const struct nft_batch *b, uint32_t seq, char *out, size_t out_size)
{
	int left = (int)b->size;
	const struct nlmsghdr *message = (const struct nlmsghdr *)b->bytes;

	while (mnl_nlmsg_ok(message, left) && message->nlmsg_seq != seq)
		message = mnl_nlmsg_next(message, &left);
	for (size_t i = 0; left > 0 && i < COUNT_OF(nft_kinds); i++) {
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
