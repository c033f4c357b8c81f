/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event's data is a number: 2 * SLOT and 2 * SLOT + 1 are the sides of a TCP proxy, then come
 * the listeners, last the timer.  While accept4(2) could only fail (no slot, no descriptor), the
 * listeners have no events: clients wait in the kernel's backlog until a connection ends or the
 * timer expires.
 */
#include "netns/relay/forward.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "netns/relay/tcp_proxy.h"
#include "runtime/base/scope.h"

#define EVENTS_MAX     16 /* served by one call */
#define PAUSE_MS       100
#define SPARE_FDS      16 /* of the limit of open files: kept for the supervisor itself */
#define FIRST_LISTENER (2 * FORWARD_CONNECTIONS_MAX)

struct forward_listener {
	int fd;
	uint16_t port;
};

struct forward {
	int epoll_fd, timer_fd;
	bool is_paused;
	size_t nproxies, nlisteners;
	struct tcp_proxy *proxies[FORWARD_CONNECTIONS_MAX];
	struct forward_listener listeners[];
};

static struct sockaddr_in own_loopback(uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return address;
}

int forward_listen(uint16_t port, struct cj_error *err)
{
	int on = 1;
	struct sockaddr_in address = own_loopback(port);
	auto_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return cj_fail(err, errno, "open a socket for port %u of the jail", port);
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
		return cj_fail(err, errno, "set SO_REUSEADDR for port %u of the jail", port);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		int rc = cj_fail(err, errno, "bind port %u of the jail's 127.0.0.1", port);
		return rc == -EADDRINUSE ? cj_hint(err, "name each port once") : rc;
	}
	if (listen(fd, FORWARD_CONNECTIONS_MAX) < 0)
		return cj_fail(err, errno, "listen on port %u of the jail's 127.0.0.1", port);
	return take_fd(&fd);
}

static int watch_fd(struct forward *f, int fd, uint32_t id, struct cj_error *err)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = id };
	if (epoll_ctl(f->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return cj_fail(err, errno, "watch a socket of the connected ports");
	return 0;
}

static int set_up(struct forward *f, const int *listen_fds, const uint16_t *ports, size_t n,
		  struct cj_error *err)
{
	f->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (f->epoll_fd < 0)
		return cj_fail(err, errno, "create an epoll for the connected ports");
	f->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (f->timer_fd < 0)
		return cj_fail(err, errno, "create a timer for the connected ports");

	int rc = watch_fd(f, f->timer_fd, FIRST_LISTENER + (uint32_t)n, err);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		f->listeners[i] =
		    (struct forward_listener){ .fd = listen_fds[i], .port = ports[i] };
		rc = watch_fd(f, listen_fds[i], FIRST_LISTENER + (uint32_t)i, err);
	}
	return rc;
}

int forward_create(const int *listen_fds, const uint16_t *ports, size_t n, struct forward **out,
		   struct cj_error *err)
{
	struct forward *f = calloc(1, sizeof(*f) + n * sizeof(f->listeners[0]));
	if (!f)
		return cj_fail(err, ENOMEM, "make room for the connected ports");
	f->epoll_fd = f->timer_fd = -1;

	int rc = set_up(f, listen_fds, ports, n, err);
	if (rc < 0) {
		forward_destroy(&f); /* nlisteners is 0: the sockets stay the caller's */
		return rc;
	}
	f->nlisteners = n;
	*out = f;
	return 0;
}

void forward_destroy(struct forward **ff)
{
	struct forward *f = *ff;
	if (!f)
		return;
	for (size_t i = 0; i < FORWARD_CONNECTIONS_MAX; i++)
		tcp_proxy_destroy(&f->proxies[i]);
	for (size_t i = 0; i < f->nlisteners; i++)
		cj_close(&f->listeners[i].fd);
	cj_close(&f->timer_fd);
	cj_close(&f->epoll_fd);
	cj_free(ff);
}

int forward_fd(const struct forward *f)
{
	return f->epoll_fd;
}

static void set_listening(struct forward *f, bool is_on)
{
	if (f->is_paused != is_on)
		return;
	for (size_t i = 0; i < f->nlisteners; i++) {
		struct epoll_event event = { .events = is_on ? EPOLLIN : 0,
					     .data.u32 = FIRST_LISTENER + (uint32_t)i };
		/* Can't fail: the listener has been there since forward_create(). */
		(void)epoll_ctl(f->epoll_fd, EPOLL_CTL_MOD, f->listeners[i].fd, &event);
	}
	f->is_paused = !is_on;
}

