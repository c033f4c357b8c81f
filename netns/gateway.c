/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gateway's process.  One that has joined a user namespace can't leave it, and what parses the
 * program's bytes should own nothing: so a program of its own does both.
 */
#include "netns/gateway.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/prctl.h>

#include "netns/firewall/denials.h"
#include "netns/gateway_parts.h"
#include "netns/nftables/nfnl.h"
#include "netns/relay/resolver.h"
#include "netns/uplink/uplink_parts.h"
#include "runtime/base/child.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"

#define SERVE_MAX 8  /* events handled between two waits */
#define DRAIN_MAX 64 /* reads of the remaining log */

enum gateway_source {
	SOURCE_LINK,
	SOURCE_JAIL_LOG,
	SOURCE_GATEWAY_LOG,
	SOURCE_RESOLVER,
	SOURCE_PROXY
};

/* The process' own state. */
struct gateway_process {
	struct resolver_names filter; /* the supervisor, of names */
	struct step_link link, asks;
	struct step_link dialer; /* sock_fd -1: no name is checked */
	struct network_handles handles;
	int epoll_fd;
	struct resolver *resolver;
	struct name_proxy *proxy;
	struct denials denials; /* since the last drain */
};

static int watch_fd(const struct gateway_process *p, enum gateway_source source, int fd,
		    struct cj_error *err)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = source };
	if (epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return cj_fail(err, errno, "watch the network");
	return 0;
}

/* In the gateway's namespace.  IPv6 may be missing in the kernel. */
static int open_proxy(struct gateway_process *p, struct cj_error *err)
{
	int *fds = p->handles.fds;
	fds[SLOT_PROXY4] = name_proxy_listen(4, err);
	if (fds[SLOT_PROXY4] < 0)
		return -err->code;
	if (p->handles.has_ipv6)
		fds[SLOT_PROXY6] = name_proxy_listen(6, err);
	if (p->handles.has_ipv6 && fds[SLOT_PROXY6] < 0)
		return -err->code;
	return gateway_start_dialer(&p->dialer, &fds[SLOT_DIALER], err);
}

static int open_both(struct gateway_process *p, const struct gateway_wants *wants,
		     struct cj_error *err)
{
	int *names_fd = &p->handles.fds[SLOT_DNS_UDP];
	auto_fd int loader_fd = LOADER_FD;
	if (gateway_fork_loader(loader_fd, err) < 0)
		return -err->code;
	auto_fd int netns_fd =
	    uplink_join_owner(NAMES_FD, err); /* the jail's socket, until below */
	/* After the join: a change of credentials clears the request. */
	if (netns_fd < 0 || child_die_with_parent(LINK_FD, err) < 0 ||
	    gateway_open_own(wants->has_dns, &p->handles, err) < 0 ||
	    (wants->has_proxy && open_proxy(p, err) < 0) ||
	    gateway_open_jail(netns_fd, &p->handles, err) < 0)
		return -err->code;
	if (dup3(wants->has_dns ? *names_fd : STDIN_FILENO, NAMES_FD, O_CLOEXEC) < 0)
		return cj_fail(err, errno, "move the socket for names");
	if (wants->has_dns) {
		cj_close(names_fd);
		*names_fd = NAMES_FD;
	}
	return 0;
}

static int watch_log(struct gateway_process *p, enum gateway_source source, enum network_slot slot,
		     struct cj_error *err)
{
	const int log_fd = p->handles.fds[slot];
	return denials_listen(log_fd, err) < 0 ? -err->code : watch_fd(p, source, log_fd, err);
}

static int watch_link(struct gateway_process *p, struct cj_error *err)
{
	p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (p->epoll_fd < 0)
		return cj_fail(err, errno, "create an epoll");
	return watch_fd(p, SOURCE_LINK, p->link.sock_fd, err);
}

/* The supervisor gets the sockets for rules and links, and this process keeps the others. */
static int hand_over(struct gateway_process *p, struct cj_error *err)
{
	static const enum network_slot given[] = { SLOT_GATEWAY_ROUTE, SLOT_GATEWAY_RULES,
						   SLOT_JAIL_ROUTE, SLOT_JAIL_RULES, SLOT_DIALER };
	struct network_handles theirs;
	int fds[SLOT_COUNT];
	size_t count = 0;
	network_handles_init(&theirs);
	for (size_t i = 0; i < COUNT_OF(given); i++)
		theirs.fds[given[i]] = take_fd(&p->handles.fds[given[i]]);
	const struct gateway_opened opened = {
		.slots = network_handles_pack(&theirs, fds, &count),
		.has_ipv6 = p->handles.has_ipv6,
	};
	int rc = step_tell(&p->link, GATEWAY_OPENED, &opened, sizeof(opened), fds, count, err);
	network_handles_fini(&theirs);
	return rc;
}

