/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's part: holds a network, serves it, reports.  Acts. */
#include "netns/network.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "netns/firewall/firewall.h"
#include "netns/network_parts.h"
#include "runtime/base/scope.h"

#define SERVE_MAX  8  /* events of one call of network_serve() */
#define REPORT_MAX 64 /* reads of the remaining log at the end */

const char *const network_mode_names[NETWORK_MODE_COUNT] = {
	[NETWORK_NONE] = "none",
	[NETWORK_PUBLIC] = "public",
};

const char *const network_state_names[NETWORK_STATE_COUNT] = {
	[NETWORK_UNUSED] = "unused",
	[NETWORK_READY] = "ready",
	[NETWORK_FAILED] = "failed",
};

void network_warn(const struct network *n, const char *fmt, ...)
{
	char text[UPLINK_WHY_MAX + 128];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	n->callbacks.warn(n->callbacks.context, text);
}

void network_failed(struct network *n, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(n->why, sizeof(n->why), fmt, ap);
	va_end(ap);
	n->state = NETWORK_FAILED;
}

static int open_epoll(struct network *n, struct cj_error *err)
{
	if (n->epoll_fd < 0)
		n->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return n->epoll_fd < 0 ? cj_fail(err, errno, "create an epoll") : 0;
}

int network_watch_fd(struct network *n, enum network_source source, int fd, struct cj_error *err)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = source };
	if (open_epoll(n, err) < 0)
		return -err->code;
	if (epoll_ctl(n->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return cj_fail(err, errno, "watch the network");
	return 0;
}

static void unwatch_fd(struct network *n, int fd)
{
	(void)epoll_ctl(n->epoll_fd, EPOLL_CTL_DEL, fd, NULL); /* it was there: cannot fail */
}

/* --- its life ------------------------------------------------------------------------ */

static int build_forward(struct network *n, struct cj_error *err)
{
	if (n->spec->nports == 0)
		return 0;
	if (forward_create(&n->handles.fds[SLOT_LISTENERS], n->spec->ports, n->spec->nports,
			   &n->forward, err) < 0)
		return -err->code;
	for (size_t i = 0; i < n->spec->nports; i++)
		n->handles.fds[SLOT_LISTENERS + i] = -1; /* owned by the forward */
	return network_watch_fd(n, SOURCE_FORWARD, forward_fd(n->forward), err);
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
	n->endpoints = setup->endpoints;
	n->number = setup->number;
	n->callbacks = setup->callbacks;
	n->handles = *handles;
	network_handles_init(handles);
	n->epoll_fd = -1;
	if (build_forward(n, err) < 0) {
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
	network_failed(n, "nothing new leads out of the jail's network any more: %s", err->msg);
	network_warn(n, "%s", n->why);
	*err = (struct cj_error){ 0 };
	return firewall_unreachable(rules_fd, 4, err) < 0 ? -err->code
							  : firewall_unreachable(rules_fd, 6, err);
}

int network_reject_unreachable(struct network *n, struct cj_error *err)
{
	int rules_fd = n->handles.fds[SLOT_JAIL_RULES];
	if (uplink_kind_of(n->uplink) == UPLINK_NONE && firewall_unreachable(rules_fd, 4, err) < 0)
		return -err->code;
	return uplink_has_ipv6(n->uplink) ? 0 : firewall_unreachable(rules_fd, 6, err);
}

static void lose_uplink(struct network *n)
{
	unwatch_fd(n, uplink_fd(n->uplink));
	uplink_lost(n->uplink);
	network_failed(n, "nothing leads out of the jail's network any more: %s",
		       uplink_why(n->uplink));
	network_warn(n, "%s", n->why);
}

static int on_uplink(struct network *n, struct cj_error *err)
{
	lose_uplink(n);
	resolver_destroy(&n->resolver);
	return network_reject_unreachable(n, err);
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
	if (!n->is_filtered)
		return 0;
	int rc = firewall_read_counters(n->handles.fds[SLOT_JAIL_RULES], counts, err);
	if (rc == 0)
		rc = firewall_read_counters(n->handles.fds[SLOT_GATEWAY_RULES], counts, err);
	receive_the_rest(n, n->handles.fds[SLOT_JAIL_LOG]);
	receive_the_rest(n, n->handles.fds[SLOT_GATEWAY_LOG]);
	denials_settle(&n->denials, counts);
	return rc;
}

const struct denials *network_report(struct network *n)
{
	struct cj_error err = { 0 };
	/* At the end of the run network_serve() is no longer called. */
	if (n->uplink && !n->is_building && uplink_is_ending(n->uplink))
		lose_uplink(n);
	if (count_denials(n, &err) < 0)
		network_warn(n, "the count of denied packets may be too low: %s", err.msg);
	return &n->denials;
}

int network_take_denials(struct network *n, struct denials *out, struct cj_error *err)
{
	int rc = count_denials(n, err);
	*out = n->denials;
	n->denials.count = 0; /* counted[] goes on, as the kernel's counters do */
	return rc;
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
