/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nfnl - headers and checks of netfilter's netlink messages.  Pure.
 *
 * Follows: netlink(7), linux/netfilter/nfnetlink.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct nlmsghdr;

struct nfnl_head {
	uint8_t subsystem, message; /* NFNL_SUBSYS_*, NFT_MSG_* or NFULNL_MSG_* */
	uint16_t flags;             /* NLM_F_REQUEST is added */
	uint32_t seq;
	uint8_t family;    /* NFPROTO_*, AF_UNSPEC */
	uint16_t resource; /* the subsystem's number for an object, or 0 */
};

/* Begins a message in `buffer`; attributes follow.  Only the headers are zeroed. */
struct nlmsghdr *nfnl_put_header(void *buffer, const struct nfnl_head *head);

/*
 * Is there a whole message in the `left` bytes at `at`, with its padding?  Use it instead of
 * mnl_nlmsg_ok(), which accepts a length of 2^31 and more, because it is negative there.
 */
bool nfnl_is_message(const struct nlmsghdr *at, int left);

/*
 * The errno in an answer of type NLMSG_ERROR, of any netlink family.  0: an acknowledgement;
 * EBADMSG: the answer is malformed.
 */
int nfnl_error(const struct nlmsghdr *answer);