/* --- what the supervisor asks for ---------------------------------------------------------- */

static int tell(const struct gateway_process *p, enum gateway_step step, const void *data,
		size_t size, struct cj_error *err)
{
	return step_tell(&p->link, step, data, size, NULL, 0, err);
}

void gateway_ask(const struct step_link *link, const struct gateway_question *q,
		 struct step_msg *out_answer)
{
	struct cj_error err = { 0 };
	if (step_tell(link, q->step, q->data, q->size, NULL, 0, &err) < 0 ||
	    step_await(link, q->answer, out_answer, &err) < 0 || out_answer->size != q->answer_size)
		_exit(0);
}

static int ask_for_socket(void *context, size_t server, int type)
{
	const struct gateway_process *p = context;
	const struct gateway_ask ask = { .server = server, .type = type };
	const struct gateway_question q = { GATEWAY_ASK, &ask, sizeof(ask), GATEWAY_SOCKET, 0 };
	auto_step_msg struct step_msg msg = { 0 };
	gateway_ask(&p->asks, &q, &msg);
	return msg.nfds > 0 ? take_fd(&msg.fds[0]) : -1;
}

/* The supervisor's answer about a name, and the addresses that it has. */
static uint32_t ask_about(const struct gateway_process *p, const struct gateway_name *name)
{
	uint32_t open = 0;
	const struct gateway_question q = { GATEWAY_NAME, name, sizeof(*name), GATEWAY_NAMED,
					    sizeof(open) };
	auto_step_msg struct step_msg msg = { 0 };
	gateway_ask(&p->asks, &q, &msg);
	memcpy(&open, msg.data, sizeof(open));
	return open;
}

static bool may_ask(void *context, const char *text)
{
	struct gateway_name name = { 0 };
	(void)snprintf(name.text, sizeof(name.text), "%s", text);
	return ask_about(context, &name) == GATEWAY_NAME_LISTED;
}

static enum resolver_end open_name(void *context, const char *text,
				   const struct resolver_aliases *aliases,
				   struct resolver_address *addresses, size_t *count)
{
	struct gateway_name name = { .count = *count, .aliases.count = aliases->count };
	size_t kept = 0;
	(void)snprintf(name.text, sizeof(name.text), "%s", text);
	for (size_t i = 0; i < *count; i++)
		name.addresses[i] = addresses[i].ip;
	for (size_t i = 0; i < aliases->count; i++) /* and no byte behind a name */
		(void)snprintf(name.aliases.names[i], sizeof(name.aliases.names[i]), "%s",
			       aliases->names[i]);
	const uint32_t open = ask_about(context, &name);
	if (open == GATEWAY_NAME_LATER)
		return RESOLVER_LATER;
	if (open == GATEWAY_NAME_DENIED)
		return RESOLVER_DENIED;
	for (size_t i = 0; i < *count; i++) {
		if (!(open >> i & 1))
			continue;
		if (addresses[i].ttl > NAMES_ANSWER_S)
			addresses[i].ttl = NAMES_ANSWER_S;
		addresses[kept++] = addresses[i];
	}
	*count = kept;
	return RESOLVER_OPEN;
}

static bool may_reach(void *context, const char *name, const struct name_destination *to,
		      bool is_again)
{
	const struct gateway_process *p = context;
	auto_step_msg struct step_msg msg = { 0 };
	struct gateway_check check = { .to = *to, .is_again = is_again };
	bool may;
	const struct gateway_question q = { GATEWAY_CHECK, &check, sizeof(check), GATEWAY_CHECKED,
					    sizeof(may) };
	(void)snprintf(check.text, sizeof(check.text), "%s", name);
	gateway_ask(&p->asks, &q, &msg);
	memcpy(&may, msg.data, sizeof(may));
	return may;
}

static int dial(void *context, const struct name_destination *to)
{
	const struct gateway_process *p = context;
	return gateway_dial(&p->dialer, to);
}

