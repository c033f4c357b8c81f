/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every list is read through a socket of its own, so that changes and list do not share a buffer.
 * Changes before the list began are in the list, later ones in the subscription.
 */
#include "netns/rtnetlink/hostaddrs.h"

#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <sys/socket.h>

#include "netns/nftables/nfnl.h"
#include "runtime/base/scope.h"

#define LIST_TRIES 16 /* of a list that changes while it is read */
#define READS_MAX  64 /* at a time; the descriptor stays readable for the rest */

struct hostaddrs {
	int changes_fd;
	struct hostaddrs_set set;
	_Alignas(4) char bytes[HOSTADDRS_ANSWER_BYTES];
};

/* Not the addresses that are closed anyway: see the header. */
static bool is_kept(const struct ip *ip)
{
	static const struct ip_net others[] = {
		{ { .family = 4, .bytes = { 127 } }, 8 },
		{ { .family = 6, .bytes = { [15] = 1 } }, 128 },
		{ { .family = 6, .bytes = { 0xfe, 0x80 } }, 10 },
	};
	static const struct ip none4 = { .family = 4 }, none6 = { .family = 6 };

	for (size_t i = 0; i < COUNT_OF(others); i++) {
		if (ip_net_has(&others[i], ip))
			return false;
	}
	return !ip_equal(ip, &none4) && !ip_equal(ip, &none6);
}

static bool keep(struct hostaddrs_set *set, const struct ip *ip)
{
	if (!is_kept(ip))
		return true;
	for (size_t i = 0; i < set->count; i++) {
		if (ip_equal(&set->items[i], ip))
			return true;
	}
	if (set->count == HOSTADDRS_MAX)
		return false;
	set->items[set->count++] = *ip;
	return true;
}

