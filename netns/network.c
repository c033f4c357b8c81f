/* SPDX-License-Identifier: Apache-2.0 */
#include "netns/network.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "netns/address/addresses.h"
#include "netns/firewall/firewall.h"
#include "netns/network_parts.h"
#include "netns/relay/forward.h"
#include "netns/relay/tcp_pool.h"
#include "netns/upstream/http_upstream.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"

#define SERVE_MAX 8 /* events of one call of network_serve() */

#define RESOLV_CONF "/etc/resolv.conf"
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

enum network_source {
	SOURCE_GATEWAY,
	SOURCE_ASKS,      /* the gateway wants a socket */
	SOURCE_HOSTADDRS, /* an interface of the host got an address */
	SOURCE_UPLINK,    /* the helper died */
	SOURCE_FORWARD,
	SOURCE_UPSTREAM
};

__attribute__((format(printf, 2, 3))) static void warn(const struct network *n, const char *fmt,
						       ...)
{
	char text[NETWORK_WHY_MAX + 64]; /* a reason, and what stands before it */
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	n->callbacks.warn(n->callbacks.context, text);
}

void network_set_failed(struct network *n, const char *prefix, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(n->why, sizeof(n->why), fmt, ap);
	va_end(ap);
	n->state = NETWORK_FAILED;
	warn(n, "%s%s", prefix, n->why);
}

