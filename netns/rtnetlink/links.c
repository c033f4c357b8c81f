/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each veth pair is created down, configured, brought up, and only then gets addresses, neighbours
 * and routes.  A route needs a link that is up, and the kernel must not choose an IPv6 address
 * first.  These links have no ARP (IFF_NOARP), so no process inside can claim to be a neighbour.
 */
#include "netns/rtnetlink/links.h"

#include <netinet/in.h> /* before linux/: the kernel's headers then leave its types out */

#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/ip.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#include "netns/nftables/nfnl.h"
#include "netns/rtnetlink/hostaddrs.h"
#include "netns/rtnetlink/rtmsg.h"
#include "runtime/base/scope.h"

#define INDEX_TRIES      64   /* of numbers that may be taken in the other namespace */
#define LINKS_UP_TRIES   5000 /* with the wait below: half a second, then it is an error */
#define LINKS_UP_WAIT_NS 100000

/* Indexes chosen here, so that one send can create a link and refer to it.  The kernel's own
 * choices start at 2, and the gateway may have had several uplinks before. */
#define JAIL_INDEX    2
#define GATEWAY_INDEX 1000

/* "Locally administered"; the same in every jail, because no two share a link. */
static const struct rtmsg_link lo = { .name = "lo", .index = 1 };
static const struct rtmsg_link jail_end = { LINK_JAIL, JAIL_INDEX, { 2, 0, 0, 0, 0, 1 } };
static const struct rtmsg_link gateway_end = { LINK_GATEWAY, GATEWAY_INDEX, { 2, 0, 0, 0, 0, 2 } };
static const struct rtmsg_link uplink_end = { LINK_UPLINK, 0, { 2, 0, 0, 0, 0, 3 } };
static const uint8_t router_address[RTMSG_LINK_BYTES] = { 2, 0, 0, 0, 0, 5 };
static const uint8_t host_end_address[RTMSG_LINK_BYTES] = { 2, 0, 0, 0, 0, 4 };

/* The gateway's next hop towards the host, whose end has no address.  They exist only in routes and
 * neighbour entries of that link; no packet carries them. */
static const struct ip next_hop4 = { 4, { 169, 254, 1, 1 } };
static const struct ip next_hop6 = { 6, { 0xfe, 0x80, [15] = 1 } };

/* The owner of a link: it decides the kernel's settings for the link. */
enum owner { JAIL, ROUTER, TAP, HOST, OWNERS };
#define KEEP (-1) /* unchanged */

/* clang-format off */
static const struct {
	int key, values[OWNERS];
} setting_rows[] = {
	/* The administrator decides whether the host forwards.
	 * The helper behind a tap uses ARP; on other links no ARP request is answered (8).
	 *                                    jail router   tap  host */
	{ IPV4_DEVCONF_FORWARDING,          {    0,    1,    1, KEEP } },
	{ IPV4_DEVCONF_RP_FILTER,           {    1,    1,    1,    1 } },
	{ IPV4_DEVCONF_ACCEPT_REDIRECTS,    {    0,    0,    0,    0 } },
	{ IPV4_DEVCONF_ACCEPT_SOURCE_ROUTE, {    0,    0,    0,    0 } },
	{ IPV4_DEVCONF_SEND_REDIRECTS,      {    0,    0,    0,    0 } },
	{ IPV4_DEVCONF_ROUTE_LOCALNET,      { KEEP,    0,    0,    0 } },
	{ IPV4_DEVCONF_PROXY_ARP,           { KEEP,    0,    0,    0 } },
	{ IPV4_DEVCONF_ARP_IGNORE,          {    8,    8,    1,    8 } },
	/* slirp4netns loses its first answer if it must ask by ARP: announce the address. */
	{ IPV4_DEVCONF_ARP_NOTIFY,          { KEEP, KEEP,    1, KEEP } },
};
/* clang-format on */

