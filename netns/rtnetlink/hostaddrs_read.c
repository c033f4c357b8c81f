/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses from RTM_NEWADDR messages.  Pure; bounded by the size of the bytes. */
#include "netns/rtnetlink/hostaddrs.h"

#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <string.h>
#include <sys/socket.h>

/* Not the addresses that are closed anyway: see the header. */
static bool is_kept(const struct ip *ip)
{
	static const struct ip_net others[] = {
		{ { .family = 4, .bytes = { 127 } }, 8 },
		{ { .family = 6, .bytes = { [15] = 1 } }, 128 },
		{ { .family = 6, .bytes = { 0xfe, 0x80 } }, 10 },
	};
	static const struct ip none4 = { .family = 4 }, none6 = { .family = 6 };

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
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

static bool is_address(const struct nlattr *attr)
{
	int type = nla_type(attr);
	return type == IFA_LOCAL || type == IFA_ADDRESS || type == IFA_BROADCAST ||
	       type == IFA_ANYCAST;
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
		if (!is_address(attr) || (size_t)nla_len(attr) != ip_size(&ip))
			continue;
		memcpy(ip.bytes, nla_data(attr), ip_size(&ip));
		if (!keep(set, &ip))
			return false;
		/* the prefix belongs to IFA_ADDRESS: on a point-to-point link, the peer's */
		if (nla_type(attr) == IFA_ADDRESS && !keep_ends(set, &ip, about->ifa_prefixlen))
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