/* The network's first and last address, if it has more than two. */
static bool keep_ends(struct hostaddrs_set *set, const struct ip *ip, uint8_t bits)
{
	size_t all_bits = 8 * ip_size(ip);
	if (bits == 0 || (size_t)bits + 2 > all_bits)
		return true;

	struct ip_net net = { .ip = *ip, .bits = bits };
	for (size_t bit = bits; bit < all_bits; bit++)
		net.ip.bytes[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
	if (!keep(set, &net.ip))
		return false;
	struct ip last = ip_net_last(&net);
	return ip->family == 6 || keep(set, &last); /* IPv6 has no broadcast */
}

static bool keep_message(struct hostaddrs_set *set, const struct nlmsghdr *header)
{
	const struct ifaddrmsg *about = nlmsg_data(header);
	struct ip ip = { .family = about->ifa_family == AF_INET ? 4 : 6 };
	if (about->ifa_family != AF_INET && about->ifa_family != AF_INET6)
		return true;

	int left;
	const struct nlattr *attr;
	nlmsg_for_each_attr(attr, header, (int)sizeof(*about), left)
	{
		int type = nla_type(attr);
		if ((type != IFA_LOCAL && type != IFA_ADDRESS && type != IFA_BROADCAST &&
		     type != IFA_ANYCAST) ||
		    (size_t)nla_len(attr) != ip_size(&ip))
			continue;
		memcpy(ip.bytes, nla_data(attr), ip_size(&ip));
		if (!keep(set, &ip))
			return false;
		/* the prefix belongs to IFA_ADDRESS: on a point-to-point link, the peer's */
		if (type == IFA_ADDRESS && !keep_ends(set, &ip, about->ifa_prefixlen))
			return false;
	}
	return true;
}

enum hostaddrs_read hostaddrs_read(struct hostaddrs_set *set, const void *bytes, size_t size)
{
	int left = (int)size;
	const struct nlmsghdr *at = bytes;

	while (nlmsg_ok(at, left)) {
		if (at->nlmsg_flags & NLM_F_DUMP_INTR)
			return HOSTADDRS_GAP;
		if (at->nlmsg_type == NLMSG_DONE)
			return HOSTADDRS_END;
		if (at->nlmsg_type == NLMSG_ERROR || at->nlmsg_type == NLMSG_OVERRUN)
			return HOSTADDRS_GAP;
		if (at->nlmsg_type == RTM_NEWADDR &&
		    nlmsg_valid_hdr(at, sizeof(struct ifaddrmsg)) && !keep_message(set, at))
			return HOSTADDRS_FULL;
		at = nlmsg_next((struct nlmsghdr *)at, &left);
	}
	return left > 0 ? HOSTADDRS_GAP : HOSTADDRS_MORE;
}

int hostaddrs_ask(int route_fd)
{
	const struct {
		struct nlmsghdr header;
		struct ifaddrmsg about;
	} request = {
		.header = { .nlmsg_len = sizeof(request),
			    .nlmsg_type = RTM_GETADDR,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.about = { .ifa_family = AF_UNSPEC },
	};
	return nfnl_send(route_fd, &request, sizeof(request));
}

static int fail_full(struct cj_error *err)
{
	cj_refuse_as(err, E2BIG, "this host has more than %d addresses to close", HOSTADDRS_MAX);
	return cj_hint(err, "run cejail in a network namespace with fewer interfaces, or with "
			    "--network none");
}

/* 0: complete; 1: the list changed meanwhile. */
static int list_once(struct hostaddrs *h, struct cj_error *err)
{
	auto_fd int fd = nfnl_socket(NETLINK_ROUTE, err);
	if (fd < 0)
		return fd;
	int rc = hostaddrs_ask(fd);
	if (rc < 0)
		return cj_fail(err, -rc, "ask for the addresses of this host");

	enum hostaddrs_read got = HOSTADDRS_MORE;
	while (got == HOSTADDRS_MORE) {
		ssize_t size = nfnl_receive(fd, h->bytes, sizeof(h->bytes), 0);
		if (size < 0)
			return cj_fail(err, (int)-size, "read the addresses of this host");
		got = hostaddrs_read(&h->set, h->bytes, (size_t)size);
	}
	if (got == HOSTADDRS_FULL)
		return fail_full(err);
	return got == HOSTADDRS_END ? 0 : 1;
}

static int list(struct hostaddrs *h, struct cj_error *err)
{
	for (int i = 0; i < LIST_TRIES; i++) {
		int rc = list_once(h, err);
		if (rc <= 0)
			return rc;
	}
	return cj_fail(err, EAGAIN, "read the addresses of this host: they keep changing");
}

static int subscribe(int fd, struct cj_error *err)
{
	const struct sockaddr_nl name = { .nl_family = AF_NETLINK,
					  .nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR };
	if (bind(fd, (const struct sockaddr *)&name, sizeof(name)) < 0)
		return cj_fail(err, errno, "subscribe to the addresses of this host");
	return 0;
}

int hostaddrs_open(struct hostaddrs **out, struct cj_error *err)
{
	struct hostaddrs *h = malloc(sizeof(*h));
	if (!h)
		return cj_fail(err, ENOMEM, "list the addresses of this host");
	h->set.count = 0;
	h->changes_fd = nfnl_socket(NETLINK_ROUTE, err);
	int rc = h->changes_fd < 0 ? h->changes_fd : subscribe(h->changes_fd, err);
	if (rc == 0)
		rc = list(h, err);
	if (rc < 0) {
		hostaddrs_close(&h);
		return rc;
	}
	*out = h;
	return 0;
}

void hostaddrs_close(struct hostaddrs **h)
{
	if (*h)
		cj_close(&(*h)->changes_fd);
	cj_free(h);
}

int hostaddrs_fd(const struct hostaddrs *h)
{
	return h->changes_fd;
}

const struct ip *hostaddrs_list(const struct hostaddrs *h, size_t *out_count)
{
	*out_count = h->set.count;
	return h->set.items;
}

/* 0: read; 1: messages were lost. */
static int receive_changes(struct hostaddrs *h, struct cj_error *err)
{
	bool has_gap = false;

	for (int i = 0; i < READS_MAX; i++) {
		ssize_t size =
		    nfnl_receive(h->changes_fd, h->bytes, sizeof(h->bytes), MSG_DONTWAIT);
		if (size == -EAGAIN)
			break;
		if (size < 0 && size != -ENOBUFS)
			return cj_fail(err, (int)-size, "read new addresses of this host");
		enum hostaddrs_read got =
		    size < 0 ? HOSTADDRS_GAP : hostaddrs_read(&h->set, h->bytes, (size_t)size);
		if (got == HOSTADDRS_FULL)
			return fail_full(err);
		has_gap = has_gap || got == HOSTADDRS_GAP;
	}
	return has_gap ? 1 : 0;
}

int hostaddrs_receive(struct hostaddrs *h, size_t *out_first, struct cj_error *err)
{
	size_t first = h->set.count;
	int rc = receive_changes(h, err);
	if (rc > 0)
		rc = list(h, err);
	if (rc == 0)
		*out_first = first;
	return rc;
}
