/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolver_state - what resolver.c, resolver_udp.c and resolver_tcp.c share: one resolver.
 *
 * An event's data is a number: 2 * SLOT and 2 * SLOT + 1 are the sides of a session, then come
 * the queries, then the three below.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "netns/tcp_proxy.h"
#include "netns/dns/resolver.h"
#include "netns/dns/resolver_message.h"

#define RESOLVER_SESSIONS_MAX 16 /* of TCP, out of RESOLVER_QUERIES_MAX */
#define RESOLVER_UDP_MAX      (RESOLVER_QUERIES_MAX - RESOLVER_SESSIONS_MAX)

enum resolver_event {
	RESOLVER_FIRST_QUERY = 2 * RESOLVER_SESSIONS_MAX,
	RESOLVER_UDP = RESOLVER_FIRST_QUERY + RESOLVER_UDP_MAX,
	RESOLVER_TCP,
	RESOLVER_TIMER
};

/* A query that waits for its answer. */
struct resolver_query {
	int fd; /* connected to the server, its port this query's alone; -1: free */
	uint64_t since_ms;
	size_t server, tried; /* its server's index; how many were asked */
	struct sockaddr_storage peer;
	socklen_t peer_size;
	uint8_t bytes[RESOLVER_QUESTION_MAX];
	size_t size;
};

/* A client's TCP connection and ours to the server. */
struct resolver_session {
	struct tcp_proxy *pair;   /* NULL: free */
	size_t server, tried;     /* where it began, how many refused it */
	uint64_t moved, since_ms; /* bytes, and when they last grew */
};

struct resolver {
	int epoll_fd, timer_fd, udp_fd, tcp_fd;
	bool is_ticking, is_paused; /* the timer runs; the TCP listener is not watched */
	size_t current, nservers;   /* the server that new queries go to */
	struct ip servers[RESOLVER_SERVERS_MAX];
	uint64_t now_ms, filled_ms;
	unsigned budget; /* thousandths of a query */
	struct resolver_query queries[RESOLVER_UDP_MAX];
	struct resolver_session sessions[RESOLVER_SESSIONS_MAX];
	uint8_t scratch[RESOLVER_ANSWER_MAX];
};

/* --- resolver.c: what both need -- */

socklen_t resolver_address(const struct ip *ip, struct sockaddr_storage *out);

/* A server did not answer: what comes next goes to the one behind it. */
void resolver_blame(struct resolver *r, size_t server);

/* May `cost` more queries go out now?  If not, none is taken. */
bool resolver_spend(struct resolver *r, unsigned cost);

/* The timer runs until nothing waits any more. */
void resolver_tick(struct resolver *r);

/* --- resolver_udp.c -- */

void resolver_udp_take(struct resolver *r);                /* queries came */
void resolver_udp_answer(struct resolver *r, size_t slot); /* a server's answer, or its refusal */
bool resolver_udp_sweep(struct resolver *r);               /* true: some still wait */
void resolver_udp_fini(struct resolver *r);

/* --- resolver_tcp.c -- */

void resolver_tcp_accept(struct resolver *r);
void resolver_tcp_serve(struct resolver *r, size_t slot, enum tcp_proxy_side side, uint32_t events);
bool resolver_tcp_sweep(struct resolver *r); /* true: some are still there, or wait to come in */
void resolver_tcp_fini(struct resolver *r);
