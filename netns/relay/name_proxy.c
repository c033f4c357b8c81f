/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event's data is a number: 2 * SLOT and 2 * SLOT + 1 are the sides of a connection, then come
 * the two listeners, last the timer.
 */
#include "netns/relay/name_proxy.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "netns/relay/client_name.h"
#include "netns/relay/tcp_proxy.h"
#include "runtime/base/clock.h"
#include "runtime/base/scope.h"

#define EVENTS_MAX     16 /* served by one call */
#define TICK_S         1
#define FIRST_LISTENER (2 * NAME_PROXY_CONNECTIONS)
#define LISTENERS      2
#define TIMER          (FIRST_LISTENER + LISTENERS)

#define ORIGINAL_DESTINATION 80 /* SO_ORIGINAL_DST, IP6T_SO_ORIGINAL_DST: linux/netfilter_ipv4.h */

struct name_client {
	struct tcp_proxy *proxy; /* NULL: free */
	struct name_proxy *owner;
	struct client_stream stream;
	struct name_destination to;
	bool is_named;            /* there is a connection to the server, or will be */
	uint64_t moved, since_ms; /* bytes so far, and when they last grew; or since it began */
};

struct name_proxy {
	int epoll_fd, timer_fd;
	int listen_fds[LISTENERS];
	bool is_ticking, is_paused;
	uint64_t now_ms;
	struct name_proxy_calls calls;
	size_t count;
	struct name_client clients[NAME_PROXY_CONNECTIONS];
};