static void configure(struct rtbatch *b, const struct rtmsg_link *link, enum owner owner)
{
	struct rtmsg_setting settings[COUNT_OF(setting_rows)];
	size_t n = 0;
	for (size_t i = 0; i < COUNT_OF(setting_rows); i++) {
		int value = setting_rows[i].values[owner];
		if (value != KEEP)
			settings[n++] =
			    (struct rtmsg_setting){ setting_rows[i].key, (unsigned)value };
	}
	rtmsg_configure(b, link, settings, n);
}

static int hint_veth(struct cj_error *err)
{
	if (err->code == EOPNOTSUPP)
		return cj_hint(err, "load the kernel module veth: modprobe veth");
	return -err->code;
}

static int look_at(int route_fd, const struct rtmsg_link *link, struct rtbatch_link *out,
		   struct cj_error *err)
{
	struct rtbatch b = { 0 };
	rtmsg_get_link(&b, link);
	return rtbatch_send(route_fd, &b, out, err);
}

/*
 * If the other end of a link came up later, the link's queue drops packets until the kernel's link
 * watch has run.  Since Linux 6.8 RTM_GETLINK makes it run; earlier it takes microseconds.
 */
static int await_up(int route_fd, const struct rtmsg_link *link, uint8_t operstate,
		    struct cj_error *err)
{
	const struct timespec wait = { .tv_nsec = LINKS_UP_WAIT_NS };

	for (int i = 0; operstate != IF_OPER_UP; i++) {
		if (i == LINKS_UP_TRIES)
			return cj_fail(err, ETIMEDOUT, "wait until '%s' carries packets",
				       link->name);
		if (i > 0)
			(void)nanosleep(&wait, NULL); /* a shorter wait does no harm */
		struct rtbatch_link seen = { 0 };
		if (look_at(route_fd, link, &seen, err) < 0)
			return -err->code;
		operstate = seen.operstate;
	}
	return 0;
}

static int join_gateway(int gateway_fd, int jail_netns_fd, const struct links_spec *spec,
			struct cj_error *err)
{
	struct rtbatch b = { 0 };
	rtmsg_veth(&b, &gateway_end, &jail_end, jail_netns_fd, spec->mtu);
	rtmsg_up(&b, &lo, 0);
	configure(&b, &gateway_end, ROUTER);
	rtmsg_up(&b, &gateway_end, 0);
	rtmsg_address(&b, &gateway_end, &spec->addresses.gateway4, 31);
	rtmsg_neighbour(&b, &gateway_end, &spec->addresses.jail4, jail_end.address);
	if (spec->addresses.jail6.family == 6 && spec->addresses.gateway6.family == 6) {
		rtmsg_address(&b, &gateway_end, &spec->addresses.gateway6, 127);
		rtmsg_neighbour(&b, &gateway_end, &spec->addresses.jail6, jail_end.address);
	}
	return rtbatch_send(gateway_fd, &b, NULL, err);
}

static int join_jail(int jail_fd, const struct links_spec *spec, struct rtbatch_link *out_link,
		     struct cj_error *err)
{
	struct rtbatch b = { 0 };
	configure(&b, &jail_end, JAIL);
	rtmsg_up(&b, &jail_end, 0);
	rtmsg_address(&b, &jail_end, &spec->addresses.jail4, 31);
	rtmsg_neighbour(&b, &jail_end, &spec->addresses.gateway4, gateway_end.address);
	rtmsg_route_default(&b, &jail_end, &spec->addresses.gateway4);
	if (spec->addresses.jail6.family == 6 && spec->addresses.gateway6.family == 6) {
		rtmsg_address(&b, &jail_end, &spec->addresses.jail6, 127);
		rtmsg_neighbour(&b, &jail_end, &spec->addresses.gateway6, gateway_end.address);
		rtmsg_route_default(&b, &jail_end, &spec->addresses.gateway6);
	}
	rtmsg_get_link(&b, &jail_end);
	return rtbatch_send(jail_fd, &b, out_link, err);
}

