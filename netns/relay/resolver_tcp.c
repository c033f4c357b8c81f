/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries over TCP: one connection to the server for each connection of a client.  Acts.
 *
 * The client's bytes are split into messages, and each message is validated before it is sent on.
 * The server's bytes are passed on unchanged.  Without a free slot, clients wait in the kernel's
 * backlog.
 */
#include "netns/relay/resolver_tcp.h"

#include <errno.h>
#include <sys/epoll.h>

#include "runtime/base/scope.h"

#define IDLE_MS 10000
#define SESSION_COST                                                                               \
	20 /* in queries: at most 50 connections a second, so that the host does not run out of ports */

static void set_listening(struct resolver *r, bool is_on)
{
	if (r->is_paused != is_on)
		return;
	struct epoll_event event = { .events = is_on ? EPOLLIN : 0, .data.u32 = RESOLVER_TCP };
	/* Can't fail: the listener has been there since resolver_create(). */
	(void)epoll_ctl(r->epoll_fd, EPOLL_CTL_MOD, r->tcp_fd, &event);
	r->is_paused = !is_on;
}

static void drop_session(struct resolver *r, size_t slot)
{
	tcp_proxy_destroy(&r->sessions[slot].proxy);
	set_listening(r, true);
}

/* --- accepting ----------------------------------------------------------------- */

static ssize_t filter_queries(void *arg, uint8_t *bytes, size_t *size)
{
	struct resolver *r = arg;
	size_t passed;
	int count = resolver_stream(bytes, size, &passed);
	if (count < 0 || !resolver_state_spend(r, (unsigned)count))
		return -1;
	return (ssize_t)passed;
}

/* Connects to the current server, or to a later one if connect(2) fails at once. */
static void connect_session(struct resolver *r, size_t slot)
{
	struct resolver_session *s = &r->sessions[slot];
	while (s->tried < r->nservers) {
		size_t server = (s->server + s->tried++) % r->nservers;
		struct sockaddr_storage address;
		socklen_t size = resolver_state_address(&r->servers[server], &address);
		if (tcp_proxy_connect(s->proxy, (struct sockaddr *)&address, size) ==
		    TCP_PROXY_OPEN)
			return;
	}
	drop_session(r, slot);
}

static void open_session(struct resolver *r, size_t slot, int jail_fd)
{
	struct tcp_proxy *p = tcp_proxy_create(r->epoll_fd, 2 * (uint32_t)slot, jail_fd);
	if (!p) {
		cj_close(&jail_fd);
		return;
	}
	tcp_proxy_filter(p, filter_queries, r);
	r->sessions[slot] =
	    (struct resolver_session){ .proxy = p, .server = r->current, .since_ms = r->now_ms };
	connect_session(r, slot);
}

static size_t free_slot(const struct resolver *r)
{
	size_t slot = 0;
	while (slot < RESOLVER_SESSIONS_MAX && r->sessions[slot].proxy)
		slot++;
	return slot;
}

/* The client gave up the connection, or the call was interrupted: not a failure of ours. */
static bool is_about_the_client(int code)
{
	return code == EAGAIN || code == ECONNABORTED || code == EINTR || code == EPROTO;
}

void resolver_tcp_accept(struct resolver *r)
{
	size_t slot = free_slot(r);
	resolver_state_start_timer(r);
	if (slot == RESOLVER_SESSIONS_MAX || !resolver_state_spend(r, SESSION_COST)) {
		set_listening(r, false); /* until a session ends, or the next tick */
		return;
	}
	int fd = accept4(r->tcp_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0)
		open_session(r, slot, fd);
	else if (!is_about_the_client(errno))
		set_listening(
		    r, false); /* no descriptors, no memory: epoll would report it again at once */
}

/* --- serving ------------------------------------------------------------------- */

void resolver_tcp_serve(struct resolver *r, size_t slot, enum tcp_proxy_side side, uint32_t events)
{
	struct resolver_session *s = &r->sessions[slot];
	if (!s->proxy)
		return;
	switch (tcp_proxy_serve(s->proxy, side, events)) {
	case TCP_PROXY_OPEN:
		break;
	case TCP_PROXY_UNREACHABLE:
		connect_session(r, slot);
		break;
	case TCP_PROXY_CLOSED:
		drop_session(r, slot);
		break;
	}
}

static bool is_idle(const struct resolver *r, struct resolver_session *s)
{
	uint64_t moved = tcp_proxy_moved(s->proxy);
	if (moved != s->moved) {
		s->moved = moved;
		s->since_ms = r->now_ms;
	}
	return r->now_ms - s->since_ms >= IDLE_MS;
}

bool resolver_tcp_sweep(struct resolver *r)
{
	bool some_wait = r->is_paused;
	for (size_t i = 0; i < RESOLVER_SESSIONS_MAX; i++) {
		struct resolver_session *s = &r->sessions[i];
		if (s->proxy && is_idle(r, s))
			drop_session(r, i);
		some_wait |= s->proxy != NULL;
	}
	set_listening(r, true);
	return some_wait;
}

void resolver_tcp_fini(struct resolver *r)
{
	for (size_t i = 0; i < RESOLVER_SESSIONS_MAX; i++)
		tcp_proxy_destroy(&r->sessions[i].proxy);
}