/* The kernel gives out the lowest free descriptor.  The jail must not use up the last ones. */
static bool has_descriptors_to_spare(const struct forward *f)
{
	struct rlimit limit;
	auto_fd int lowest = fcntl(f->timer_fd, F_DUPFD_CLOEXEC, 0);
	return lowest >= 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
	       (rlim_t)lowest + SPARE_FDS < limit.rlim_cur;
}

/* After a failure of ours (no descriptors, no memory), because epoll would report it again at
 * once. */
static void pause_listening(struct forward *f)
{
	struct itimerspec once = { .it_value.tv_nsec = PAUSE_MS * 1000000L };
	set_listening(f, false);
	(void)timerfd_settime(f->timer_fd, 0, &once, NULL); /* fails for bad arguments only */
}

static void serve_timer(struct forward *f)
{
	uint64_t times;
	(void)!read(f->timer_fd, &times, sizeof(times)); /* no more than a wake-up */
	if (f->nproxies < FORWARD_CONNECTIONS_MAX)
		set_listening(f, true);
}

static void drop_proxy(struct forward *f, size_t slot)
{
	tcp_proxy_destroy(&f->proxies[slot]);
	f->nproxies--;
	set_listening(f, true);
}

static void connect_proxy(struct forward *f, int jail_fd, uint16_t port)
{
	struct sockaddr_in address = own_loopback(port);
	size_t slot = 0;
	while (f->proxies[slot]) /* the caller has checked that one is free */
		slot++;
	struct tcp_proxy *p = tcp_proxy_create(f->epoll_fd, 2 * (uint32_t)slot, jail_fd);
	if (!p) {
		cj_close(&jail_fd);
		return;
	}
	f->proxies[slot] = p;
	f->nproxies++;
	int host_fd = tcp_proxy_dial((struct sockaddr *)&address, sizeof(address), SOCK_STREAM);
	if (tcp_proxy_join(p, host_fd) != TCP_PROXY_OPEN)
		drop_proxy(f, slot);
	else if (f->nproxies == FORWARD_CONNECTIONS_MAX)
		set_listening(f, false);
}

static void serve_listener(struct forward *f, const struct forward_listener *listener)
{
	if (f->nproxies == FORWARD_CONNECTIONS_MAX)
		return; /* filled by an earlier event of the same call */
	if (!has_descriptors_to_spare(f)) {
		pause_listening(f);
		return;
	}
	int fd = tcp_proxy_accept(listener->fd);
	if (fd >= 0)
		connect_proxy(f, fd, listener->port);
	else if (fd != -EAGAIN)
		pause_listening(f);
}

static void serve_proxy(struct forward *f, const struct epoll_event *event)
{
	size_t slot = event->data.u32 / 2;
	enum tcp_proxy_side side = event->data.u32 % 2 ? TCP_PROXY_HOST : TCP_PROXY_JAIL;
	if (f->proxies[slot] &&
	    tcp_proxy_serve(f->proxies[slot], side, event->events) != TCP_PROXY_OPEN)
		drop_proxy(f, slot); /* if the server can't be reached, the client gets a reset */
}

int forward_serve(struct forward *f, struct cj_error *err)
{
	struct epoll_event events[EVENTS_MAX];
	int n = epoll_wait(f->epoll_fd, events, EVENTS_MAX, 0);
	if (n < 0 && errno != EINTR)
		return cj_fail(err, errno, "wait for the connected ports");

	/* Proxies first: a slot that is freed may still have an event in this batch, and must
	 * not be in use by another connection by then. */
	for (int i = 0; i < n; i++)
		if (events[i].data.u32 < FIRST_LISTENER)
			serve_proxy(f, &events[i]);
	for (int i = 0; i < n; i++) {
		size_t at = events[i].data.u32 - FIRST_LISTENER;
		if (events[i].data.u32 < FIRST_LISTENER)
			continue;
		if (at < f->nlisteners)
			serve_listener(f, &f->listeners[at]);
		else
			serve_timer(f);
	}
	return 0;
}
