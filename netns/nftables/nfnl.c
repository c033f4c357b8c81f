/* SPDX-License-Identifier: Apache-2.0 */
/* The two headers of a message, and checks of lengths.  Pure. */
#include "netns/nftables/nfnl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nfnetlink.h>

int nfnl_begin(struct nl_msg *message, const struct nfnl_head *head)
{
	nlmsg_hdr(message)->nlmsg_len = NLMSG_HDRLEN; /* forgets what was in it */
	struct nfgenmsg about = {
		.nfgen_family = head->family,
		.version = NFNETLINK_V0,
		.res_id = htons(head->resource),
	};
	const int type = head->subsystem << 8 | head->message, flags = NLM_F_REQUEST | head->flags;
	if (!nlmsg_put(message, 0, head->seq, type, 0, flags) ||
	    nlmsg_append(message, &about, sizeof(about), NLMSG_ALIGNTO) < 0)
		return -ENOBUFS;
	return 0;
}

struct nl_msg *nfnl_create(const struct nfnl_head *head)
{
	struct nl_msg *message = nlmsg_alloc();
	if (message && nfnl_begin(message, head) < 0)
		nfnl_free(&message);
	return message;
}

void nfnl_free(struct nl_msg **message)
{
	nlmsg_free(*message);
	*message = NULL;
}

struct nlattr *nfnl_find(const struct nlmsghdr *message, int type)
{
	const int size = sizeof(struct nfgenmsg);
	return nla_find(nlmsg_attrdata(message, size), nlmsg_attrlen(message, size), type);
}

/* Errors of the kernel's are errno values, no number else: MAX_ERRNO in linux/err.h. */
int nfnl_error(const struct nlmsghdr *answer)
{
	const int max_errno = 4095;
	const struct nlmsgerr *report = nlmsg_data(answer);
	if (nlmsg_datalen(answer) < (int)sizeof(*report) || report->error > 0 ||
	    report->error < -max_errno)
		return EBADMSG;
	return -report->error;
}

/* With the padding: libnl looks for attributes in it, too. */
bool nfnl_is_message(const struct nlmsghdr *at, int left)
{
	return left >= NLMSG_HDRLEN && at->nlmsg_len >= NLMSG_HDRLEN &&
	       at->nlmsg_len <= (uint32_t)left && NLMSG_ALIGN(at->nlmsg_len) <= (uint32_t)left;
}

const struct nlmsghdr *nfnl_next(const struct nlmsghdr *at, int *left)
{
	const uint32_t size = NLMSG_ALIGN(at->nlmsg_len);
	*left -= (int)size;
	return (const void *)((const char *)at + size);
}