int links_join(int gateway_fd, int jail_fd, int jail_netns_fd, const struct links_spec *spec,
	       struct cj_error *err)
{
	int rc = join_gateway(gateway_fd, jail_netns_fd, spec, err);
	if (rc < 0)
		return hint_veth(err);
	struct rtbatch_link jail = { 0 };
	rc = join_jail(jail_fd, spec, &jail, err);
	if (rc == 0)
		rc = await_up(jail_fd, &jail_end, jail.operstate, err);
	if (rc == 0)
		rc = await_up(gateway_fd, &gateway_end, IF_OPER_UNKNOWN, err);
	return rc;
}

/* Looks up the index that the kernel chose for a link. */
static int find_index(int route_fd, struct rtmsg_link *link, struct cj_error *err)
{
	struct rtbatch_link seen = { 0 };
	if (look_at(route_fd, link, &seen, err) < 0)
		return -err->code;
	link->index = seen.index;
	return 0;
}

/* The host's end, so far only a name, becomes a link with an index. */
static int plug_create(int host_fd, int gateway_fd, struct rtmsg_link *host_end, unsigned mtu,
		       struct cj_error *err)
{
	auto_fd int gateway_ns_fd = ioctl(gateway_fd, SIOCGSKNS);
	if (gateway_ns_fd < 0)
		return cj_fail(err, errno, "open the network namespace of a socket (SIOCGSKNS)");

	struct rtbatch b = { 0 };
	struct rtbatch_link seen = { 0 };
	rtmsg_veth(&b, host_end, &uplink_end, gateway_ns_fd, mtu);
	rtmsg_get_link(&b, host_end);
	int rc = rtbatch_send(host_fd, &b, &seen, err);
	if (rc < 0)
		return hint_veth(err);
	host_end->index = seen.index;
	return 0;
}

static int plug_host_end(int host_fd, const struct rtmsg_link *host_end,
			 const struct links_host_spec *spec, struct cj_error *err)
{
	struct rtbatch b = { 0 };
	configure(&b, host_end, HOST);
	rtmsg_up(&b, host_end, 0);
	rtmsg_neighbour(&b, host_end, &spec->ip4, uplink_end.address);
	rtmsg_route_to(&b, host_end, &spec->ip4);
	if (spec->ip6.family == 6) {
		rtmsg_neighbour(&b, host_end, &spec->ip6, uplink_end.address);
		rtmsg_route_to(&b, host_end, &spec->ip6);
	}
	return rtbatch_send(host_fd, &b, NULL, err);
}

static int plug_gateway_end(int gateway_fd, const struct rtmsg_link *uplink,
			    const struct links_host_spec *spec, struct rtbatch_link *out_link,
			    struct cj_error *err)
{
	struct rtbatch b = { 0 };
	configure(&b, uplink, ROUTER);
	rtmsg_up(&b, uplink, 0);
	rtmsg_address(&b, uplink, &spec->ip4, 32);
	rtmsg_neighbour(&b, uplink, &next_hop4, host_end_address);
	rtmsg_route_default(&b, uplink, &next_hop4);
	if (spec->ip6.family == 6) {
		rtmsg_address(&b, uplink, &spec->ip6, 128);
		rtmsg_neighbour(&b, uplink, &next_hop6, host_end_address);
		rtmsg_route_default(&b, uplink, &next_hop6);
	}
	rtmsg_get_link(&b, uplink);
	return rtbatch_send(gateway_fd, &b, out_link, err);
}

static int plug_both_ends(int host_fd, int gateway_fd, const struct rtmsg_link *host_end,
			  const struct links_host_spec *spec, struct cj_error *err)
{
	struct rtmsg_link uplink = uplink_end;
	struct rtbatch_link seen = { 0 };

	int rc = plug_host_end(host_fd, host_end, spec, err);
	if (rc == 0)
		rc = find_index(gateway_fd, &uplink, err);
	if (rc == 0)
		rc = plug_gateway_end(gateway_fd, &uplink, spec, &seen, err);
	if (rc == 0)
		rc = await_up(gateway_fd, &uplink, seen.operstate, err);
	if (rc == 0)
		rc = await_up(host_fd, host_end, IF_OPER_UNKNOWN, err);
	return rc;
}

