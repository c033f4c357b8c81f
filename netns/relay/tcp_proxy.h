/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp_proxy - relays between two TCP connections: a client in the jail and a server of the host.
 *
 * Each direction has one buffer.  The proxy reads into it only when it is empty, so a slow reader
 * slows down its own writer and no other connection.  The proxy passes on the end of one direction;
 * a reset ends both.  It never blocks, and one call moves at most one buffer each way.
 */
#pragma once

#include <sys/socket.h>

#define TCP_PROXY_BYTES 65536 /* each direction's buffer */

enum tcp_proxy_side { TCP_PROXY_JAIL, TCP_PROXY_HOST };

enum tcp_proxy_state {
	TCP_PROXY_OPEN,
	TCP_PROXY_UNREACHABLE, /* no connection: call tcp_proxy_join() again, or destroy it */
	TCP_PROXY_CLOSED,      /* destroy it */
};

struct tcp_proxy;

/* The next client of a listener.  Fails: EAGAIN when there is none, or it gave up the connection;
 * another errno for a failure of ours: no descriptors, no memory. */
int tcp_proxy_accept(int listen_fd);

/*
 * tcp_proxy_create - a proxy with only its jail side connected.
 *
 * Its events come from epoll_fd (borrowed) with data.u32 `id` (jail) and `id + 1` (host).
 * Owns:  takes jail_fd on success.
 * Fails: NULL without memory.
 */
struct tcp_proxy *tcp_proxy_create(int epoll_fd, uint32_t id, int jail_fd);

/* Resets both sides unless both directions have ended. */
void tcp_proxy_destroy(struct tcp_proxy **p);

/*
 * Calls `filter` with all bytes from the jail before they are sent on.  It may change the bytes and
 * reduce *size.  It returns how many leading bytes may be sent now, or -1 to close the connection.
 * It gets the other bytes again, with newer ones after them.  What it holds back must stay below
 * TCP_PROXY_BYTES.
 */
void tcp_proxy_filter(struct tcp_proxy *p,
		      ssize_t (*filter)(void *arg, uint8_t *bytes, size_t *size), void *arg);

/*
 * tcp_proxy_hear - read what the client sends before there is a host side: call it at once, and for
 * each event.  The filter gets the bytes, and holds them back until it says where they go.  When it
 * has let some pass, call tcp_proxy_join().  CLOSED also when the client ends first.
 */
enum tcp_proxy_state tcp_proxy_hear(struct tcp_proxy *p);

/* A new non-blocking socket in this process' namespace that is connected or, for SOCK_STREAM, will
 * be.  Returns the descriptor or -errno. */
int tcp_proxy_dial(const struct sockaddr *address, socklen_t size, int type);

/* Takes the socket of the host side, which may still be connecting.  TCP_PROXY_OPEN; _UNREACHABLE,
 * also for a negative number in place of the descriptor. */
enum tcp_proxy_state tcp_proxy_join(struct tcp_proxy *p, int host_fd);

/* Handles an epoll event of this side. */
enum tcp_proxy_state tcp_proxy_serve(struct tcp_proxy *p, enum tcp_proxy_side side,
				     uint32_t events);

/* Bytes moved so far, both ways.  While it does not grow, the connection is idle. */
uint64_t tcp_proxy_moved(const struct tcp_proxy *p);
