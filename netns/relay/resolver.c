/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets and events of a resolver.  Acts.
 *
 * Three limits bound what a flooding jail can do: slots (a new query replaces the oldest one, more
 * TCP clients wait), queries per second, and events per call.  A flood delays the jail's own name
 * queries, but neither the host's name server nor the supervisor's other work.
 */
#include "netns/relay/resolver.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "netns/relay/resolv_conf.h"
#include "netns/relay/resolver_state.h"
#include "netns/relay/resolver_tcp.h"
#include "netns/relay/resolver_udp.h"
#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"

#define EVENTS_MAX     16    /* handled by one call */
#define FILE_BYTES_MAX 65536 /* of a resolv.conf(5), which has a few lines */

/* --- listening ----------------------------------------------------------------- */

static int bind_socket(const struct ip *address, int type, struct cj_error *err)
{
	char text[IP_TEXT_MAX];
	struct sockaddr_storage at;
	socklen_t size = resolver_state_address(address, &at);
	const char *name = ip_format(address, text);
	int on = 1;

	auto_fd int fd = socket(at.ss_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return cj_fail(err, errno, "open a socket for names at '%s'", name);
	/* ip(7): also of IPv6.  The gateway's address comes with its link, after the rules. */
	if (setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &on, sizeof(on)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
		return cj_fail(err, errno, "set up a socket for names at '%s'", name);
	if (bind(fd, (struct sockaddr *)&at, size) < 0)
		return cj_fail(err, errno, "bind '%s' port %d", name, RESOLVER_PORT);
	if (type == SOCK_STREAM && listen(fd, RESOLVER_SESSIONS_MAX) < 0)
		return cj_fail(err, errno, "listen at '%s' port %d", name, RESOLVER_PORT);
	return take_fd(&fd);
}

int resolver_listen(const struct ip *address, int *out_udp_fd, int *out_tcp_fd,
		    struct cj_error *err)
{
	auto_fd int udp_fd = bind_socket(address, SOCK_DGRAM, err);
	if (udp_fd < 0)
		return udp_fd;
	int tcp_fd = bind_socket(address, SOCK_STREAM, err);
	if (tcp_fd < 0)
		return tcp_fd;
	*out_udp_fd = take_fd(&udp_fd);
	*out_tcp_fd = tcp_fd;
	return 0;
}

/* --- creating ---------------------------------------------------------------------- */

static int read_servers(struct resolver *r, const char *path, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	char *text = NULL;
	size_t size;
	/* Usually a link into /run.  O_NONBLOCK: a fifo there must not block. */
	auto_fd int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 && errno != ENOENT)
		return cj_fail(err, errno, "open '%s'", path);
	if (fd >= 0) {
		int rc = fd_read_all(fd, FILE_BYTES_MAX, &a, &text, &size, path, err);
		if (rc < 0)
			return rc;
	}
	r->nservers = resolv_conf_servers(text ? text : "", r->servers);
	return 0;
}

static int watch_fd(struct resolver *r, int fd, uint32_t id, struct cj_error *err)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = id };
	if (epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return cj_fail(err, errno, "watch a socket of the resolver");
	return 0;
}

static int set_up(struct resolver *r, int udp_fd, int tcp_fd, const char *path,
		  struct cj_error *err)
{
	int rc = read_servers(r, path, err);
	if (rc < 0)
		return rc;
	r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (r->epoll_fd < 0)
		return cj_fail(err, errno, "create an epoll for the resolver");
	r->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (r->timer_fd < 0)
		return cj_fail(err, errno, "create a timer for the resolver");

	rc = watch_fd(r, udp_fd, RESOLVER_UDP, err);
	if (rc == 0)
		rc = watch_fd(r, tcp_fd, RESOLVER_TCP, err);
	return rc == 0 ? watch_fd(r, r->timer_fd, RESOLVER_TIMER, err) : rc;
}

int resolver_create(int udp_fd, int tcp_fd, const char *path, struct resolver **out,
		    struct cj_error *err)
{
	struct resolver *r = calloc(1, sizeof(*r));
	if (!r)
		return cj_fail(err, ENOMEM, "make room for the resolver");
	r->epoll_fd = r->timer_fd = r->udp_fd = r->tcp_fd = -1;
	for (size_t i = 0; i < RESOLVER_UDP_MAX; i++)
		r->queries[i].fd = -1;
	resolver_state_init_budget(r, clock_ms());

	int rc = set_up(r, udp_fd, tcp_fd, path, err);
	if (rc < 0) {
		resolver_destroy(&r); /* it does not own the two sockets yet */
		return rc;
	}
	r->udp_fd = udp_fd;
	r->tcp_fd = tcp_fd;
	*out = r;
	return 0;
}

void resolver_destroy(struct resolver **rr)
{
	struct resolver *r = *rr;
	if (!r)
		return;
	resolver_udp_fini(r);
	resolver_tcp_fini(r);
	cj_close(&r->udp_fd);
	cj_close(&r->tcp_fd);
	cj_close(&r->timer_fd);
	cj_close(&r->epoll_fd);
	cj_free(rr);
}

int resolver_fd(const struct resolver *r)
{
	return r->epoll_fd;
}

static void serve_timer(struct resolver *r)
{
	uint64_t times;
	(void)!read(r->timer_fd, &times, sizeof(times)); /* only resets the descriptor */
	bool some_wait = resolver_udp_sweep(r);
	some_wait |= resolver_tcp_sweep(r);
	if (!some_wait)
		resolver_state_stop_timer(r);
}

/* --- serving ------------------------------------------------------------------- */

static void serve_event(struct resolver *r, const struct epoll_event *event)
{
	uint32_t id = event->data.u32;
	if (id < RESOLVER_FIRST_QUERY)
		resolver_tcp_serve(r, id / 2, id % 2 ? TCP_PROXY_HOST : TCP_PROXY_JAIL,
				   event->events);
	else if (id < RESOLVER_UDP)
		resolver_udp_answer(r, id - RESOLVER_FIRST_QUERY);
	else if (id == RESOLVER_UDP)
		resolver_udp_receive(r);
	else if (id == RESOLVER_TCP)
		resolver_tcp_accept(r);
	else
		serve_timer(r);
}

int resolver_serve(struct resolver *r, struct cj_error *err)
{
	struct epoll_event events[EVENTS_MAX];
	int n = epoll_wait(r->epoll_fd, events, EVENTS_MAX, 0);
	if (n < 0 && errno != EINTR)
		return cj_fail(err, errno, "wait for the resolver");
	r->now_ms = clock_ms();

	/* Sessions first: a slot that is freed may still have an event in this batch, and must not
	 * be in use by another session by then.  A stale event of a query only reads EAGAIN. */
	for (int i = 0; i < n; i++)
		if (events[i].data.u32 < RESOLVER_FIRST_QUERY)
			serve_event(r, &events[i]);
	for (int i = 0; i < n; i++)
		if (events[i].data.u32 >= RESOLVER_FIRST_QUERY)
			serve_event(r, &events[i]);
	return 0;
}
