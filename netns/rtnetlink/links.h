/* SPDX-License-Identifier: Apache-2.0 */
/*
 * links - interfaces, addresses, routes and neighbours, with libnl-route-3.
 *
 * Works through NETLINK_ROUTE sockets that the gateway's process made inside the namespaces, so the
 * supervisor never enters one.  Names are LINK_* (addresses.h).  Interface indexes are chosen here,
 * not looked up.
 */
#pragma once

#include "netns/address/addresses.h"
#include "netns/address/ip.h"
#include "runtime/base/error.h"

#define LINK_MTU_MAX  65520
#define LINK_NAME_MAX 16 /* IFNAMSIZ */

/* The veth pair between a jail and its gateway. */
struct links_spec {
	struct addresses addresses;
	unsigned mtu;
};

/*
 * links_join - make the veth pair LINK_JAIL <-> LINK_GATEWAY, and the jail's default routes.
 *
 * Fixed link addresses, permanent neighbours both ways, no ARP, no autoconfigured address, no
 * duplicate detection; forwarding and a strict reverse path on the gateway's end; `lo` up in the
 * gateway.  When it returns, both ends carry packets, so the jail's first packet is not lost
 * (RTM_GETLINK of both ends makes the kernel's link watch catch up).
 * jail_netns_fd: the namespace of jail_fd; it stays the caller's.
 * Must not: be called before the rules are loaded on both sides.
 * Fails:    EOPNOTSUPP without veth (hint).  A part may stay: it ends with the namespaces.
 * Follows:  rtnetlink(7), veth(4), linux/if_link.h IFLA_INET_CONF, IFLA_INET6_ADDR_GEN_MODE.
 */
int links_join(int gateway_fd, int jail_fd, int jail_netns_fd, const struct links_spec *spec,
	       struct cj_error *err);

/*
 * links_plug_host - make the veth pair `name` (in the caller's namespace) <-> LINK_UPLINK (in the
 * gateway), with one route of the host to ip4 (and ip6).  The host's end has no address.  The
 * gateway's default routes use the pair.
 *
 * host_fd is a NETLINK_ROUTE socket of the caller's own namespace.
 * Fails: EEXIST when the name or the route to ip4 or ip6 is taken (nothing is left then: try
 * another number); EPERM without CAP_NET_ADMIN.
 */
struct links_host_spec {
	char name[LINK_NAME_MAX];
	struct ip ip4, ip6; /* of the gateway's end; ip6 null: no IPv6 */
	unsigned mtu;
};
int links_plug_host(int host_fd, int gateway_fd, const struct links_host_spec *spec,
		    struct cj_error *err);

/* Removes a link at once, not with its namespace, which ends asynchronously.  Best effort. */
void links_remove(int route_fd, const char *name);

struct links_state {
	/* It is connected at its other end; of a tap device: a program is attached.  Not
	 * IFF_RUNNING: a link that is down does not have it, and it lags up to a second behind. */
	bool has_carrier;
	/* Of a tap device that is up: the attached program reads what the kernel sends there. */
	bool is_served;
};

/* Neither, also when there is no such link. */
struct links_state links_look(int route_fd, const char *name);

/*
 * links_configure_tap - addresses, default routes, up.  Null addresses: not that family.
 *
 * Must not: be called before a helper is attached to the tap device in the gateway.  If a link is
 * up when its carrier comes, its queue drops packets until the kernel's link watch has run, and it
 * announces no address.
 */
struct links_tap_spec {
	struct ip ip4, router4, ip6, router6;
	uint8_t bits4, bits6;
	unsigned mtu;
};
int links_configure_tap(int gateway_fd, const struct links_tap_spec *spec, struct cj_error *err);

/*
 * links_raise_loopback - bring "lo" up in the calling process' network namespace.
 *
 * Runs in:  init, with CAP_NET_ADMIN over its network namespace, before the seal.
 * Follows:  netdevice(7) SIOCSIFFLAGS.
 */
int links_raise_loopback(struct cj_error *err);

/* Two NETLINK_ROUTE sockets and their namespaces. */
struct links_move {
	int from_fd, from_netns_fd; /* namespace -1: a link that has left never goes back */
	int to_fd, to_netns_fd;
};

/*
 * links_move - move the link `name`, call it `new_name` there, and bring it up.
 *
 * *out_index: 0, or the link's index, which counts then and not `name`.  Becomes its index there,
 * or 0 if it is not moved.
 * It keeps its MTU, its link address and its permanent addresses of global scope.  With "%d" in
 * new_name the kernel chooses a number.
 * Fails: ENODEV; EEXIST when the other namespace has such a link: nothing is moved; EINVAL for a
 *        link that can't be moved, as `lo`.  After a later failure it is moved back, with its
 *        addresses; *out_index is 0 if that succeeds.
 * Follows: rtnetlink(7), linux/if_link.h IFLA_NET_NS_FD, IFLA_NEW_IFINDEX.
 */
int links_move(const struct links_move *where, const char *name, const char *new_name,
	       int *out_index, struct cj_error *err);
