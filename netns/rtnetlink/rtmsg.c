/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request is made with libnl-route-3: fill an object, make a message of it, free the object.
 * Without memory the message is NULL, which the batch keeps as its failure.
 */
#include "netns/rtnetlink/rtmsg.h"

#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <netlink/route/link/inet.h>
#include <netlink/route/link/inet6.h>
#include <netlink/route/link/veth.h>
#include <netlink/route/neighbour.h>
#include <netlink/route/nexthop.h>
#include <netlink/route/route.h>
#include <stdarg.h>
#include <sys/socket.h>

#include "netns/nftables/nfnl.h"
#include "runtime/base/clock.h"
#include "runtime/base/scope.h"

#define ANSWER_MAX 8192 /* an RTM_NEWLINK is 2 KB; an error repeats its request */

void rtbatch_add(struct rtbatch *b, struct nl_msg *msg, const char *fmt, ...)
{
	if (!msg) {
		b->failed = ENOMEM;
		return;
	}
	const struct nlmsghdr *header = nlmsg_hdr(msg);
	size_t size = NLMSG_ALIGN(header->nlmsg_len);
	if (b->count == RTBATCH_MESSAGES_MAX || size > RTBATCH_BYTES_MAX - b->size) {
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

/* Where the kernel does not count, a link passes for one that has. */
static bool has_sent(struct nlmsghdr *header)
{
	struct rtnl_link_stats64 stats = { .tx_packets = 1 };
	const struct nlattr *a = nlmsg_find_attr(header, sizeof(struct ifinfomsg), IFLA_STATS64);
	if (a && (size_t)nla_len(a) >= offsetof(struct rtnl_link_stats64, rx_bytes))
		memcpy(&stats, nla_data(a), offsetof(struct rtnl_link_stats64, rx_bytes));
	return stats.tx_packets > 0;
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
		.has_sent = has_sent(header),
	};
	return 0;
}

struct batch_answer {
	uint32_t first;
	bool is_last;
	int code; /* of the first failure */
	size_t failed_at;
	struct rtbatch_link link;
};

static void read_answer(const struct rtbatch *b, struct nlmsghdr *header, struct batch_answer *a)
{
	size_t i = header->nlmsg_seq - a->first;
	if (i >= b->count)
		return;
	/* 0: acknowledged; else a positive errno, EBADMSG for a malformed answer */
	int code = header->nlmsg_type == NLMSG_ERROR ? nfnl_error(header) : EBADMSG;
	if (asks_for_link(b, i) && (code == 0 || header->nlmsg_type != NLMSG_ERROR))
		code = read_link(header, &a->link);
	if (code != 0 && code != b->tolerated[i] && a->code == 0) {
		a->code = code;
		a->failed_at = i;
	}
	a->is_last = a->is_last || i == b->count - 1;
}

static int read_answers(int route_fd, const struct rtbatch *b, struct batch_answer *a)
{
	_Alignas(4) uint8_t bytes[ANSWER_MAX];

	while (!a->is_last) {
		ssize_t size = nfnl_receive(route_fd, bytes, sizeof(bytes), 0);
		if (size < 0)
			return (int)-size;
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
	struct batch_answer a = { .first = number_messages(b) };
	const char *last = b->what[b->count - 1];

	int rc = nfnl_send(route_fd, b->bytes, b->size);
	if (rc < 0)
		return cj_fail(err, -rc, "%s: send to netlink", last);
	int code = read_answers(route_fd, b, &a);
	if (code != 0)
		return cj_fail(err, code, "%s: receive from netlink", last);
	if (a.code != 0)
		return cj_fail(err, a.code, "%s", b->what[a.failed_at]);
	if (out_link)
		*out_link = a.link;
	return 0;
}

static void put_addr(struct nl_addr **a)
{
	nl_addr_put(*a);
}
static void put_link(struct rtnl_link **l)
{
	rtnl_link_put(*l);
}
static void put_address(struct rtnl_addr **a)
{
	rtnl_addr_put(*a);
}
static void put_neigh(struct rtnl_neigh **n)
{
	if (*n)
		rtnl_neigh_put(*n);
}
static void put_route(struct rtnl_route **r)
{
	if (*r)
		rtnl_route_put(*r);
}
#define auto_addr    __attribute__((cleanup(put_addr))) struct nl_addr
#define auto_link    __attribute__((cleanup(put_link))) struct rtnl_link
#define auto_address __attribute__((cleanup(put_address))) struct rtnl_addr
#define auto_neigh   __attribute__((cleanup(put_neigh))) struct rtnl_neigh
#define auto_route   __attribute__((cleanup(put_route))) struct rtnl_route

static struct nl_addr *addr_of(const struct ip *ip, uint8_t bits)
{
	struct nl_addr *a =
	    nl_addr_build(ip->family == 4 ? AF_INET : AF_INET6, ip->bytes, ip_size(ip));
	if (a)
		nl_addr_set_prefixlen(a, bits);
	return a;
}

static uint8_t all_bits(const struct ip *ip)
{
	return (uint8_t)(8 * ip_size(ip));
}

static bool describe(struct rtnl_link *l, const struct rtmsg_link *as, unsigned mtu)
{
	auto_addr *address = nl_addr_build(AF_LLC, as->address, RTMSG_LINK_BYTES);
	if (!address)
		return false;
	rtnl_link_set_name(l, as->name);
	rtnl_link_set_ifindex(l, as->index);
	rtnl_link_set_addr(l, address);
	rtnl_link_set_mtu(l, mtu);
	/* one queue: it is faster to create, and a jail needs no more */
	rtnl_link_set_num_tx_queues(l, 1);
	rtnl_link_set_num_rx_queues(l, 1);
	rtnl_link_set_flags(l, IFF_NOARP);
	return true;
}

void rtmsg_veth(struct rtbatch *b, const struct rtmsg_link *near, const struct rtmsg_link *far,
		int far_netns_fd, unsigned mtu)
{
	struct nl_msg *msg = NULL;
	auto_link *l = rtnl_link_veth_alloc();
	struct rtnl_link *peer = l ? rtnl_link_veth_get_peer(l) : NULL;

	if (peer && describe(l, near, mtu) && describe(peer, far, mtu)) {
		rtnl_link_set_ns_fd(peer, far_netns_fd);
		if (rtnl_link_build_add_request(l, NLM_F_CREATE | NLM_F_EXCL, &msg) < 0)
			msg = NULL;
	}
	rtnl_link_put(peer); /* the reference that veth_get_peer() took */
	rtbatch_add(b, msg, "create the veth pair '%s' - '%s'", near->name, far->name);
}

void rtmsg_get_link(struct rtbatch *b, const struct rtmsg_link *link)
{
	struct ifinfomsg info = { .ifi_family = AF_UNSPEC, .ifi_index = link->index };
	struct nl_msg *msg = nlmsg_alloc_simple(RTM_GETLINK, 0);
	bool is_whole = msg && nlmsg_append(msg, &info, sizeof(info), NLMSG_ALIGNTO) == 0 &&
			(link->index != 0 || nla_put_string(msg, IFLA_IFNAME, link->name) == 0);
	if (msg && !is_whole) {
		nlmsg_free(msg);
		msg = NULL;
	}
	rtbatch_add(b, msg, "look at '%s'", link->name);
}

/* An object for changes of an existing link. */
static struct rtnl_link *change_of(const struct rtmsg_link *link)
{
	struct rtnl_link *l = rtnl_link_alloc();
	if (l)
		rtnl_link_set_ifindex(l, link->index);
	return l;
}

/* An add request without NLM_F_CREATE is a change. */
static struct nl_msg *change_request(struct rtnl_link *l)
{
	struct nl_msg *msg = NULL;
	return l && rtnl_link_build_add_request(l, 0, &msg) == 0 ? msg : NULL;
}

void rtmsg_delete(struct rtbatch *b, const struct rtmsg_link *link)
{
	struct nl_msg *msg = NULL;
	auto_link *l = change_of(link);
	if (l && link->index == 0)
		rtnl_link_set_name(l, link->name);
	if (!l || rtnl_link_build_delete_request(l, &msg) < 0)
		msg = NULL;
	rtbatch_add(b, msg, "remove '%s'", link->name);
}

void rtmsg_configure(struct rtbatch *b, const struct rtmsg_link *link,
		     const struct rtmsg_setting *settings, size_t n)
{
	auto_link *l = change_of(link);
	bool is_whole = l;
	for (size_t i = 0; is_whole && i < n; i++)
		is_whole =
		    rtnl_link_inet_set_conf(l, (unsigned)settings[i].key, settings[i].value) == 0;
	rtbatch_add(b, is_whole ? change_request(l) : NULL, "set net.ipv4.conf.%s", link->name);

	auto_link *six = change_of(link);
	is_whole = six && rtnl_link_inet6_set_addr_gen_mode(six, IN6_ADDR_GEN_MODE_NONE) == 0;
	rtbatch_add(b, is_whole ? change_request(six) : NULL,
		    "turn off the IPv6 autoconfiguration of '%s'", link->name);
	rtbatch_tolerate(b, EAFNOSUPPORT); /* a kernel without IPv6 has nothing to turn off */
}

void rtmsg_up(struct rtbatch *b, const struct rtmsg_link *link, unsigned mtu)
{
	auto_link *l = change_of(link);
	if (l)
		rtnl_link_set_flags(l, IFF_UP);
	if (l && mtu > 0)
		rtnl_link_set_mtu(l, mtu);
	rtbatch_add(b, change_request(l), "bring up '%s'", link->name);
}

/* A route over the link; directly when `via` is NULL.  Returns NULL without memory. */
static struct rtnl_route *route_over(const struct rtmsg_link *link, const struct ip *to,
				     uint8_t bits, const struct ip *via)
{
	auto_addr *dst = addr_of(to, bits);
	auto_addr *gateway = via ? addr_of(via, all_bits(via)) : NULL;
	auto_route *r = rtnl_route_alloc();
	struct rtnl_nexthop *hop = rtnl_route_nh_alloc();

	if (!dst || (via && !gateway) || !r || !hop || rtnl_route_set_dst(r, dst) < 0) {
		if (hop)
			rtnl_route_nh_free(hop);
		return NULL;
	}
	rtnl_route_nh_set_ifindex(hop, link->index);
	if (gateway) {
		rtnl_route_nh_set_gateway(hop, gateway);
		rtnl_route_nh_set_flags(hop, RTNH_F_ONLINK);
	}
	rtnl_route_add_nexthop(r, hop); /* takes it */
	rtnl_route_set_protocol(r, RTPROT_STATIC);
	rtnl_route_set_scope(r, gateway ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK);
	return take_ptr(r);
}

static struct nl_msg *route_request(struct rtnl_route *r)
{
	struct nl_msg *msg = NULL;
	int flags = NLM_F_CREATE | NLM_F_EXCL;
	return r && rtnl_route_build_add_request(r, flags, &msg) == 0 ? msg : NULL;
}

void rtmsg_address(struct rtbatch *b, const struct rtmsg_link *link, const struct ip *ip,
		   uint8_t bits)
{
	struct nl_msg *msg = NULL;
	char text[IP_TEXT_MAX];
	auto_addr *local = addr_of(ip, bits);
	auto_address *a = rtnl_addr_alloc();

	if (a && local && rtnl_addr_set_local(a, local) == 0) {
		rtnl_addr_set_ifindex(a, link->index);
		if (ip->family == 6) /* no other host is on the link */
			rtnl_addr_set_flags(a, IFA_F_NODAD);
		if (rtnl_addr_build_add_request(a, NLM_F_CREATE | NLM_F_EXCL, &msg) < 0)
			msg = NULL;
	}
	rtbatch_add(b, msg, "give '%s' the address %s/%u", link->name, ip_format(ip, text), bits);
	if (ip->family != 6)
		return;

	/* The kernel adds the local route of an IPv6 address from a work queue, even without
	 * duplicate detection.  Until then it would drop the first packets, so it is added here. */
	auto_route *r = route_over(link, ip, all_bits(ip), NULL);
	if (r) {
		rtnl_route_set_type(r, RTN_LOCAL);
		rtnl_route_set_table(r, RT_TABLE_LOCAL);
		rtnl_route_set_scope(r, RT_SCOPE_HOST);
	}
	rtbatch_add(b, route_request(r), "add the local route of %s", ip_format(ip, text));
}

void rtmsg_neighbour(struct rtbatch *b, const struct rtmsg_link *link, const struct ip *ip,
		     const uint8_t address[static RTMSG_LINK_BYTES])
{
	struct nl_msg *msg = NULL;
	char text[IP_TEXT_MAX];
	auto_addr *dst = addr_of(ip, all_bits(ip));
	auto_addr *lladdr = nl_addr_build(AF_LLC, address, RTMSG_LINK_BYTES);
	auto_neigh *n = rtnl_neigh_alloc();

	if (n && dst && lladdr && rtnl_neigh_set_dst(n, dst) == 0) {
		rtnl_neigh_set_ifindex(n, link->index);
		rtnl_neigh_set_lladdr(n, lladdr);
		rtnl_neigh_set_state(n, NUD_PERMANENT);
		if (rtnl_neigh_build_add_request(n, NLM_F_CREATE | NLM_F_REPLACE, &msg) < 0)
			msg = NULL;
	}
	rtbatch_add(b, msg, "give '%s' the neighbour %s", link->name, ip_format(ip, text));
}

void rtmsg_route_to(struct rtbatch *b, const struct rtmsg_link *link, const struct ip *ip)
{
	char text[IP_TEXT_MAX];
	auto_route *r = route_over(link, ip, all_bits(ip), NULL);
	rtbatch_add(b, route_request(r), "add the route to %s over '%s'", ip_format(ip, text),
		    link->name);
}

void rtmsg_route_default(struct rtbatch *b, const struct rtmsg_link *link, const struct ip *via)
{
	static const struct ip all4 = { .family = 4 }, all6 = { .family = 6 };
	char text[IP_TEXT_MAX];
	auto_route *r = route_over(link, via->family == 4 ? &all4 : &all6, 0, via);
	rtbatch_add(b, route_request(r), "add the default route via %s over '%s'",
		    ip_format(via, text), link->name);
}
