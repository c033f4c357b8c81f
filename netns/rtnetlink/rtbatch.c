/* SPDX-License-Identifier: Apache-2.0 */
/* Sends requests and reads their answers.  Acts. */
#include "netns/rtnetlink/rtbatch.h"

#include <netlink/attr.h>
#include <netlink/msg.h>
#include <linux/rtnetlink.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "netns/nftables/nfnl.h"
#include "runtime/base/clock.h"

#define ANSWER_MAX 8192 /* an RTM_NEWLINK is 2 KB; an error repeats its request */

void rtbatch_add(struct rtbatch *b, struct nl_msg *msg, const char *fmt, ...)
{
	if (!msg || b->count == RTBATCH_MESSAGES_MAX) {
		b->failed = msg ? ENOBUFS : ENOMEM;
		nlmsg_free(msg);
		return;
	}
	const struct nlmsghdr *header = nlmsg_hdr(msg);
	size_t size = NLMSG_ALIGN(header->nlmsg_len);
	if (size > RTBATCH_BYTES_MAX - b->size) {
		b->failed = ENOBUFS;
		nlmsg_free(msg);
		return;
	}
	memcpy(b->bytes + b->size, header, header->nlmsg_len);
	nlmsg_free(msg);
	b->at[b->count] = b->size;
	b->size += size;

	va_list args;
	va_start(args, fmt);
	(void)vsnprintf(b->what[b->count], RTBATCH_WHAT_MAX, fmt, args); /* may be cut */
	va_end(args);
	b->count++;
}

void rtbatch_tolerate(struct rtbatch *b, int code)
{
	if (!b->failed)
		b->tolerated[b->count - 1] = code;
}

static struct nlmsghdr *message_at(const struct rtbatch *b, size_t i)
{
	return (struct nlmsghdr *)(void *)(b->bytes + b->at[i]);
}

static bool asks_for_link(const struct rtbatch *b, size_t i)
{
	return message_at(b, i)->nlmsg_type == RTM_GETLINK;
}

/* Sequence numbers start with the time, so answers that an earlier, interrupted exchange left in
 * the socket do not match. */
static uint32_t number_messages(struct rtbatch *b)
{
	uint32_t first = (uint32_t)clock_us();

	for (size_t i = 0; i < b->count; i++) {
		struct nlmsghdr *header = message_at(b, i);
		header->nlmsg_flags |= NLM_F_REQUEST;
		header->nlmsg_seq = first + (uint32_t)i;
		header->nlmsg_pid = 0;
	}
	if (!asks_for_link(b, b->count - 1))
		message_at(b, b->count - 1)->nlmsg_flags |= NLM_F_ACK;
	return first;
}

/* 0: there is none. */
static uint8_t read_byte(struct nlmsghdr *header, int attribute)
{
	const struct nlattr *a = nlmsg_find_attr(header, sizeof(struct ifinfomsg), attribute);
	return a && nla_len(a) >= 1 ? nla_get_u8(a) : 0;
}

static int read_link(struct nlmsghdr *header, struct rtbatch_link *out)
{
	if (header->nlmsg_type != RTM_NEWLINK || !nlmsg_valid_hdr(header, sizeof(struct ifinfomsg)))
		return EBADMSG;
	const struct ifinfomsg *info = nlmsg_data(header);
	*out = (struct rtbatch_link){
		.index = info->ifi_index,
		.operstate = read_byte(header, IFLA_OPERSTATE),
		.has_carrier = read_byte(header, IFLA_CARRIER) != 0,
	};
	return 0;
}

struct answer {
	uint32_t first;
	bool is_last;
	int code; /* of the first failure */
	size_t failed_at;
	struct rtbatch_link link;
};

/* 0: acknowledged; else a positive errno, EBADMSG for a malformed answer. */
static int read_error(const struct nlmsghdr *header)
{
	return header->nlmsg_type == NLMSG_ERROR ? nfnl_error(header) : EBADMSG;
}

static bool is_refusal(struct nlmsghdr *header)
{
	return header->nlmsg_type == NLMSG_ERROR && read_error(header) != 0;
}

static void read_answer(const struct rtbatch *b, struct nlmsghdr *header, struct answer *a)
{
	size_t i = header->nlmsg_seq - a->first;
	if (i >= b->count)
		return;
	int code = asks_for_link(b, i) && !is_refusal(header) ? read_link(header, &a->link)
							      : read_error(header);
	if (code != 0 && code != b->tolerated[i] && a->code == 0) {
		a->code = code;
		a->failed_at = i;
	}
	a->is_last = a->is_last || i == b->count - 1;
}

static int read_answers(int route_fd, const struct rtbatch *b, struct answer *a)
{
	_Alignas(4) uint8_t bytes[ANSWER_MAX];

	while (!a->is_last) {
		ssize_t size = recv(route_fd, bytes, sizeof(bytes), 0);
		if (size < 0 && errno == EINTR)
			continue;
		if (size <= 0)
			return size < 0 ? errno : EPROTO;
		int left = (int)size;
		for (struct nlmsghdr *at = (void *)bytes; nlmsg_ok(at, left);
		     at = nlmsg_next(at, &left))
			read_answer(b, at, a);
	}
	return 0;
}

int rtbatch_send(int route_fd, struct rtbatch *b, struct rtbatch_link *out_link,
		 struct cj_error *err)
{
	if (b->failed)
		return cj_fail(err, b->failed, "build a netlink request");
	struct answer a = { .first = number_messages(b) };
	const char *last = b->what[b->count - 1];

	ssize_t sent;
	do
		sent = send(route_fd, b->bytes, b->size, 0);
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return cj_fail(err, errno, "%s: send to netlink", last);

	int code = read_answers(route_fd, b, &a);
	if (code != 0)
		return cj_fail(err, code, "%s: receive from netlink", last);
	if (a.code != 0)
		return cj_fail(err, a.code, "%s", b->what[a.failed_at]);
	if (out_link)
		*out_link = a.link;
	return 0;
}