static int watch_fd(struct network *n, enum network_source source, int fd, struct cj_error *err)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = source };
	if (n->epoll_fd < 0)
		n->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (n->epoll_fd < 0)
		return cj_fail(err, errno, "create an epoll");
	if (epoll_ctl(n->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return cj_fail(err, errno, "watch the network");
	return 0;
}

static void unwatch_fd(struct network *n, int fd)
{
	(void)epoll_ctl(n->epoll_fd, EPOLL_CTL_DEL, fd, NULL); /* fails if it was not there */
}

static int reject(struct network *n, int family, struct cj_error *err)
{
	return loader_unreachable(&n->loader, family, err);
}

/* Rejected at once, a program need not wait for a timeout. */
static int reject_unreachable(struct network *n, struct cj_error *err)
{
	if (network_uplink(n) == UPLINK_NONE && reject(n, 4, err) < 0)
		return -err->code;
	return n->uplink && uplink_has_ipv6(n->uplink) ? 0 : reject(n, 6, err);
}

static_assert(NETWORK_PORTS_MAX <= TCP_POOL_LISTENERS_MAX, "forward_create() takes all ports");

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

static int build_upstream(struct network *n, struct cj_error *err)
{
	int *listeners = &n->handles.fds[SLOT_LISTENERS + n->spec->nports];
	if (n->spec->nupstreams == 0)
		return 0;
	if (http_upstream_create(n->spec->upstreams, n->spec->nupstreams, listeners, &n->upstream,
				 err) < 0)
		return -err->code;
	return watch_fd(n, SOURCE_UPSTREAM, http_upstream_fd(n->upstream), err);
}

const struct http_upstream *network_upstream(const struct network *n)
{
	return n->upstream;
}

static int make_names(struct network *n, struct cj_error *err)
{
	if (n->spec->mode != NETWORK_PUBLIC || !n->spec->is_live)
		return 0;
	n->names = calloc(1, sizeof(*n->names));
	if (!n->names)
		return cj_fail(err, ENOMEM, "make room for the addresses of names");
	names_change(n->names, &n->rules, 0);
	return 0;
}

int network_create(const struct network_setup *setup, struct network_handles *handles,
		   struct network **out, struct cj_error *err)
{
	struct network *n = calloc(1, sizeof(*n));
	if (!n) {
		network_handles_fini(handles);
		return cj_fail(err, ENOMEM, "create a network");
	}
	n->spec = setup->spec;
	n->rules = (struct names_rules){
		.is_list = n->spec->nallow > 0,
		.allow = n->spec->allow,
		.nallow = n->spec->nallow,
		.deny = n->spec->deny,
		.ndeny = n->spec->ndeny,
		.checks_names =
		    network_checks_names(n->spec->allow_by, n->spec->allow, n->spec->nallow),
		.endpoints = setup->endpoints,
	};
	n->number = setup->number;
	n->callbacks = setup->callbacks;
	n->handles = *handles;
	network_handles_init(handles);
	n->gateway = GATEWAY_NONE;
	n->loader = LOADER_NONE;
	n->epoll_fd = -1;
	if (make_names(n, err) < 0 || build_forward(n, err) < 0 || build_upstream(n, err) < 0) {
		network_destroy(&n);
		return -err->code;
	}
	*out = n;
	return 0;
}

bool network_is_filtered(const struct network *n)
{
	return n->is_filtered;
}

enum uplink_kind network_uplink(const struct network *n)
{
	return n->uplink ? uplink_kind_of(n->uplink) : UPLINK_NONE;
}

enum network_state network_state(const struct network *n, const char **out_why)
{
	*out_why = n->is_building ? "the run ended before the uplink was ready" : n->why;
	if (n->is_building || n->state == NETWORK_FAILED)
		return NETWORK_FAILED;
	*out_why = NULL;
	return n->state;
}

/* Building, up to the start of the uplink.
 *
 * Order: the rules are loaded in both namespaces before the veth pair between them is up.  So no
 * packet is ever unfiltered.  When a build fails, the jail's rules are first changed to refuse
 * every packet, and they stay; then the uplink is removed, then the gateway.
 */

static_assert(SLOT_JAIL_RULES + LOADER_OF_GATEWAY == SLOT_GATEWAY_RULES &&
		  SLOT_JAIL_RULES + LOADER_JAIL_ROUTE == SLOT_JAIL_ROUTE &&
		  SLOT_JAIL_RULES + LOADER_GATEWAY_ROUTE == SLOT_GATEWAY_ROUTE,
	      "the loader's sockets, in its order");

static int load_rules(struct network *n, struct cj_error *err)
{
	const struct firewall_spec jail = network_firewall(n, LOADER_OF_JAIL, &n->rules),
				   gateway = network_firewall(n, LOADER_OF_GATEWAY, &n->rules);
	if (n->names)
		n->names->has_ipv6 = n->handles.has_ipv6;
	if (loader_give_sockets(&n->loader, &n->handles.fds[SLOT_JAIL_RULES], LOADER_KEPT, err) < 0)
		return cj_wrap(err, "load rules");
	cj_close(&n->handles.fds[SLOT_JAIL_RULES]); /* the others tell which namespaces they are */
	cj_close(&n->handles.fds[SLOT_GATEWAY_RULES]);
	if (loader_apply_jail(&n->loader, &jail, err) < 0)
		return cj_wrap(err, "the jail's rules");
	if (loader_apply_gateway(&n->loader, &gateway, err) < 0)
		return cj_wrap(err, "the gateway's rules");
	return 0;
}

static int join_links(struct network *n, struct cj_error *err)
{
	const struct links_spec spec = {
		.addresses = addresses_make(n->handles.has_ipv6),
		.mtu = uplink_kind_of(n->uplink) == UPLINK_HOST ? MTU_HOST : LINK_MTU_MAX,
	};
	auto_fd int netns_fd = ioctl(n->handles.fds[SLOT_JAIL_ROUTE], SIOCGSKNS);
	if (netns_fd < 0)
		return cj_fail(err, errno, "open the jail's network namespace");
	return loader_join_links(&n->loader, netns_fd, &spec, err);
}

static int start_uplink(struct network *n, struct cj_error *err)
{
	const struct uplink_spec spec = {
		.kind = n->spec->uplink,
		.number = n->number,
		.gateway_fd = n->handles.fds[SLOT_GATEWAY_ROUTE],
		.has_ipv6 = n->handles.has_ipv6,
		.loader = &n->loader,
		.allowed = n->rules.endpoints->items,
		/* other lists need no rules on the host: jails with them may share a table there */
		.nallowed = n->rules.endpoints->opens_closed_range ? n->rules.endpoints->count : 0,
	};
	if (uplink_start(&spec, &n->uplink, err) < 0)
		return cj_wrap(err, "start the uplink");
	if (uplink_kind_of(n->uplink) == UPLINK_HOST && uplink_warning(n->uplink)[0] != '\0')
		warn(n, NETWORK_DEGRADED "the uplink may not work: %s", uplink_warning(n->uplink));
	return 0;
}

static int take_gateway(struct network *n, struct cj_error *err)
{
	auto_step_msg struct step_msg msg = { 0 };
	struct gateway_opened opened;
	if (network_await_gateway(n, GATEWAY_OPENED, GATEWAY_ANSWER_MS, &msg, err) < 0)
		return gateway_hint(err);
	if (msg.size != sizeof(opened))
		return cj_fail(err, EPROTO, "receive the gateway's sockets");
	memcpy(&opened, msg.data, sizeof(opened));
	network_handles_unpack(&n->handles, opened.slots & ((1u << SLOT_JAIL) - 1), msg.fds,
			       msg.nfds);
	step_msg_fini(&msg);
	n->gateway.dialer_pidfd = take_fd(&n->handles.fds[SLOT_DIALER]);
	n->handles.has_ipv6 = opened.has_ipv6;
	cj_close(&n->handles.fds[SLOT_JAIL]);
	return loader_take(&n->loader, err);
}

/* It has given up what it does not need, while the rules were loaded. */
static int watch_gateway(struct network *n, struct cj_error *err)
{
	auto_step_msg struct step_msg msg = { 0 };
	if (network_await_gateway(n, GATEWAY_READY, GATEWAY_ANSWER_MS, &msg, err) < 0 ||
	    watch_fd(n, SOURCE_GATEWAY, n->gateway.link.sock_fd, err) < 0)
		return -err->code;
	step_limit_wait(n->gateway.link.sock_fd, GATEWAY_SEND_MS);
	return watch_fd(n, SOURCE_ASKS, n->gateway.asks.sock_fd, err);
}

static int build_public(struct network *n, struct cj_error *err)
{
	const struct gateway_wants wants = { network_has_dns(n->spec), network_has_proxy(n->spec) };
	const int jail_fd = n->handles.fds[SLOT_JAIL];
	if (gateway_start(&wants, jail_fd, &n->gateway, &n->loader, err) < 0)
		return cj_wrap(err, "make the gateway");
	if (hostaddrs_open(&n->hostaddrs, err) < 0) /* while it starts */
		return -err->code;
	if (take_gateway(n, err) < 0)
		return cj_wrap(err, "make the gateway");
	if (load_rules(n, err) < 0)
		return -err->code;
	n->is_filtered = true;
	if (watch_gateway(n, err) < 0 ||
	    watch_fd(n, SOURCE_HOSTADDRS, hostaddrs_fd(n->hostaddrs), err) < 0 ||
	    start_uplink(n, err) < 0 || loader_join(&n->loader, err) < 0)
		return -err->code;
	return join_links(n, err);
}

static void stop_uplink(struct network *n)
{
	if (n->uplink)
		unwatch_fd(n, uplink_fd(n->uplink));
	uplink_stop(&n->uplink);
}

static void stop_gateway(struct network *n)
{
	unwatch_fd(n, n->gateway.link.sock_fd);
	unwatch_fd(n, n->gateway.asks.sock_fd);
	gateway_stop(&n->gateway);
}

/* Refuses every packet of the jail.  False: its rules can't be changed. */
static bool refuse_all(struct network *n)
{
	struct cj_error ignored;
	return !n->is_filtered || (reject(n, 4, &ignored) == 0 && reject(n, 6, &ignored) == 0);
}

void network_give_up(struct network *n, const struct cj_error *why)
{
	char text[CJ_ERROR_TEXT_MAX];

	/* The kernel removes the gateway and its link a moment later.  Nothing may leave until
	 * then. */
	(void)refuse_all(n);
	if (n->uplink)
		uplink_cut(n->uplink);
	network_set_failed(n, NETWORK_DEGRADED "the jail has none: ", "%s",
			   cj_error_text(why, text));
	n->is_building = false;
	n->is_filtered = false;
	stop_uplink(n);
	stop_gateway(n);
	loader_stop(&n->loader);
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

/* Without a way out there is no name server to ask, and each query fails at once. */
static int serve_names(struct network *n, struct cj_error *err)
{
	auto_step_msg struct step_msg msg = { 0 };
	if (!network_has_dns(n->spec))
		return 0;
	if (uplink_kind_of(n->uplink) != UPLINK_NONE &&
	    name_servers_read(RESOLV_CONF, &n->name_servers, err) < 0)
		return -err->code;
	const struct gateway_serve how = { .name_servers = n->name_servers.count,
					   .are_filtered = names_are_filtered(&n->rules) };
	if (step_tell(&n->gateway.link, GATEWAY_SERVE, &how, sizeof(how), NULL, 0, err) < 0)
		return -err->code;
	return network_await_gateway(n, GATEWAY_SERVED, GATEWAY_ANSWER_MS, &msg, err);
}

static int settle(struct network *n, struct cj_error *err)
{
	if (n->state != NETWORK_FAILED)
		n->state = NETWORK_READY;
	if (uplink_kind_of(n->uplink) == UPLINK_NONE && n->spec->uplink != UPLINK_NONE)
		network_set_failed(n, NETWORK_DEGRADED, "nothing leads out of the jail: %s",
				   uplink_why(n->uplink));
	if (reject_unreachable(n, err) < 0)
		return -err->code;
	int uplink_end_fd = uplink_fd(n->uplink);
	if (uplink_end_fd >= 0 && watch_fd(n, SOURCE_UPLINK, uplink_end_fd, err) < 0)
		return -err->code;
	if (serve_names(n, err) < 0)
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

static int close_new_addresses(struct network *n, struct cj_error *err)
{
	size_t first = 0, count = 0;
	if (hostaddrs_receive(n->hostaddrs, &first, err) < 0)
		return -err->code;
	const struct ip *list = hostaddrs_list(n->hostaddrs, &count);
	for (size_t i = first; i < count; i++)
		if (loader_close_host(&n->loader, &list[i], err) < 0)
			return cj_wrap(err, "close a new address of this host's");
	return 0;
}

static void lose_uplink(struct network *n)
{
	unwatch_fd(n, uplink_fd(n->uplink));
	uplink_lost(n->uplink);
	network_set_failed(n, "", "nothing leads out of the jail's network any more: %s",
			   uplink_why(n->uplink));
}

void network_lose_gateway(struct network *n, const struct cj_error *why)
{
	struct cj_error ignored; /* without it a program waits longer, and reaches nothing either */
	if (n->state == NETWORK_FAILED && n->gateway.pidfd < 0 && !n->uplink) /* already */
		return;
	if (n->uplink)
		uplink_cut(n->uplink); /* the sockets for links keep the gateway */
	stop_uplink(n);
	stop_gateway(n);
	n->is_building = false;
	network_set_failed(n, "", "nothing leads out of the jail's network any more: %s", why->msg);
	(void)!reject_unreachable(n, &ignored);
}

/* If a new address of the host can't be closed, all destinations are closed; the program goes
 * on. */
static void on_hostaddrs(struct network *n)
{
	struct cj_error why = { 0 };
	if (close_new_addresses(n, &why) == 0)
		return;
	unwatch_fd(n, hostaddrs_fd(n->hostaddrs));
	network_set_failed(n, "", "nothing new leads out of the jail's network any more: %s",
			   why.msg);
	if (!refuse_all(n))
		network_lose_gateway(n, &why);
}

static void on_uplink(struct network *n)
{
	struct cj_error why = { 0 };
	lose_uplink(n);
	if (step_tell(&n->gateway.link, GATEWAY_LOSE, NULL, 0, NULL, 0, &why) < 0 ||
	    reject_unreachable(n, &why) < 0)
		network_lose_gateway(n, &why);
}

static void serve_upstream(struct network *n)
{
	struct cj_error why = { 0 };
	char text[CJ_ERROR_TEXT_MAX];
	if (http_upstream_serve(n->upstream, &why) < 0)
		warn(n, "%s", cj_error_text(&why, text));
}

static int serve_source(struct network *n, enum network_source source, struct cj_error *err)
{
	struct cj_error why = { 0 };
	int rc = 0;
	switch (source) {
	case SOURCE_FORWARD:
		return forward_serve(n->forward, err);
	case SOURCE_UPSTREAM:
		serve_upstream(n);
		return 0;
	case SOURCE_HOSTADDRS:
		on_hostaddrs(n);
		return 0;
	case SOURCE_UPLINK:
		if (n->gateway.pidfd >= 0)
			on_uplink(n);
		return 0;
	case SOURCE_GATEWAY:
	case SOURCE_ASKS:
		if (n->gateway.pidfd < 0) /* lost by an earlier event of the same call */
			return 0;
		rc = source == SOURCE_GATEWAY ? network_take_events(n, &why)
					      : network_answer_ask(n, &why);
		if (rc < 0)
			network_lose_gateway(n, &why);
		return 0;
	}
	return 0;
}

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
		if (serve_source(n, events[i].data.u32, err) < 0)
			return -err->code;
	return 0;
}

uint64_t network_denied_so_far(const struct network *n)
{
	uint64_t all = 0;

	for (unsigned i = 0; i < NET_CLASS_COUNT; i++)
		all += n->denials.counted[i];
	return all;
}

/* The counters first: a packet that is denied meanwhile is in the log, and is not counted twice. */
static int count_denials(struct network *n, struct cj_error *err)
{
	uint64_t counts[NET_CLASS_COUNT] = { 0 };
	struct cj_error why = { 0 };
	if (!n->is_filtered)
		return 0;
	int rc = loader_read_counters(&n->loader, FIREWALL_TABLE, counts, err);
	if (n->gateway.pidfd >= 0 && network_drain(n, &why) < 0)
		network_lose_gateway(n, &why);
	counts[NET_NAME] = n->denied_names;
	denials_settle(&n->denials, counts);
	return rc;
}

const struct denials *network_report(struct network *n)
{
	struct cj_error err = { 0 };
	/* At the end of the run network_serve() is no longer called. */
	if (n->uplink && !n->is_building && uplink_is_ending(n->uplink))
		lose_uplink(n);
	if (n->upstream && http_upstream_is_ending(n->upstream))
		serve_upstream(n);
	if (count_denials(n, &err) < 0)
		warn(n, "the count of denied packets may be too low: %s", err.msg);
	return &n->denials;
}

int network_take_denials(struct network *n, struct denials *out, struct cj_error *err)
{
	int rc = count_denials(n, err);
	if (rc < 0 && n->gateway.pidfd >= 0 && loader_has_ended(&n->loader))
		network_lose_gateway(n, err);
	*out = n->denials;
	n->denials.count = 0; /* counted[] goes on, as the kernel's counters do */
	return rc;
}

void network_destroy(struct network **n)
{
	if (!*n)
		return;
	forward_destroy(&(*n)->forward);
	http_upstream_destroy(&(*n)->upstream);
	stop_uplink(*n);
	stop_gateway(*n);
	loader_stop(&(*n)->loader);
	hostaddrs_close(&(*n)->hostaddrs);
	network_handles_fini(&(*n)->handles);
	cj_close(&(*n)->epoll_fd);
	cj_free(&(*n)->names);
	arena_fini(&(*n)->rules_arena);
	free(*n);
	*n = NULL;
}