int name_proxy_listen(int family, struct cj_error *err)
{
	const struct ip any = { .family = (uint8_t)family };
	struct sockaddr_storage at;
	const socklen_t size = ip_socket_address(&any, NAME_PROXY_PORT, &at);
	const int on = 1;
	auto_fd int fd = socket(at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return cj_fail(err, errno, "open a socket for connections by name");
	if (family == 6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0)
		return cj_fail(err, errno, "set IPV6_V6ONLY for connections by name");
	if (bind(fd, (struct sockaddr *)&at, size) < 0 || listen(fd, NAME_PROXY_CONNECTIONS) < 0)
		return cj_fail(err, errno, "listen for connections by name");
	return take_fd(&fd);
}

static void set_listening(struct name_proxy *p, bool is_on)
{
	if (p->is_paused != is_on)
		return;
	for (uint32_t i = 0; i < LISTENERS; i++) {
		struct epoll_event event = { .events = is_on ? EPOLLIN : 0,
					     .data.u32 = FIRST_LISTENER + i };
		/* Can't fail: the listener has been there since name_proxy_create(). */
		if (p->listen_fds[i] >= 0)
			(void)epoll_ctl(p->epoll_fd, EPOLL_CTL_MOD, p->listen_fds[i], &event);
	}
	p->is_paused = !is_on;
}

/* The timer runs while there is a connection, or none can be accepted. */
static void set_timer(struct name_proxy *p)
{
	const bool is_on = p->count > 0 || p->is_paused;
	struct itimerspec when = { 0 };
	if (is_on == p->is_ticking)
		return;
	if (is_on)
		when.it_value.tv_sec = when.it_interval.tv_sec = TICK_S;
	(void)timerfd_settime(p->timer_fd, 0, &when, NULL); /* fails for bad arguments only */
	p->is_ticking = is_on;
}

static void drop_client(struct name_client *c)
{
	struct name_proxy *p = c->owner;
	tcp_proxy_destroy(&c->proxy);
	p->count--;
	set_listening(p, true);
}

static bool may(const struct name_client *c, const char *name, bool is_again)
{
	const struct name_proxy_calls *calls = &c->owner->calls;
	return calls->may(calls->context, name, &c->to, is_again);
}

static bool may_reach(void *context, const char *name)
{
	return may(context, name, false);
}

static ssize_t filter(void *arg, uint8_t *bytes, size_t *size)
{
	struct name_client *c = arg;
	ssize_t passed = client_stream_read(&c->stream, bytes, *size);
	if (passed < 0 && !c->stream.is_denied)
		(void)may(c, "", false); /* only to report it */
	return passed;
}

/* Where the client wanted to go, before the rules redirected it. */
static bool find_destination(int fd, struct name_destination *out)
{
	struct sockaddr_storage at = { 0 };
	const struct sockaddr_in *four = (const struct sockaddr_in *)&at;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&at;
	socklen_t size = sizeof(at);
	*out = (struct name_destination){ 0 };
	if (getsockname(fd, (struct sockaddr *)&at, &size) < 0)
		return false;
	const bool is_ip6 = at.ss_family == AF_INET6;
	size = is_ip6 ? sizeof(*six) : sizeof(*four);
	if (getsockopt(fd, is_ip6 ? IPPROTO_IPV6 : IPPROTO_IP, ORIGINAL_DESTINATION, &at, &size) <
	    0)
		return false;
	out->address.family = is_ip6 ? 6 : 4;
	out->port = ntohs(is_ip6 ? six->sin6_port : four->sin_port);
	if (is_ip6)
		memcpy(out->address.bytes, &six->sin6_addr, sizeof(six->sin6_addr));
	else
		memcpy(out->address.bytes, &four->sin_addr, sizeof(four->sin_addr));
	return true;
}

static void open_client(struct name_proxy *p, int jail_fd)
{
	size_t slot = 0;
	while (p->clients[slot].proxy) /* the caller has checked that one is free */
		slot++;
	struct name_client *c = &p->clients[slot];
	*c = (struct name_client){ .owner = p,
				   .stream = { .may = may_reach, .context = c },
				   .since_ms = p->now_ms };
	if (find_destination(jail_fd, &c->to))
		c->proxy = tcp_proxy_create(p->epoll_fd, 2 * (uint32_t)slot, jail_fd);
	if (!c->proxy) {
		cj_close(&jail_fd);
		return;
	}
	p->count++;
	tcp_proxy_filter(c->proxy, filter, c);
	if (tcp_proxy_hear(c->proxy) != TCP_PROXY_OPEN)
		drop_client(c);
}

static void serve_listener(struct name_proxy *p, size_t at)
{
	if (p->count == NAME_PROXY_CONNECTIONS) {
		set_listening(p, false);
		return;
	}
	int fd = tcp_proxy_accept(p->listen_fds[at]);
	if (fd >= 0)
		open_client(p, fd);
	else if (fd != -EAGAIN)
		set_listening(p, false); /* until the next tick: epoll would report it at once */
}

/* Reads until the name is known and allowed, then connects. */
static enum tcp_proxy_state hear(struct name_client *c)
{
	const struct name_proxy_calls *calls = &c->owner->calls;
	enum tcp_proxy_state state = tcp_proxy_hear(c->proxy);
	if (state != TCP_PROXY_OPEN || c->stream.stage == CLIENT_BEGIN)
		return state;
	c->is_named = true;
	c->since_ms = c->owner->now_ms;
	return tcp_proxy_join(c->proxy, calls->connect(calls->context, &c->to));
}

static void serve_client(struct name_proxy *p, const struct epoll_event *event)
{
	struct name_client *c = &p->clients[event->data.u32 / 2];
	const enum tcp_proxy_side side = event->data.u32 % 2 ? TCP_PROXY_HOST : TCP_PROXY_JAIL;
	if (!c->proxy)
		return;
	if ((c->is_named ? tcp_proxy_serve(c->proxy, side, event->events) : hear(c)) !=
	    TCP_PROXY_OPEN)
		drop_client(c); /* if the server can't be reached, the client gets a reset */
}

static bool is_late(const struct name_proxy *p, struct name_client *c)
{
	const uint64_t moved = tcp_proxy_moved(c->proxy);
	if (c->is_named && moved != c->moved) {
		c->moved = moved;
		c->since_ms = p->now_ms;
	}
	const uint64_t most_s = c->is_named ? NAME_PROXY_IDLE_S : NAME_PROXY_FIRST_S;
	if (p->now_ms - c->since_ms < most_s * 1000)
		return false;
	if (!c->is_named && moved > 0)
		(void)may(c, "", false); /* only to report it */
	return true;
}

static void serve_timer(struct name_proxy *p)
{
	uint64_t times;
	(void)!read(p->timer_fd, &times, sizeof(times)); /* only resets the descriptor */
	for (size_t i = 0; i < NAME_PROXY_CONNECTIONS; i++)
		if (p->clients[i].proxy && is_late(p, &p->clients[i]))
			drop_client(&p->clients[i]);
	set_listening(p, true);
}

int name_proxy_serve(struct name_proxy *p, struct cj_error *err)
{
	struct epoll_event events[EVENTS_MAX];
	int n = epoll_wait(p->epoll_fd, events, EVENTS_MAX, 0);
	if (n < 0 && errno != EINTR)
		return cj_fail(err, errno, "wait for connections by name");
	p->now_ms = clock_ms();

	/* Connections first: a slot that is freed may still have an event in this batch, and must
	 * not be in use by another connection by then. */
	for (int i = 0; i < n; i++)
		if (events[i].data.u32 < FIRST_LISTENER)
			serve_client(p, &events[i]);
	for (int i = 0; i < n; i++) {
		const uint32_t id = events[i].data.u32;
		if (id == TIMER)
			serve_timer(p);
		else if (id >= FIRST_LISTENER)
			serve_listener(p, id - FIRST_LISTENER);
	}
	set_timer(p);
	return 0;
}

void name_proxy_check_again(struct name_proxy *p)
{
	for (size_t i = 0; i < NAME_PROXY_CONNECTIONS; i++) {
		struct name_client *c = &p->clients[i];
		if (c->proxy && c->is_named && !may(c, c->stream.name, true))
			drop_client(c);
	}
}

static int watch_fd(struct name_proxy *p, int fd, uint32_t id, struct cj_error *err)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = id };
	if (fd >= 0 && epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return cj_fail(err, errno, "watch a socket for connections by name");
	return 0;
}