int links_plug_host(int host_fd, int gateway_fd, const struct links_host_spec *spec,
		    struct cj_error *err)
{
	struct rtmsg_link host_end = { .name = spec->name };
	memcpy(host_end.address, host_end_address, sizeof(host_end_address));

	int rc = plug_create(host_fd, gateway_fd, &host_end, spec->mtu, err);
	if (rc < 0)
		return rc;
	rc = plug_both_ends(host_fd, gateway_fd, &host_end, spec, err);
	if (rc < 0)
		links_remove(host_fd, spec->name);
	return rc;
}

void links_remove(int route_fd, const char *name)
{
	struct rtbatch b = { 0 };
	struct cj_error ignored;
	rtmsg_delete(&b, &(struct rtmsg_link){ .name = name });
	/* on failure it is removed with its namespace */
	(void)rtbatch_send(route_fd, &b, NULL, &ignored);
}

struct links_state links_look(int route_fd, const char *name)
{
	const struct rtmsg_link link = { .name = name };
	struct rtbatch_link seen = { 0 };
	struct cj_error ignored;
	if (look_at(route_fd, &link, &seen, &ignored) < 0)
		return (struct links_state){ 0 };
	return (struct links_state){ seen.has_carrier, seen.has_carrier && seen.has_sent };
}

static void add_router(struct rtbatch *b, const struct rtmsg_link *link, const struct ip *router)
{
	if (router->family == 0)
		return;
	/* Helpers accept every frame as their own: an ARP request for the router could only
	 * fail. */
	rtmsg_neighbour(b, link, router, router_address);
	rtmsg_route_default(b, link, router);
}

int links_configure_tap(int gateway_fd, const struct links_tap_spec *spec, struct cj_error *err)
{
	struct rtmsg_link tap = { .name = LINK_UPLINK };
	int rc = find_index(gateway_fd, &tap, err);
	if (rc < 0)
		return rc;

	struct rtbatch b = { 0 };
	configure(&b, &tap, TAP);
	if (spec->ip4.family != 0) /* a link that comes up with an address announces it */
		rtmsg_address(&b, &tap, &spec->ip4, spec->bits4);
	rtmsg_up(&b, &tap, spec->mtu);
	if (spec->ip6.family != 0)
		rtmsg_address(&b, &tap, &spec->ip6, spec->bits6);
	add_router(&b, &tap, &spec->router4);
	add_router(&b, &tap, &spec->router6);
	return rtbatch_send(gateway_fd, &b, NULL, err);
}

