/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's part: builds a jail's network, before the program starts or when the program
 * first asks for it.  Acts.
 *
 * Order: the rules are loaded in both namespaces before the veth pair between them is up.  So no
 * packet is ever unfiltered.  When a build fails, the jail's rules are first changed to refuse
 * every packet, and they stay; then the uplink is removed, then the gateway.
 */
#include "netns/network.h"

#include <stdio.h>
#include <sys/epoll.h>

#include "netns/address/addresses.h"
#include "netns/firewall/firewall.h"
#include "netns/gateway.h"
#include "netns/network_parts.h"
#include "netns/rtnetlink/links.h"
#include "runtime/base/scope.h"

#define RESOLV_CONF "/etc/resolv.conf"
#define MTU_HOST    1500

/* --- up to the start of the uplink ------------------------------------------------------ */

static int load_rules(struct network *n, struct cj_error *err)
{
	struct firewall_spec spec = {
		.addresses = addresses_make(n->handles.has_ipv6),
		.has_dns = n->handles.fds[SLOT_DNS_UDP] >= 0,
		.is_list = n->spec->nallow > 0,
		.allowed = n->endpoints->items,
		.nallowed = n->endpoints->count,
	};
	spec.host = hostaddrs_list(n->hostaddrs, &spec.nhost);
	if (firewall_apply_jail(n->handles.fds[SLOT_JAIL_RULES], &spec, err) < 0)
		return cj_wrap(err, "the jail's rules");
	if (firewall_apply_gateway(n->handles.fds[SLOT_GATEWAY_RULES], &spec, err) < 0)
		return cj_wrap(err, "the gateway's rules");
	return 0;
}

static int join_links(struct network *n, struct cj_error *err)
{
	const struct links_spec spec = {
		.addresses = addresses_make(n->handles.has_ipv6),
		.mtu = uplink_kind_of(n->uplink) == UPLINK_HOST ? MTU_HOST : LINK_MTU_MAX,
	};
	return links_join(n->handles.fds[SLOT_GATEWAY_ROUTE], n->handles.fds[SLOT_JAIL_ROUTE],
			  &spec, err);
}

static int start_uplink(struct network *n, struct cj_error *err)
{
	const struct uplink_spec spec = {
		.kind = n->spec->uplink,
		.number = n->number,
		.gateway_fd = n->handles.fds[SLOT_GATEWAY_ROUTE],
		.has_ipv6 = n->handles.has_ipv6,
		.allowed = n->endpoints->items,
		/* other lists need no rules on the host: jails with them may share a table there */
		.nallowed = n->endpoints->opens_closed_range ? n->endpoints->count : 0,
	};
	if (uplink_start(&spec, &n->uplink, err) < 0)
		return cj_wrap(err, "start the uplink");
	if (uplink_kind_of(n->uplink) == UPLINK_HOST && uplink_warning(n->uplink)[0] != '\0')
		network_warn(n, NETWORK_DEGRADED "the uplink may not work: %s",
			     uplink_warning(n->uplink));
	return 0;
}

static int watch_rules(struct network *n, struct cj_error *err)
{
	const int *fds = n->handles.fds;
	if (denials_listen(fds[SLOT_JAIL_LOG], err) < 0 ||
	    denials_listen(fds[SLOT_GATEWAY_LOG], err) < 0 ||
	    network_watch_fd(n, SOURCE_JAIL_LOG, fds[SLOT_JAIL_LOG], err) < 0 ||
	    network_watch_fd(n, SOURCE_GATEWAY_LOG, fds[SLOT_GATEWAY_LOG], err) < 0)
		return -err->code;
	return network_watch_fd(n, SOURCE_HOSTADDRS, hostaddrs_fd(n->hostaddrs), err);
}

/* With an allow list the jail has no DNS: names in queries could carry data out. */
static int build_public(struct network *n, struct cj_error *err)
{
	if (gateway_open(n->spec->nallow == 0, &n->handles, err) < 0)
		return cj_wrap(err, "make the gateway");
	if (hostaddrs_open(&n->hostaddrs, err) < 0 || load_rules(n, err) < 0)
		return -err->code;
	n->is_filtered = true;
	if (watch_rules(n, err) < 0 || start_uplink(n, err) < 0)
		return -err->code;
	return join_links(n, err);
}

