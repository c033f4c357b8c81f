/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp_proxy - joins two TCP connections, from a client in the jail and to a server of the host.
 * Acts.
 *
 * Each direction has one buffer: it is read into when it is empty and not before, so that a slow
 * reader slows its writer and nobody else.  The end of one direction is passed on, a reset ends
 * both.  Never blocks; one call moves at most a buffer each way.
 */
#pragma once

#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#define TCP_PROXY_BYTES 65536 /* each direction's buffer */

enum tcp_proxy_side { TCP_PROXY_JAIL, TCP_PROXY_HOST };

enum tcp_proxy_state {
	TCP_PROXY_OPEN,
	TCP_PROXY_UNREACHABLE, /* the server can't be connected: tcp_proxy_connect() to another, or destroy */
	TCP_PROXY_CLOSED /* destroy it */
};

struct tcp_proxy;

/*
 * tcp_proxy_create - a pair with its jail's side only.
 *
 * Its events come from epoll_fd (borrowed) with data.u32 `id` (jail) and `id + 1` (host).
 * Owns:  takes jail_fd on success.
 * Fails: NULL without memory.
 */
struct tcp_proxy *tcp_proxy_create(int epoll_fd, uint32_t id, int jail_fd);

/* Resets both sides unless both directions have ended. */
void tcp_proxy_destroy(struct tcp_proxy **p);

/*
 * Lets `filter` look at what comes from the jail before it goes on.  It may change the bytes and
 * make *size smaller.  It returns how many bytes at the front may go now (it gets the rest again,
 * with more behind it), or -1 to end the pair.  What it holds back must stay below TCP_PROXY_BYTES.
 */
void tcp_proxy_filter(struct tcp_proxy *p,
		      ssize_t (*filter)(void *arg, uint8_t *bytes, size_t *size), void *arg);

/* Begins to connect the host's side, in this process' namespace.  TCP_PROXY_OPEN or UNREACHED. */
enum tcp_proxy_state tcp_proxy_connect(struct tcp_proxy *p, const struct sockaddr *address,
				       socklen_t size);

/* What an event of this side asks for. */
enum tcp_proxy_state tcp_proxy_serve(struct tcp_proxy *p, enum tcp_proxy_side side,
				     uint32_t events);

/* Bytes moved so far, both ways: a pair where it does not grow is idle. */
uint64_t tcp_proxy_moved(const struct tcp_proxy *p);
