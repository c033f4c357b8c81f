/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp_pool - TCP proxies in slots, the listeners of their clients and a timer, in one epoll.
 *
 * Without a free slot, after a failure of ours (no descriptors, no memory) and while the owner
 * wants no client, the listeners have no events: clients wait in the kernel's backlog until a proxy
 * ends or the timer expires.  The timer runs while it is needed for that, or for the owner's
 * ticks.
 *
 * An event's data is a number: 2 * SLOT and 2 * SLOT + 1 are the sides of a proxy, then come the
 * listeners, the timer, and the owner's own sockets.
 */
#pragma once

#include "netns/relay/tcp_proxy.h"
#include "runtime/base/error.h"

#define TCP_POOL_LISTENERS_MAX 16

struct tcp_pool_slot {
	struct tcp_proxy *proxy;  /* NULL: free */
	uint64_t moved, since_ms; /* bytes so far, and when they last grew; or since it began */
};

struct tcp_pool_calls {
	/* Is a client of a listener wanted now?  NULL: always. */
	bool (*is_wanted)(void *owner);
	/* A client is in the slot, and its proxy has only its jail side.  The proxy ends unless the
	 * call returns TCP_PROXY_OPEN. */
	enum tcp_proxy_state (*open)(void *owner, size_t slot, int jail_fd, size_t listener);
	/* An event of a proxy; likewise.  NULL: tcp_proxy_serve(), once. */
	enum tcp_proxy_state (*serve)(void *owner, size_t slot, enum tcp_proxy_side side,
				      uint32_t events);
	/* The timer has expired.  True: more ticks are needed.  NULL: none is. */
	bool (*tick)(void *owner);
	/* The owner's own socket `n` of tcp_pool_watch() is readable. */
	void (*serve_own)(void *owner, size_t n);
};

struct tcp_pool {
	/* The owner sets these before tcp_pool_open(). */
	const char *what; /* for messages: "the resolver" */
	const struct tcp_pool_calls *calls;
	void *owner;
	struct tcp_pool_slot *slots;
	size_t nslots;
	unsigned tick_ms;

	int epoll_fd, timer_fd;
	int listen_fds[TCP_POOL_LISTENERS_MAX]; /* -1: there is none */
	size_t nlisteners;
	size_t count; /* of proxies */
	bool is_ticking, is_paused;
	uint64_t now_ms;
};

/* Takes the listening sockets on success; -1 is left out. */
int tcp_pool_open(struct tcp_pool *p, const int *listen_fds, size_t n, struct cj_error *err);
/* Also of one that could not be opened. */
void tcp_pool_close(struct tcp_pool *p);

/* The pool's descriptor is readable: bounded work, never blocks. */
int tcp_pool_serve(struct tcp_pool *p, struct cj_error *err);

/* A socket of the owner, which stays the owner's. */
int tcp_pool_watch(const struct tcp_pool *p, int fd, size_t n, struct cj_error *err);
/* The owner waits for something else than a proxy: until tick() says that this is over. */
void tcp_pool_start_ticks(struct tcp_pool *p);

void tcp_pool_drop(struct tcp_pool *p, size_t slot);
/* How long no byte has moved in either direction. */
uint64_t tcp_pool_idle_ms(struct tcp_pool *p, size_t slot);