/* The kernel removes the gateway and its link a moment later.  Nothing may leave until then. */
static void close_jail(const struct network *n)
{
	struct cj_error ignored; /* the rules as they are stay, and the uplink goes next */
	int rules_fd = n->handles.fds[SLOT_JAIL_RULES];
	if (!n->is_filtered)
		return;
	(void)!firewall_unreachable(rules_fd, 4, &ignored);
	(void)!firewall_unreachable(rules_fd, 6, &ignored);
}

void network_give_up(struct network *n, const struct cj_error *why)
{
	close_jail(n);
	network_failed(n, "%s%s%s%s", why->msg, why->hint[0] ? " (" : "", why->hint,
		       why->hint[0] ? ")" : "");
	network_warn(n, NETWORK_DEGRADED "the jail has none: %s", n->why);
	n->is_building = false;
	n->is_filtered = false;
	uplink_stop(&n->uplink);
	resolver_destroy(&n->resolver);
	hostaddrs_close(&n->hostaddrs);
	for (size_t i = 0; i < SLOT_LISTENERS; i++)
		cj_close(&n->handles.fds[i]);
}

/* A kernel without nf_tables or veth can't enforce the rules: then the jail has no network. */
int network_build(struct network *n, struct cj_error *err)
{
	if (n->spec->mode != NETWORK_PUBLIC || n->is_building || n->state != NETWORK_UNUSED)
		return 0;
	if (build_public(n, err) == 0) {
		n->is_building = true;
		return 0;
	}
	if (err->code != EOPNOTSUPP)
		return -err->code;
	network_give_up(n, err);
	return 0;
}

/* --- from the uplink on ----------------------------------------------------------------- */

/* Without a way out DNS is of no use: then the sockets are closed, and port 53 answers nothing. */
static int build_resolver(struct network *n, struct cj_error *err)
{
	int *udp_fd = &n->handles.fds[SLOT_DNS_UDP], *tcp_fd = &n->handles.fds[SLOT_DNS_TCP];
	if (*udp_fd < 0 || uplink_kind_of(n->uplink) == UPLINK_NONE) {
		cj_close(udp_fd);
		cj_close(tcp_fd);
		return 0;
	}
	if (resolver_create(*udp_fd, *tcp_fd, RESOLV_CONF, &n->resolver, err) < 0)
		return -err->code;
	*udp_fd = *tcp_fd = -1; /* owned by the resolver */
	return network_watch_fd(n, SOURCE_RESOLVER, resolver_fd(n->resolver), err);
}

static int settle(struct network *n, struct cj_error *err)
{
	n->state = NETWORK_READY;
	if (uplink_kind_of(n->uplink) == UPLINK_NONE && n->spec->uplink != UPLINK_NONE) {
		network_failed(n, "nothing leads out of the jail: %s", uplink_why(n->uplink));
		network_warn(n, NETWORK_DEGRADED "%s", n->why);
	}
	if (network_reject_unreachable(n, err) < 0)
		return -err->code;
	int uplink_end_fd = uplink_fd(n->uplink);
	if (uplink_end_fd >= 0 && network_watch_fd(n, SOURCE_UPLINK, uplink_end_fd, err) < 0)
		return -err->code;
	if (build_resolver(n, err) < 0)
		return -err->code;
	n->is_building = false;
	return 0;
}

int network_await(struct network *n, struct cj_error *err)
{
	if (!n->is_building)
		return 0;
	if (uplink_await(n->uplink, err) < 0)
		return cj_wrap(err, "wait for the uplink");
	return settle(n, err);
}

int network_proceed(struct network *n, struct cj_error *err)
{
	if (!n->is_building)
		return 0;
	bool is_decided = false;
	if (uplink_proceed(n->uplink, &is_decided, err) < 0)
		return cj_wrap(err, "wait for the uplink");
	return is_decided ? settle(n, err) : 0;
}

bool network_is_building(const struct network *n)
{
	return n->is_building;
}