static int set_up(struct name_proxy *p, const int *listen_fds, struct cj_error *err)
{
	p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (p->epoll_fd < 0)
		return cj_fail(err, errno, "create an epoll for connections by name");
	p->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (p->timer_fd < 0)
		return cj_fail(err, errno, "create a timer for connections by name");
	int rc = watch_fd(p, p->timer_fd, TIMER, err);
	for (uint32_t i = 0; rc == 0 && i < LISTENERS; i++)
		rc = watch_fd(p, listen_fds[i], FIRST_LISTENER + i, err);
	return rc;
}

int name_proxy_create(int ip4_fd, int ip6_fd, const struct name_proxy_calls *calls,
		      struct name_proxy **out, struct cj_error *err)
{
	const int listen_fds[LISTENERS] = { ip4_fd, ip6_fd };
	struct name_proxy *p = calloc(1, sizeof(*p));
	if (!p)
		return cj_fail(err, ENOMEM, "make room for connections by name");
	p->epoll_fd = p->timer_fd = p->listen_fds[0] = p->listen_fds[1] = -1;
	p->calls = *calls;
	p->now_ms = clock_ms();
	int rc = set_up(p, listen_fds, err);
	if (rc < 0) {
		name_proxy_destroy(&p); /* it does not own the two sockets yet */
		return rc;
	}
	memcpy(p->listen_fds, listen_fds, sizeof(listen_fds));
	*out = p;
	return 0;
}

void name_proxy_destroy(struct name_proxy **pp)
{
	struct name_proxy *p = *pp;
	if (!p)
		return;
	for (size_t i = 0; i < NAME_PROXY_CONNECTIONS; i++)
		tcp_proxy_destroy(&p->clients[i].proxy);
	for (size_t i = 0; i < LISTENERS; i++)
		cj_close(&p->listen_fds[i]);
	cj_close(&p->timer_fd);
	cj_close(&p->epoll_fd);
	cj_free(pp);
}

int name_proxy_fd(const struct name_proxy *p)
{
	return p->epoll_fd;
}
