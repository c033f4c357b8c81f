/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's part: builds through the sockets that init opened, serves, reports.  Acts.
 *
 * Order: the rules are loaded in both namespaces before the veth pair between them is up.  So no
 * packet is ever unfiltered.
 */
#include "netns/network.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "netns/addresses.h"
#include "netns/dns/resolver.h"
#include "netns/firewall/firewall.h"
#include "netns/forward.h"
#include "netns/rtnetlink/hostaddrs.h"
#include "netns/rtnetlink/links.h"
#include "runtime/base/scope.h"

#define RESOLV_CONF "/etc/resolv.conf"
#define SERVE_MAX   8  /* events of one call of network_serve() */
#define REPORT_MAX  64 /* reads of the remaining log at the end */
#define MTU_HOST    1500

const char *const network_mode_names[NETWORK_MODE_COUNT] = {
	[NETWORK_NONE] = "none",
	[NETWORK_PUBLIC] = "public",
};

const char *const network_state_names[NETWORK_STATE_COUNT] = {
	[NETWORK_UNUSED] = "unused",
	[NETWORK_READY] = "ready",
	[NETWORK_FAILED] = "failed",
};

enum source {
	SOURCE_JAIL_LOG,
	SOURCE_GATEWAY_LOG,
	SOURCE_HOSTADDRS, /* an interface of the host got an address */
	SOURCE_UPLINK,    /* the helper died */
	SOURCE_FORWARD,
	SOURCE_RESOLVER,
	SOURCE_COUNT
};

struct network {
	const struct network_spec *spec; /* borrowed, as are the endpoints */
	const struct endpoints *endpoints;
	struct network_callbacks callbacks;
	struct network_handles handles;
	int epoll_fd;
	bool is_filtered;
	struct hostaddrs *hostaddrs;
	struct uplink *uplink;
	struct forward *forward;
	struct resolver *resolver;
	struct denials denials;
};