static int serve_proxy(struct gateway_process *p, struct cj_error *err)
{
	int *ip4_fd = &p->handles.fds[SLOT_PROXY4], *ip6_fd = &p->handles.fds[SLOT_PROXY6];
	const struct name_proxy_calls calls = { may_reach, dial, p };
	if (*ip4_fd < 0)
		return 0;
	if (name_proxy_create(*ip4_fd, *ip6_fd, &calls, &p->proxy, err) < 0)
		return -err->code;
	*ip4_fd = *ip6_fd = -1; /* owned by the proxy */
	return watch_fd(p, SOURCE_PROXY, name_proxy_fd(p->proxy), err);
}

static int filter_names(struct gateway_process *p, bool are_filtered, struct cj_error *err)
{
	if (p->resolver)
		resolver_filter(p->resolver, are_filtered ? &p->filter : NULL);
	return tell(p, GATEWAY_SERVED, NULL, 0, err);
}

static int serve_names(struct gateway_process *p, const struct gateway_serve *how,
		       struct cj_error *err)
{
	int *udp_fd = &p->handles.fds[SLOT_DNS_UDP], *tcp_fd = &p->handles.fds[SLOT_DNS_TCP];
	const struct resolver_upstream upstream = { how->name_servers, ask_for_socket, p };
	p->filter = (struct resolver_names){ may_ask, open_name, p };
	if (*udp_fd >= 0) {
		if (resolver_create(*udp_fd, *tcp_fd, &upstream, &p->resolver, err) < 0)
			return -err->code;
		*udp_fd = *tcp_fd = -1; /* owned by the resolver */
		if (watch_fd(p, SOURCE_RESOLVER, resolver_fd(p->resolver), err) < 0)
			return -err->code;
	}
	return serve_proxy(p, err) < 0 ? -err->code : filter_names(p, how->are_filtered, err);
}

static void tell_denial(void *context, const struct denial *denial)
{
	struct cj_error ignored; /* the counters have it */
	(void)!tell(context, GATEWAY_DENIED, denial, sizeof(*denial), &ignored);
}

/* Returns how many messages there were.  Errors are ignored: the counters have all denials. */
static int receive_denials(struct gateway_process *p, enum network_slot slot)
{
	struct cj_error ignored;
	if (p->handles.fds[slot] < 0)
		return 0;
	return denials_receive(p->handles.fds[slot], &p->denials, tell_denial, p, &ignored);
}

static int drain(struct gateway_process *p, struct cj_error *err)
{
	for (unsigned i = 0; i < DRAIN_MAX && receive_denials(p, SLOT_JAIL_LOG) > 0; i++)
		;
	for (unsigned i = 0; i < DRAIN_MAX && receive_denials(p, SLOT_GATEWAY_LOG) > 0; i++)
		;
	p->denials.count = 0;
	return tell(p, GATEWAY_DRAINED, NULL, 0, err);
}

static int obey(struct gateway_process *p, const struct step_msg *msg, struct cj_error *err)
{
	struct gateway_serve how;
	bool are_filtered;
	if (msg->step == GATEWAY_SERVE && msg->size == sizeof(how)) {
		memcpy(&how, msg->data, sizeof(how));
		return serve_names(p, &how, err);
	}
	if (msg->step == GATEWAY_FILTER && msg->size == sizeof(are_filtered)) {
		memcpy(&are_filtered, msg->data, sizeof(are_filtered));
		return filter_names(p, are_filtered, err);
	}
	if (msg->size > 0)
		return cj_fail(err, EPROTO, "obey step %u of the supervisor", msg->step);
	switch (msg->step) {
	case GATEWAY_AGAIN:
		if (p->proxy)
			name_proxy_check_again(p->proxy);
		return tell(p, GATEWAY_SERVED, NULL, 0, err);
	case GATEWAY_LOSE:
		if (p->resolver)
			resolver_lose_servers(p->resolver);
		return 0;
	case GATEWAY_DRAIN:
		return drain(p, err);
	default:
		return cj_fail(err, EPROTO, "obey step %u of the supervisor", msg->step);
	}
}

/* Also when the supervisor has ended: an error, that nobody reads. */
static int on_link(struct gateway_process *p, struct cj_error *err)
{
	auto_step_msg struct step_msg msg = { 0 };
	return step_next(&p->link, &msg, err) < 0 ? -err->code : obey(p, &msg, err);
}

