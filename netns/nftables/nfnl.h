/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nfnl - netlink sockets, and headers and checks of netfilter's messages.
 *
 * Follows: netlink(7), linux/netfilter/nfnetlink.h.
 */
#pragma once

#include <netlink/attr.h>
#include <netlink/msg.h>

#include "runtime/base/error.h"

/* A socket of NETLINK_NETFILTER or NETLINK_ROUTE, in the caller's network namespace. */
int nfnl_socket(int protocol, struct cj_error *err);

/* Sends whole messages to the kernel.  0 or -errno. */
int nfnl_send(int fd, const void *bytes, size_t size);

/*
 * nfnl_receive - the next datagram of the kernel; those of other senders are dropped.
 *
 * With MSG_DONTWAIT in `flags` it never waits.  Returns the size; -EAGAIN when there is none, or
 * after many of other senders; -EMSGSIZE when it does not fit; else -errno.
 */
ssize_t nfnl_receive(int fd, void *bytes, size_t size, int flags);

struct nfnl_head {
	uint8_t subsystem, message; /* NFNL_SUBSYS_*, NFT_MSG_* or NFULNL_MSG_* */
	uint16_t flags;             /* NLM_F_REQUEST is added */
	uint32_t seq;
	uint8_t family;    /* NFPROTO_*, AF_UNSPEC */
	uint16_t resource; /* the subsystem's number for an object, or 0 */
};

/* A message of one page with the two headers; attributes follow.  NULL: no memory. */
struct nl_msg *nfnl_create(const struct nfnl_head *head);
void nfnl_free(struct nl_msg **message);
#define auto_nl_msg __attribute__((cleanup(nfnl_free))) struct nl_msg

/* Begins a new message in the memory of an old one.  Returns 0 or -ENOBUFS. */
int nfnl_begin(struct nl_msg *message, const struct nfnl_head *head);

/*
 * Whether there is a whole message in the `left` bytes at `at`, with its padding.  Use it instead
 * of nlmsg_ok(), which accepts a message whose padding is missing.
 */
bool nfnl_is_message(const struct nlmsghdr *at, int left);
/* The message behind it: nlmsg_next() drops the const. */
const struct nlmsghdr *nfnl_next(const struct nlmsghdr *at, int *left);
/* Its first attribute of this type, or NULL.  Only for a message that has both headers. */
struct nlattr *nfnl_find(const struct nlmsghdr *message, int type);

/*
 * The errno in an answer of type NLMSG_ERROR, of any netlink family.  0: an acknowledgement;
 * EBADMSG: the answer is malformed.
 */
int nfnl_error(const struct nlmsghdr *answer);