static void warn(const struct network *n, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void warn(const struct network *n, const char *fmt, ...)
{
	char text[UPLINK_WHY_MAX + 128];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	n->callbacks.warn(n->callbacks.context, text);
}

static int watch_fd(struct network *n, enum source source, int fd, struct cj_error *err)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = source };
	if (epoll_ctl(n->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return cj_fail(err, errno, "watch the network");
	return 0;
}

static void unwatch_fd(struct network *n, int fd)
{
	(void)epoll_ctl(n->epoll_fd, EPOLL_CTL_DEL, fd, NULL); /* it was there: cannot fail */
}

/* --- building ------------------------------------------------------------------------ */

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

static int start_uplink(struct network *n, unsigned number, struct cj_error *err)
{
	const struct uplink_spec spec = {
		.kind = n->spec->uplink,
		.number = number,
		.gateway_fd = n->handles.fds[SLOT_GATEWAY_ROUTE],
		.has_ipv6 = n->handles.has_ipv6,
		.allowed = n->endpoints->items,
		.nallowed = n->endpoints->count,
	};
	char why[UPLINK_WHY_MAX] = "";
	if (uplink_start(&spec, &n->uplink, why, err) < 0)
		return cj_wrap(err, "start the uplink");
	if (uplink_kind_of(n->uplink) == UPLINK_HOST && why[0] != '\0')
		warn(n, NETWORK_DEGRADED "the uplink may not work: %s", why);
	return 0;
}

static int watch_rules(struct network *n, struct cj_error *err)
{
	const int *fds = n->handles.fds;
	if (denials_listen(fds[SLOT_JAIL_LOG], err) < 0 ||
	    denials_listen(fds[SLOT_GATEWAY_LOG], err) < 0 ||
	    watch_fd(n, SOURCE_JAIL_LOG, fds[SLOT_JAIL_LOG], err) < 0 ||
	    watch_fd(n, SOURCE_GATEWAY_LOG, fds[SLOT_GATEWAY_LOG], err) < 0)
		return -err->code;
	return watch_fd(n, SOURCE_HOSTADDRS, hostaddrs_fd(n->hostaddrs), err);
}

static int build_public(struct network *n, unsigned number, struct cj_error *err)
{
	if (hostaddrs_open(&n->hostaddrs, err) < 0 || load_rules(n, err) < 0)
		return -err->code;
	n->is_filtered = true;
	if (watch_rules(n, err) < 0 || start_uplink(n, number, err) < 0)
		return -err->code;
	return join_links(n, err);
}

/* A kernel without nf_tables or veth can't enforce the rules: then the jail has no network. */
static int give_up_public(struct network *n, struct cj_error *err)
{
	if (err->code != EOPNOTSUPP)
		return -err->code;
	warn(n, NETWORK_DEGRADED "the jail has none: %s%s%s%s", err->msg, err->hint[0] ? " (" : "",
	     err->hint, err->hint[0] ? ")" : "");
	n->is_filtered = false;
	uplink_stop(&n->uplink);
	hostaddrs_close(&n->hostaddrs);
	for (size_t i = 0; i < SLOT_LISTENERS; i++)
		cj_close(&n->handles.fds[i]);
	return 0;
}

static int build_forward(struct network *n, struct cj_error *err)
{
	if (n->spec->nports == 0)
		return 0;
	if (forward_create(&n->handles.fds[SLOT_LISTENERS], n->spec->ports, n->spec->nports,
			   &n->forward, err) < 0)
		return -err->code;
	for (size_t i = 0; i < n->spec->nports; i++)
		n->handles.fds[SLOT_LISTENERS + i] = -1; /* owned by the forward */
	return watch_fd(n, SOURCE_FORWARD, forward_fd(n->forward), err);
}

static int build(struct network *n, unsigned number, struct cj_error *err)
{
	n->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (n->epoll_fd < 0)
		return cj_fail(err, errno, "create an epoll");
	if (n->spec->mode == NETWORK_PUBLIC && build_public(n, number, err) < 0 &&
	    give_up_public(n, err) < 0)
		return -err->code;
	return build_forward(n, err);
}

int network_build(const struct network_setup *setup, struct network_handles *handles,
		  struct network **out, struct cj_error *err)
{
	struct network *n = calloc(1, sizeof(*n));
	if (!n) {
		network_handles_fini(handles);
		return cj_fail(err, ENOMEM, "create a network");
	}
	n->spec = setup->spec;
	n->endpoints = setup->endpoints;
	n->callbacks = setup->callbacks;
	n->handles = *handles;
	network_handles_init(handles);
	n->epoll_fd = -1;
	if (build(n, setup->number, err) < 0) {
		network_destroy(&n);
		return -err->code;
	}
	*out = n;
	return 0;
}

/* Rejected at once, a program need not wait for a timeout. */
static int reject_unreachable(struct network *n, struct cj_error *err)
{
	int rules_fd = n->handles.fds[SLOT_JAIL_RULES];
	if (uplink_kind_of(n->uplink) == UPLINK_NONE && firewall_unreachable(rules_fd, 4, err) < 0)
		return -err->code;
	return uplink_has_ipv6(n->uplink) ? 0 : firewall_unreachable(rules_fd, 6, err);
}

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
	return watch_fd(n, SOURCE_RESOLVER, resolver_fd(n->resolver), err);
}

int network_await(struct network *n, struct cj_error *err)
{
	if (!n->uplink)
		return 0;
	char why[UPLINK_WHY_MAX] = "";
	if (uplink_await(n->uplink, why, err) < 0)
		return cj_wrap(err, "wait for the uplink");
	if (uplink_kind_of(n->uplink) == UPLINK_NONE && n->spec->uplink != UPLINK_NONE)
		warn(n, NETWORK_DEGRADED "nothing leads out of the jail: %s", why);
	if (reject_unreachable(n, err) < 0)
		return -err->code;
	if (uplink_fd(n->uplink) >= 0 && watch_fd(n, SOURCE_UPLINK, uplink_fd(n->uplink), err) < 0)
		return -err->code;
	return build_resolver(n, err);
}

bool network_is_filtered(const struct network *n)
{
	return n->is_filtered;
}

enum uplink_kind network_uplink(const struct network *n)
{
	return n->uplink ? uplink_kind_of(n->uplink) : UPLINK_NONE;
}

/* --- serving ------------------------------------------------------------------------- */

/* Returns how many messages there were.  Errors are ignored: the counters have all denials. */
static int receive_denials(struct network *n, int log_fd)
{
	struct cj_error ignored;
	return denials_receive(log_fd, &n->denials, n->callbacks.denied, n->callbacks.context,
			       &ignored);
}

static int on_jail_log(struct network *n, struct cj_error *err)
{
	(void)err;
	(void)receive_denials(n, n->handles.fds[SLOT_JAIL_LOG]);
	return 0;
}

static int on_gateway_log(struct network *n, struct cj_error *err)
{
	(void)err;
	(void)receive_denials(n, n->handles.fds[SLOT_GATEWAY_LOG]);
	return 0;
}