static int serve_source(struct gateway_process *p, enum gateway_source source, struct cj_error *err)
{
	switch (source) {
	case SOURCE_LINK:
		return on_link(p, err);
	case SOURCE_JAIL_LOG:
		(void)receive_denials(p, SLOT_JAIL_LOG);
		return 0;
	case SOURCE_GATEWAY_LOG:
		(void)receive_denials(p, SLOT_GATEWAY_LOG);
		return 0;
	case SOURCE_RESOLVER:
		return resolver_serve(p->resolver, err);
	case SOURCE_PROXY:
		return name_proxy_serve(p->proxy, err);
	}
	return 0;
}

/* Until the supervisor ends it, or has ended. */
static int serve(struct gateway_process *p, struct cj_error *err)
{
	for (;;) {
		struct epoll_event events[SERVE_MAX];
		int count = epoll_wait(p->epoll_fd, events, SERVE_MAX, -1);
		if (count < 0 && errno != EINTR)
			return cj_fail(err, errno, "wait for the network");
		for (int i = 0; i < count; i++)
			if (serve_source(p, events[i].data.u32, err) < 0)
				return -err->code;
	}
}

/* For good; then says that it is ready. */
static int settle(struct gateway_process *p, const struct gateway_rights *rights,
		  struct cj_error *err)
{
	step_wait_forever(&p->link); /* the supervisor may be stopped for a while */
	if (gateway_give_up(LINK_FD, rights, err) < 0)
		return -err->code;
	return tell(p, GATEWAY_READY, NULL, 0, err);
}

static int make_gateway(struct gateway_process *p, const struct gateway_wants *wants,
			struct cj_error *err)
{
	if (open_both(p, wants, err) < 0 || watch_link(p, err) < 0 ||
	    watch_log(p, SOURCE_JAIL_LOG, SLOT_JAIL_LOG, err) < 0 ||
	    watch_log(p, SOURCE_GATEWAY_LOG, SLOT_GATEWAY_LOG, err) < 0 || hand_over(p, err) < 0)
		return -err->code;
	step_wait_forever(&p->asks);
	return settle(p, &(struct gateway_rights){ &gateway_calls, "the gateway", true, 0 }, err);
}

/* Whoever owns a user namespace has every capability over it from outside: so the reader joins it,
 * and has none there. */
static int open_log(struct gateway_process *p, struct cj_error *err)
{
	p->handles.fds[SLOT_JAIL_LOG] = LOG_FD;
	if (child_become_undumpable(err) < 0)
		return -err->code;
	int netns_fd = uplink_join_owner(LOG_FD, err);
	const bool has_joined = netns_fd >= 0;
	cj_close(&netns_fd);
	if (!has_joined && err->code != EINVAL) /* setns(2): it is our own */
		return -err->code;
	if (watch_link(p, err) < 0 || watch_log(p, SOURCE_JAIL_LOG, SLOT_JAIL_LOG, err) < 0)
		return -err->code;
	return settle(
	    p, &(struct gateway_rights){ &gateway_log_calls, "the gateway", has_joined, 0 }, err);
}

static struct gateway_process begin(void)
{
	struct gateway_process p = {
		.link = { LINK_FD, "the supervisor", gateway_step_names },
		.asks = { ASKS_FD, "the supervisor", gateway_step_names },
		.dialer = { .sock_fd = -1 },
	};
	network_handles_init(&p.handles);
	(void)prctl(PR_SET_NAME, "cejail-gateway", 0, 0, 0); /* only what ps(1) shows */
	return p;
}

/* The supervisor learns a failure by the link. */
static int end(const struct gateway_process *p, int rc, const struct cj_error *why)
{
	if (rc < 0)
		step_abort(&p->link, why);
	return EXIT_SUCCESS;
}

int gateway_run(const struct gateway_wants *wants)
{
	struct gateway_process p = begin();
	struct cj_error why = { 0 };
	int rc = make_gateway(&p, wants, &why);
	return end(&p, rc < 0 ? rc : serve(&p, &why), &why);
}

int gateway_run_log(void)
{
	struct gateway_process p = begin();
	struct cj_error why = { 0 };
	int rc = open_log(&p, &why);
	return end(&p, rc < 0 ? rc : serve(&p, &why), &why);
}
