/* SPDX-License-Identifier: Apache-2.0 */
#include "netns/nftables/nfnl.h"

#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define SKIPPED_MAX 256 /* datagrams of other senders that one call drops */

int nfnl_socket(int protocol, struct cj_error *err)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	if (fd < 0)
		return cj_fail(err, errno, "open a %s socket",
			       protocol == NETLINK_ROUTE ? "NETLINK_ROUTE" : "NETLINK_NETFILTER");
	return fd;
}

int nfnl_send(int fd, const void *bytes, size_t size)
{
	static const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	ssize_t sent = TEMP_FAILURE_RETRY(
	    sendto(fd, bytes, size, 0, (const struct sockaddr *)&kernel, sizeof(kernel)));
	return sent < 0 ? -errno : 0;
}

ssize_t nfnl_receive(int fd, void *bytes, size_t size, int flags)
{
	for (unsigned i = 0; i < SKIPPED_MAX;) {
		struct sockaddr_nl from = { 0 };
		struct iovec part = { bytes, size };
		struct msghdr header = { .msg_name = &from,
					 .msg_namelen = sizeof(from),
					 .msg_iov = &part,
					 .msg_iovlen = 1 };
		ssize_t got = recvmsg(fd, &header, flags);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (header.msg_flags & MSG_TRUNC)
			return -EMSGSIZE;
		if (header.msg_namelen == sizeof(from) && from.nl_pid == 0 && got > 0)
			return got;
		i++;
	}
	return -EAGAIN;
}

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
