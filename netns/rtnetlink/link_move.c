/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel removes the addresses of a link that it moves.  So they are listed before, and given
 * again afterwards.
 */
#include "netns/rtnetlink/link_move.h"

#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <string.h>
#include <sys/socket.h>

#include "netns/rtnetlink/hostaddrs.h"
#include "netns/rtnetlink/rtmsg.h"

#define INDEX_TRIES 64 /* of numbers that may be taken in the other namespace */

/* --- addresses ------------------------------------------------------------------------- */

static bool is_kept(struct nlmsghdr *header, int index)
{
	const struct ifaddrmsg *about = nlmsg_data(header);
	const struct nlattr *flags = nlmsg_find_attr(header, sizeof(*about), IFA_FLAGS);

	return (int)about->ifa_index == index && about->ifa_scope == RT_SCOPE_UNIVERSE &&
	       (flags ? nla_get_u32(flags) : about->ifa_flags) & IFA_F_PERMANENT;
}

/* The index is that of the link where it will be. */
static struct nl_msg *copy_address(struct nlmsghdr *header, int index)
{
	static const int kept[] = { IFA_LOCAL, IFA_ADDRESS, IFA_BROADCAST, IFA_FLAGS,
				    IFA_RT_PRIORITY };
	struct ifaddrmsg about = *(struct ifaddrmsg *)nlmsg_data(header);
	struct nl_msg *msg = nlmsg_alloc_simple(RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE);

	about.ifa_index = (unsigned)index;
	int rc = msg ? nlmsg_append(msg, &about, sizeof(about), NLMSG_ALIGNTO) : -1;
	for (size_t i = 0; rc == 0 && i < sizeof(kept) / sizeof(kept[0]); i++) {
		const struct nlattr *a = nlmsg_find_attr(header, sizeof(about), kept[i]);
		rc = a ? nla_put(msg, kept[i], nla_len(a), nla_data(a)) : 0;
	}
	if (rc == 0)
		return msg;
	nlmsg_free(msg);
	return NULL;
}

/* Part of a list.  1: the list is complete. */
static int add_part(struct rtbatch *b, void *bytes, int size, int index, const char *name)
{
	for (struct nlmsghdr *h = bytes; nlmsg_ok(h, size); h = nlmsg_next(h, &size)) {
		if (h->nlmsg_type == NLMSG_DONE)
			return 1;
		if (h->nlmsg_type == NLMSG_ERROR || h->nlmsg_flags & NLM_F_DUMP_INTR)
			return -EAGAIN;
		if (h->nlmsg_type == RTM_NEWADDR && is_kept(h, index))
			rtbatch_add(b, copy_address(h, index), "give '%s' its addresses", name);
	}
	return 0;
}

static int list_addresses(int fd, int index, const char *name, struct rtbatch *b,
			  struct cj_error *err)
{
	static _Alignas(4) char bytes[HOSTADDRS_ANSWER_BYTES];
	int rc = hostaddrs_ask(fd);

	if (rc < 0)
		return cj_fail(err, -rc, "ask for the addresses of '%s'", name);
	while (rc == 0) {
		ssize_t size = recv(fd, bytes, sizeof(bytes), 0);
		if (size < 0 && errno == EINTR)
			continue;
		rc = size < 0 ? -errno : add_part(b, bytes, (int)size, index, name);
	}
	return rc < 0 ? cj_fail(err, -rc, "list the addresses of '%s'", name) : 0;
}

/* --- the link -------------------------------------------------------------------------- */

/* 0: there is none. */
static int find_index(int route_fd, const char *name, struct cj_error *err)
{
	const struct rtmsg_link named = { .name = name };
	struct rtbatch_link found = { 0 };
	struct rtbatch b = { 0 };

	rtmsg_get_link(&b, &named);
	int rc = rtbatch_send(route_fd, &b, &found, err);
	return rc < 0 ? rc : found.index;
}

static int check_free(int route_fd, const char *name, struct cj_error *err)
{
	struct cj_error missing = { 0 };

	if (strchr(name, '%'))
		return 0;
	if (find_index(route_fd, name, &missing) > 0)
		return cj_fail(err, EEXIST, "the other namespace has a device '%s'", name);
	if (missing.code == ENODEV)
		return 0;
	*err = missing;
	return -err->code;
}

static struct nl_msg *move_message(const struct link_move *where, int index, int new_index,
				   const char *new_name)
{
	struct ifinfomsg about = { .ifi_family = AF_UNSPEC, .ifi_index = index };
	struct nl_msg *msg = nlmsg_alloc_simple(RTM_NEWLINK, 0);

	if (msg && nlmsg_append(msg, &about, sizeof(about), NLMSG_ALIGNTO) == 0 &&
	    nla_put_u32(msg, IFLA_NET_NS_FD, (uint32_t)where->to_netns_fd) == 0 &&
	    nla_put_string(msg, IFLA_IFNAME, new_name) == 0 &&
	    nla_put_u32(msg, IFLA_NEW_IFINDEX, (uint32_t)new_index) == 0)
		return msg;
	nlmsg_free(msg);
	return NULL;
}

/* The index there, by which it can be found whatever its name is. */
static int move(const struct link_move *where, int index, const char *name, const char *new_name,
		struct cj_error *err)
{
	for (int i = 0; i < INDEX_TRIES; i++) {
		struct cj_error refused = { 0 };
		struct rtbatch b = { 0 };
		rtbatch_add(&b, move_message(where, index, index + i, new_name), "move '%s'", name);
		if (rtbatch_send(where->from_fd, &b, NULL, &refused) == 0)
			return index + i;
		if (refused.code != EBUSY) {
			*err = refused;
			return -err->code;
		}
	}
	return cj_fail(err, EBUSY, "find a free index for '%s'", name);
}

static void set_index(struct rtbatch *b, int index)
{
	for (size_t i = 0; i < b->count; i++) {
		struct nlmsghdr *header = (struct nlmsghdr *)(void *)(b->bytes + b->at[i]);
		((struct ifaddrmsg *)nlmsg_data(header))->ifa_index = (unsigned)index;
	}
}

int link_move(const struct link_move *where, const char *name, const char *new_name, int *out_index,
	      struct cj_error *err)
{
	struct rtbatch again = { 0 };
	int index = *out_index > 0 ? *out_index : find_index(where->from_fd, name, err);

	*out_index = 0;
	if (index < 0 || check_free(where->to_fd, new_name, err) < 0 ||
	    list_addresses(where->from_fd, index, name, &again, err) < 0)
		return -err->code;
	if (again.failed)
		return cj_fail(err, again.failed, "'%s' has too many addresses", name);
	index = move(where, index, name, new_name, err);
	if (index < 0)
		return index;
	*out_index = index;
	set_index(&again, index);
	rtmsg_up(&again, &(struct rtmsg_link){ .name = new_name, .index = index }, 0);
	return rtbatch_send(where->to_fd, &again, NULL, err);
}