/* --- moving a link: the kernel removes its addresses, so they are listed before, and given again
 * afterwards --- */

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
	for (size_t i = 0; rc == 0 && i < COUNT_OF(kept); i++) {
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

	while (nfnl_receive(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		; /* an exchange that failed has left its answer */
	int rc = hostaddrs_ask(fd);
	if (rc < 0)
		return cj_fail(err, -rc, "ask for the addresses of '%s'", name);
	while (rc == 0) {
		ssize_t size = nfnl_receive(fd, bytes, sizeof(bytes), 0);
		rc = size < 0 ? (int)size : add_part(b, bytes, (int)size, index, name);
	}
	return rc < 0 ? cj_fail(err, -rc, "list the addresses of '%s'", name) : 0;
}

static int check_free(int route_fd, const char *name, struct cj_error *err)
{
	struct cj_error missing = { 0 };
	struct rtmsg_link taken = { .name = name };

	if (strchr(name, '%'))
		return 0;
	if (find_index(route_fd, &taken, &missing) == 0)
		return cj_fail(err, EEXIST, "the other namespace has a device '%s'", name);
	if (missing.code == ENODEV)
		return 0;
	*err = missing;
	return -err->code;
}

static struct nl_msg *move_message(int to_netns_fd, int index, int new_index, const char *new_name)
{
	struct ifinfomsg about = { .ifi_family = AF_UNSPEC, .ifi_index = index };
	struct nl_msg *msg = nlmsg_alloc_simple(RTM_NEWLINK, 0);

	if (msg && nlmsg_append(msg, &about, sizeof(about), NLMSG_ALIGNTO) == 0 &&
	    nla_put_u32(msg, IFLA_NET_NS_FD, (uint32_t)to_netns_fd) == 0 &&
	    nla_put_string(msg, IFLA_IFNAME, new_name) == 0 &&
	    nla_put_u32(msg, IFLA_NEW_IFINDEX, (uint32_t)new_index) == 0)
		return msg;
	nlmsg_free(msg);
	return NULL;
}

/* Whether the link has left the namespace of this socket. */
static bool is_gone(int route_fd, const struct rtmsg_link *link)
{
	struct cj_error missing = { 0 };
	struct rtmsg_link seen = *link;
	return find_index(route_fd, &seen, &missing) < 0 && missing.code == ENODEV;
}

/* The index there, from `wanted` on, by which it can be found whatever its name is. */
static int move(int from_fd, int to_netns_fd, const struct rtmsg_link *link, int wanted,
		const char *new_name, struct cj_error *err)
{
	for (int i = 0; i < INDEX_TRIES; i++) {
		struct rtbatch b = { 0 };
		rtbatch_add(&b, move_message(to_netns_fd, link->index, wanted + i, new_name),
			    "move '%s'", link->name);
		if (rtbatch_send(from_fd, &b, NULL, err) == 0)
			return wanted + i;
		/* The kernel may have moved it, and only its answer was lost. */
		if (err->code != EBUSY)
			return is_gone(from_fd, link) ? wanted + i : -err->code;
	}
	return cj_fail(err, EBUSY, "find a free index for '%s'", link->name);
}

/* A link that has arrived gets its addresses, and comes up. */
static int settle(int route_fd, const struct rtbatch *addresses, const struct rtmsg_link *link,
		  struct cj_error *err)
{
	struct rtbatch b = *addresses;
	for (size_t i = 0; i < b.count; i++) {
		struct nlmsghdr *header = (struct nlmsghdr *)(void *)(b.bytes + b.at[i]);
		((struct ifaddrmsg *)nlmsg_data(header))->ifa_index = (unsigned)link->index;
	}
	rtmsg_up(&b, link, 0);
	return rtbatch_send(route_fd, &b, NULL, err);
}

int links_move(const struct links_move *where, const char *name, const char *new_name,
	       int *out_index, struct cj_error *err)
{
	struct rtbatch addresses = { 0 };
	struct rtmsg_link link = { .name = name, .index = *out_index },
			  moved = { .name = new_name };

	*out_index = 0;
	if (link.index == 0 && find_index(where->from_fd, &link, err) < 0)
		return -err->code;
	if (check_free(where->to_fd, new_name, err) < 0 ||
	    list_addresses(where->from_fd, link.index, name, &addresses, err) < 0)
		return -err->code;
	if (addresses.failed)
		return cj_fail(err, addresses.failed, "'%s' has too many addresses", name);
	moved.index = move(where->from_fd, where->to_netns_fd, &link, link.index, new_name, err);
	if (moved.index < 0)
		return moved.index;
	*out_index = moved.index;
	if (settle(where->to_fd, &addresses, &moved, err) == 0)
		return 0;

	struct cj_error lost = { 0 };
	int index = where->from_netns_fd < 0
			? -1
			: move(where->to_fd, where->from_netns_fd, &moved, link.index, name, &lost);
	if (index > 0) {
		*out_index = 0;
		link.index = index;
		if (settle(where->from_fd, &addresses, &link, &lost) < 0)
			*err = lost;
	}
	return -err->code;
}
