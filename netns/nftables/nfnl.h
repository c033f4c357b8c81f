/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nfnl - the frame of netfilter's netlink messages, both ways.  Pure.
 *
 * Follows: netlink(7), linux/netfilter/nfnetlink.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct nlmsghdr;

struct nfnl_head {
	uint8_t subsystem, message; /* NFNL_SUBSYS_*, NFT_MSG_* or NFULNL_MSG_* */
	uint16_t flags;             /* NLM_F_REQUEST is always among them */
	uint32_t seq;
	uint8_t family;    /* NFPROTO_*, AF_UNSPEC */
	uint16_t resource; /* what is asked for, where the subsystem has a number for it */
};

/* Begins a message in `buffer`; attributes follow.  Zeroes no more than the headers. */
struct nlmsghdr *nfnl_put_header(void *buffer, const struct nfnl_head *head);

/*
 * Is there a whole message in the `left` bytes at `at`, its padding included?  Asked instead of
 * mnl_nlmsg_ok(), which takes a length of 2^31 and more for a negative one that fits everywhere.
 */
bool nfnl_is_message(const struct nlmsghdr *at, int left);

/*
 * What an answer of type NLMSG_ERROR says, which every netlink family lays out alike: 0, an
 * acknowledgement; a positive errno, EBADMSG for what can't be one.
 */
int nfnl_error(const struct nlmsghdr *answer);
