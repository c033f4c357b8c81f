/* SPDX-License-Identifier: Apache-2.0 */
#include "netns/relay/tcp_pool.h"

#include <assert.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"

#define EVENTS_MAX 16 /* served by one call */

static uint32_t first_listener(const struct tcp_pool *p)
{
	return 2 * (uint32_t)p->nslots;
}

static uint32_t timer_id(const struct tcp_pool *p)
{
	return first_listener(p) + TCP_POOL_LISTENERS_MAX;
}

static int watch_fd(const struct tcp_pool *p, int fd, uint32_t id, struct cj_error *err)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = id };
	if (epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return cj_fail(err, errno, "watch a socket of %s", p->what);
	return 0;
}

int tcp_pool_watch(const struct tcp_pool *p, int fd, size_t n, struct cj_error *err)
{
	return watch_fd(p, fd, timer_id(p) + 1 + (uint32_t)n, err);
}

int tcp_pool_open(struct tcp_pool *p, const int *listen_fds, size_t n, struct cj_error *err)
{
	assert(n <= TCP_POOL_LISTENERS_MAX);
	p->timer_fd = -1;
	p->now_ms = clock_ms();
	p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (p->epoll_fd < 0)
		return cj_fail(err, errno, "create an epoll for %s", p->what);
	p->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (p->timer_fd < 0)
		return cj_fail(err, errno, "create a timer for %s", p->what);
	int rc = watch_fd(p, p->timer_fd, timer_id(p), err);
	for (uint32_t i = 0; rc == 0 && i < n; i++)
		if (listen_fds[i] >= 0)
			rc = watch_fd(p, listen_fds[i], first_listener(p) + i, err);
	if (rc < 0)
		return rc;
	memcpy(p->listen_fds, listen_fds, n * sizeof(listen_fds[0]));
	p->nlisteners = n;
	return 0;
}

void tcp_pool_close(struct tcp_pool *p)
{
	for (size_t i = 0; i < p->nslots; i++)
		tcp_proxy_destroy(&p->slots[i].proxy);
	for (size_t i = 0; i < p->nlisteners; i++)
		cj_close(&p->listen_fds[i]);
	cj_close(&p->timer_fd);
	cj_close(&p->epoll_fd);
}

static void set_listening(struct tcp_pool *p, bool is_on)
{
	if (p->is_paused != is_on)
		return;
	for (uint32_t i = 0; i < p->nlisteners; i++) {
		struct epoll_event event = { .events = is_on ? EPOLLIN : 0,
					     .data.u32 = first_listener(p) + i };
		/* Can't fail: the listener has been there since tcp_pool_open(). */
		if (p->listen_fds[i] >= 0)
			(void)epoll_ctl(p->epoll_fd, EPOLL_CTL_MOD, p->listen_fds[i], &event);
	}
	p->is_paused = !is_on;
}

static void set_timer(struct tcp_pool *p, bool is_on)
{
	struct itimerspec when = { 0 };
	if (is_on == p->is_ticking)
		return;
	if (is_on) {
		when.it_value.tv_sec = p->tick_ms / 1000;
		when.it_value.tv_nsec = p->tick_ms % 1000 * 1000000L;
		when.it_interval = when.it_value;
	}
	(void)timerfd_settime(p->timer_fd, 0, &when, NULL); /* fails for bad arguments only */
	p->is_ticking = is_on;
}

void tcp_pool_start_ticks(struct tcp_pool *p)
{
	set_timer(p, true);
}

void tcp_pool_drop(struct tcp_pool *p, size_t slot)
{
	tcp_proxy_destroy(&p->slots[slot].proxy);
	p->count--;
	set_listening(p, true);
}

uint64_t tcp_pool_idle_ms(struct tcp_pool *p, size_t slot)
{
	struct tcp_pool_slot *s = &p->slots[slot];
	const uint64_t moved = tcp_proxy_moved(s->proxy);
	if (moved != s->moved) {
		s->moved = moved;
		s->since_ms = p->now_ms;
	}
	return p->now_ms - s->since_ms;
}

static bool is_full(const struct tcp_pool *p)
{
	return p->count == p->nslots;
}

static void open_client(struct tcp_pool *p, int jail_fd, size_t listener)
{
	size_t slot = 0;
	while (p->slots[slot].proxy) /* the caller has checked that one is free */
		slot++;
	struct tcp_proxy *proxy = tcp_proxy_create(p->epoll_fd, 2 * (uint32_t)slot, jail_fd);
	if (!proxy) {
		cj_close(&jail_fd);
		return;
	}
	p->slots[slot] = (struct tcp_pool_slot){ .proxy = proxy, .since_ms = p->now_ms };
	p->count++;
	if (p->calls->open(p->owner, slot, jail_fd, listener) != TCP_PROXY_OPEN)
		tcp_pool_drop(p, slot);
}

/* epoll would report again at once what is not accepted. */
static void serve_listener(struct tcp_pool *p, size_t listener)
{
	if (is_full(p) || (p->calls->is_wanted && !p->calls->is_wanted(p->owner))) {
		set_listening(p, false);
		return;
	}
	int fd = tcp_proxy_accept(p->listen_fds[listener]);
	if (fd >= 0)
		open_client(p, fd, listener);
	else if (fd != -EAGAIN)
		set_listening(p, false);
}

static void serve_proxy(struct tcp_pool *p, const struct epoll_event *event)
{
	const size_t slot = event->data.u32 / 2;
	const enum tcp_proxy_side side = event->data.u32 % 2 ? TCP_PROXY_HOST : TCP_PROXY_JAIL;
	struct tcp_proxy *proxy = p->slots[slot].proxy;
	if (!proxy)
		return;
	if ((p->calls->serve ? p->calls->serve(p->owner, slot, side, event->events)
			     : tcp_proxy_serve(proxy, side, event->events)) != TCP_PROXY_OPEN)
		tcp_pool_drop(p, slot); /* if there is no server, the client gets a reset */
}

static void serve_timer(struct tcp_pool *p)
{
	uint64_t times;
	(void)!read(p->timer_fd, &times, sizeof(times)); /* only resets the descriptor */
	const bool waits = p->calls->tick && p->calls->tick(p->owner);
	if (!is_full(p))
		set_listening(p, true);
	set_timer(p, waits);
}

static void serve_other(struct tcp_pool *p, uint32_t id)
{
	if (id < timer_id(p))
		serve_listener(p, id - first_listener(p));
	else if (id == timer_id(p))
		serve_timer(p);
	else
		p->calls->serve_own(p->owner, id - timer_id(p) - 1);
}

int tcp_pool_serve(struct tcp_pool *p, struct cj_error *err)
{
	struct epoll_event events[EVENTS_MAX];
	int n = epoll_wait(p->epoll_fd, events, EVENTS_MAX, 0);
	if (n < 0 && errno != EINTR)
		return cj_fail(err, errno, "wait for %s", p->what);
	p->now_ms = clock_ms();

	/* Proxies first: a slot that is freed may still have an event in this batch, and must not
	 * be in use by another connection by then. */
	for (int i = 0; i < n; i++)
		if (events[i].data.u32 < first_listener(p))
			serve_proxy(p, &events[i]);
	for (int i = 0; i < n; i++)
		if (events[i].data.u32 >= first_listener(p))
			serve_other(p, events[i].data.u32);
	if ((p->calls->tick && p->count > 0) || (p->is_paused && !is_full(p)))
		set_timer(p, true);
	return 0;
}