static int close_new_addresses(struct network *n, struct cj_error *err)
{
	size_t first = 0, count = 0;
	if (hostaddrs_receive(n->hostaddrs, &first, err) < 0)
		return -err->code;
	const struct ip *list = hostaddrs_list(n->hostaddrs, &count);
	for (size_t i = first; i < count; i++)
		if (firewall_close_host(n->handles.fds[SLOT_JAIL_RULES], &list[i], err) < 0 ||
		    firewall_close_host(n->handles.fds[SLOT_GATEWAY_RULES], &list[i], err) < 0)
			return cj_wrap(err, "close a new address of this host's");
	return 0;
}

/* If a new address of the host can't be closed, all destinations are closed; the program goes
 * on. */
static int on_hostaddrs(struct network *n, struct cj_error *err)
{
	int rules_fd = n->handles.fds[SLOT_JAIL_RULES];
	if (close_new_addresses(n, err) == 0)
		return 0;
	unwatch_fd(n, hostaddrs_fd(n->hostaddrs));
	warn(n, "nothing new leads out of the jail's network any more: %s", err->msg);
	*err = (struct cj_error){ 0 };
	return firewall_unreachable(rules_fd, 4, err) < 0 ? -err->code
							  : firewall_unreachable(rules_fd, 6, err);
}

static void lose_uplink(struct network *n)
{
	char why[UPLINK_WHY_MAX] = "";
	unwatch_fd(n, uplink_fd(n->uplink));
	uplink_lost(n->uplink, why);
	warn(n, "nothing leads out of the jail's network any more: %s", why);
}

static int on_uplink(struct network *n, struct cj_error *err)
{
	lose_uplink(n);
	resolver_destroy(&n->resolver);
	return reject_unreachable(n, err);
}

static int on_forward(struct network *n, struct cj_error *err)
{
	return forward_serve(n->forward, err);
}

static int on_resolver(struct network *n, struct cj_error *err)
{
	return n->resolver ? resolver_serve(n->resolver, err) : 0;
}

static int (*const handlers[SOURCE_COUNT])(struct network *n, struct cj_error *err) = {
	[SOURCE_JAIL_LOG] = on_jail_log,   [SOURCE_GATEWAY_LOG] = on_gateway_log,
	[SOURCE_HOSTADDRS] = on_hostaddrs, [SOURCE_UPLINK] = on_uplink,
	[SOURCE_FORWARD] = on_forward,     [SOURCE_RESOLVER] = on_resolver,
};

int network_fd(const struct network *n)
{
	return n->epoll_fd;
}

int network_serve(struct network *n, struct cj_error *err)
{
	struct epoll_event events[SERVE_MAX];
	int count = epoll_wait(n->epoll_fd, events, SERVE_MAX, 0);
	if (count < 0 && errno != EINTR)
		return cj_fail(err, errno, "wait for the network");
	for (int i = 0; i < count; i++)
		if (handlers[events[i].data.u32](n, err) < 0)
			return -err->code;
	return 0;
}

/* --- the end ------------------------------------------------------------------------- */

static void receive_the_rest(struct network *n, int log_fd)
{
	for (unsigned i = 0; i < REPORT_MAX && receive_denials(n, log_fd) > 0; i++)
		;
}

const struct denials *network_report(struct network *n)
{
	/* At the end of the run network_serve() is no longer called. */
	if (n->uplink && uplink_is_ending(n->uplink))
		lose_uplink(n);
	if (!n->is_filtered)
		return &n->denials;
	struct cj_error err = { 0 };
	uint64_t counts[NET_CLASS_COUNT] = { 0 };
	receive_the_rest(n, n->handles.fds[SLOT_JAIL_LOG]);
	receive_the_rest(n, n->handles.fds[SLOT_GATEWAY_LOG]);
	if (firewall_read_counters(n->handles.fds[SLOT_JAIL_RULES], counts, &err) < 0 ||
	    firewall_read_counters(n->handles.fds[SLOT_GATEWAY_RULES], counts, &err) < 0)
		warn(n, "the count of denied packets may be too low: %s", err.msg);
	denials_settle(&n->denials, counts);
	return &n->denials;
}

void network_destroy(struct network **n)
{
	if (!*n)
		return;
	resolver_destroy(&(*n)->resolver);
	forward_destroy(&(*n)->forward);
	uplink_stop(&(*n)->uplink);
	hostaddrs_close(&(*n)->hostaddrs);
	network_handles_fini(&(*n)->handles);
	cj_close(&(*n)->epoll_fd);
	free(*n);
	*n = NULL;
}
