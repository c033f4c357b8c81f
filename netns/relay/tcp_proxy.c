/* SPDX-License-Identifier: Apache-2.0 */
#include "netns/relay/tcp_proxy.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>

#include "runtime/base/scope.h"

/* One side, and the bytes that came from it: sent | may be sent | held back by the filter. */
struct side {
	int fd;
	bool is_watched;
	uint32_t events; /* requested from epoll while watched */
	size_t begin, cleared, end;
	bool has_ended; /* it sends no more */
	bool is_shut;   /* shutdown(2) of the other side is done: no more is sent there */
	uint8_t bytes[TCP_PROXY_BYTES];
};

struct tcp_proxy {
	int epoll_fd;
	uint32_t id;
	bool connecting;
	uint64_t moved;
	ssize_t (*filter)(void *arg, uint8_t *bytes, size_t *size);
	void *filter_arg;
	struct side sides[2];
};

static void set_nodelay(int fd)
{
	int on = 1;
	/* Ignored: without it small messages are only delayed. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

int tcp_proxy_accept(int listen_fd)
{
	int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0)
		return fd;
	return errno == ECONNABORTED || errno == EINTR || errno == EPROTO ? -EAGAIN : -errno;
}

struct tcp_proxy *tcp_proxy_create(int epoll_fd, uint32_t id, int jail_fd)
{
	/* Not calloc(3): unused parts of the buffers must cost no memory. */
	struct tcp_proxy *p = malloc(sizeof(*p));
	if (!p)
		return NULL;

	memset(p, 0, offsetof(struct tcp_proxy, sides));
	for (size_t i = 0; i < 2; i++)
		memset(&p->sides[i], 0, offsetof(struct side, bytes));
	p->epoll_fd = epoll_fd;
	p->id = id;
	p->sides[TCP_PROXY_JAIL].fd = jail_fd;
	p->sides[TCP_PROXY_HOST].fd = -1;
	set_nodelay(jail_fd);
	return p;
}

/* With with_reset close(2) sends a reset instead of a FIN: socket(7), SO_LINGER with time 0. */
static void close_side(struct side *s, bool with_reset)
{
	struct linger now = { .l_onoff = 1 };
	if (s->fd >= 0 && with_reset)
		(void)setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	cj_close(&s->fd); /* also leaves the epoll: this is the only descriptor of the socket */
	s->is_watched = false;
}

static bool is_finished(const struct tcp_proxy *p)
{
	return p->sides[TCP_PROXY_JAIL].is_shut && p->sides[TCP_PROXY_HOST].is_shut;
}

void tcp_proxy_destroy(struct tcp_proxy **pp)
{
	struct tcp_proxy *p = *pp;
	if (!p)
		return;
	bool with_reset = !is_finished(p);
	close_side(&p->sides[TCP_PROXY_JAIL], with_reset);
	close_side(&p->sides[TCP_PROXY_HOST], with_reset);
	free(p);
	*pp = NULL;
}

void tcp_proxy_filter(struct tcp_proxy *p,
		      ssize_t (*filter)(void *arg, uint8_t *bytes, size_t *size), void *arg)
{
	p->filter = filter;
	p->filter_arg = arg;
}

uint64_t tcp_proxy_moved(const struct tcp_proxy *p)
{
	return p->moved;
}

static uint32_t wanted_events(const struct tcp_proxy *p, enum tcp_proxy_side side)
{
	const struct side *from = &p->sides[side], *to = &p->sides[!side];
	if (p->connecting)
		return side == TCP_PROXY_HOST ? EPOLLOUT : 0;

	uint32_t events = 0;
	if (!from->has_ended && from->begin == from->cleared)
		events |= EPOLLIN;
	if (to->begin < to->cleared)
		events |= EPOLLOUT;
	return events;
}

/*
 * A side without requested events stays in the epoll, because epoll always reports a reset
 * (epoll_ctl(2), EPOLLERR).  After our shutdown(2) of this side it leaves the epoll: else an
 * ordinary end would be reported again and again (EPOLLHUP) while the other side can't take the
 * rest.
 */
static bool watch_side(struct tcp_proxy *p, enum tcp_proxy_side side)
{
	struct side *s = &p->sides[side];
	uint32_t events = wanted_events(p, side);
	bool is_wanted = events != 0 || !p->sides[!side].is_shut;
	if (is_wanted == s->is_watched && events == s->events)
		return true;

	struct epoll_event event = { .events = events, .data.u32 = p->id + side };
	int op = EPOLL_CTL_MOD;
	if (is_wanted != s->is_watched)
		op = is_wanted ? EPOLL_CTL_ADD : EPOLL_CTL_DEL;
	if (epoll_ctl(p->epoll_fd, op, s->fd, &event) < 0)
		return false;
	s->is_watched = is_wanted;
	s->events = events;
	return true;
}

static enum tcp_proxy_state watch(struct tcp_proxy *p)
{
	if (is_finished(p))
		return TCP_PROXY_CLOSED;
	if (!watch_side(p, TCP_PROXY_JAIL) || !watch_side(p, TCP_PROXY_HOST))
		return TCP_PROXY_CLOSED; /* ENOSPC, ENOMEM: it would get no more events */
	return TCP_PROXY_OPEN;
}

static enum tcp_proxy_state unreached(struct tcp_proxy *p)
{
	close_side(&p->sides[TCP_PROXY_HOST], true);
	return TCP_PROXY_UNREACHABLE;
}

