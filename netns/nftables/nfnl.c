/* SPDX-License-Identifier: Apache-2.0 */
/* The two headers of a message, and checks of lengths.  Pure. */
#include "netns/nftables/nfnl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>

struct nlmsghdr *nfnl_put_header(void *buffer, const struct nfnl_head *head)
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
	message->nlmsg_type = (uint16_t)(head->subsystem << 8 | head->message);
	message->nlmsg_flags = NLM_F_REQUEST | head->flags;
	message->nlmsg_seq = head->seq;

	struct nfgenmsg *about = mnl_nlmsg_put_extra_header(message, sizeof(*about));
	about->nfgen_family = head->family;
	about->version = NFNETLINK_V0;
	about->res_id = htons(head->resource);
	return message;
}

/* Errors of the kernel's are errno values, no number else: MAX_ERRNO in linux/err.h. */
int nfnl_error(const struct nlmsghdr *answer)
{
	const int max_errno = 4095;
	const struct nlmsgerr *report = mnl_nlmsg_get_payload(answer);
	if (mnl_nlmsg_get_payload_len(answer) < sizeof(*report) || report->error > 0 ||
	    report->error < -max_errno)
		return EBADMSG;
	return -report->error;
}

/* With the padding: libmnl looks for attributes in it, too. */
bool nfnl_is_message(const struct nlmsghdr *at, int left)
{
	return mnl_nlmsg_ok(at, left) && at->nlmsg_len <= (uint32_t)left &&
	       MNL_ALIGN(at->nlmsg_len) <= (uint32_t)left;
}