int tcp_proxy_dial(const struct sockaddr *address, socklen_t size, int type)
{
	auto_fd int fd = socket(address->sa_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 || (connect(fd, address, size) < 0 && errno != EINPROGRESS))
		return -errno;
	return take_fd(&fd);
}

enum tcp_proxy_state tcp_proxy_join(struct tcp_proxy *p, int host_fd)
{
	struct side *host = &p->sides[TCP_PROXY_HOST];
	close_side(host, true);
	if (host_fd < 0)
		return TCP_PROXY_UNREACHABLE;
	host->fd = host_fd;
	set_nodelay(host_fd);
	p->connecting = true;
	return watch(p) == TCP_PROXY_OPEN ? TCP_PROXY_OPEN : unreached(p);
}

/*
 * If no socket listens on an ephemeral port, the kernel may choose the same port for our end.  Then
 * TCP connects the socket to itself (RFC 9293 3.5, simultaneous open).
 */
static bool is_own_address(int fd, const struct sockaddr_storage *peer, socklen_t peer_size)
{
	struct sockaddr_storage own = { 0 };
	socklen_t own_size = sizeof(own);
	return getsockname(fd, (struct sockaddr *)&own, &own_size) == 0 && own_size == peer_size &&
	       memcmp(&own, peer, own_size) == 0;
}

static enum tcp_proxy_state serve_connecting(struct tcp_proxy *p, enum tcp_proxy_side side)
{
	if (side == TCP_PROXY_JAIL)
		return TCP_PROXY_CLOSED; /* no events were requested, so this is a reset */

	struct sockaddr_storage peer = { 0 };
	socklen_t peer_size = sizeof(peer);
	int fd = p->sides[TCP_PROXY_HOST].fd, code = 0;
	socklen_t code_size = sizeof(code);
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &code_size) < 0 || code != 0)
		return unreached(p);
	if (getpeername(fd, (struct sockaddr *)&peer, &peer_size) < 0)
		return TCP_PROXY_OPEN; /* not yet */
	if (is_own_address(fd, &peer, peer_size))
		return unreached(p);
	p->connecting = false;
	return watch(p);
}

static bool clear_bytes(struct tcp_proxy *p, struct side *from)
{
	if (from == &p->sides[TCP_PROXY_HOST] || !p->filter) {
		from->cleared = from->end;
		return true;
	}
	size_t held = from->end - from->cleared;
	ssize_t size = p->filter(p->filter_arg, from->bytes + from->cleared, &held);
	if (size < 0)
		return false;
	from->end = from->cleared + held;
	from->cleared += (size_t)size;
	return true;
}

/* Nothing waits to be sent.  Moves the bytes held back to the front and reads more after them. */
static bool fill(struct tcp_proxy *p, struct side *from)
{
	from->end -= from->begin;
	memmove(from->bytes, from->bytes + from->begin, from->end);
	from->begin = from->cleared = 0;

	ssize_t size = recv(from->fd, from->bytes + from->end, TCP_PROXY_BYTES - from->end, 0);
	if (size < 0)
		return errno == EAGAIN || errno == EINTR;
	if (size == 0)
		from->has_ended = true;
	from->end += (size_t)size;
	p->moved += (size_t)size;
	return size == 0 || clear_bytes(p, from);
}

static bool drain(struct side *from, int to_fd)
{
	ssize_t size =
	    send(to_fd, from->bytes + from->begin, from->cleared - from->begin, MSG_NOSIGNAL);
	if (size < 0)
		return errno == EAGAIN || errno == EINTR;
	from->begin += (size_t)size;
	return true;
}

/* Moves bytes from one side to the other, without blocking.  False: the connection is broken. */
static bool move(struct tcp_proxy *p, struct side *from, const struct side *to)
{
	if (from->begin == from->cleared && !from->has_ended && !fill(p, from))
		return false;
	if (from->begin < from->cleared && !drain(from, to->fd))
		return false;
	if (from->has_ended && !from->is_shut && from->begin == from->cleared) {
		from->is_shut = true;
		/* Fails after a reset of `to`: the next recv(2) from it reports that. */
		(void)shutdown(to->fd, SHUT_WR);
	}
	return true;
}

enum tcp_proxy_state tcp_proxy_hear(struct tcp_proxy *p)
{
	struct side *jail = &p->sides[TCP_PROXY_JAIL];
	if (jail->is_watched && (!fill(p, jail) || jail->has_ended))
		return TCP_PROXY_CLOSED;
	return watch_side(p, TCP_PROXY_JAIL) ? TCP_PROXY_OPEN : TCP_PROXY_CLOSED;
}

enum tcp_proxy_state tcp_proxy_serve(struct tcp_proxy *p, enum tcp_proxy_side side, uint32_t events)
{
	const uint32_t broken = EPOLLERR | EPOLLHUP;
	struct side *this = &p->sides[side], *other = &p->sides[!side];

	if (p->connecting)
		return serve_connecting(p, side);
	if ((events & broken) && this->events == 0)
		return TCP_PROXY_CLOSED; /* no further call would give a reason */
	if ((events & (EPOLLIN | broken)) && !move(p, this, other))
		return TCP_PROXY_CLOSED;
	if ((events & (EPOLLOUT | broken)) && !move(p, other, this))
		return TCP_PROXY_CLOSED;
	return watch(p);
}
