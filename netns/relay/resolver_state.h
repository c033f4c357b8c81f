/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolver_state - one resolver, as resolver.c, resolver_udp.c and resolver_tcp.c share it.  Acts.
 *
 * An event's data is a number: 2 * SLOT and 2 * SLOT + 1 are the sides of a session, then come
 * the queries, then the three below.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "netns/relay/resolv_conf.h"
#include "netns/relay/resolver_message.h"
#include "netns/address/ip.h"
#include "netns/relay/tcp_proxy.h"

#define RESOLVER_PORT         53 /* of DNS */
#define RESOLVER_QUERIES_MAX  64 /* waiting for an answer at a time, UDP and TCP together */
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
	int fd; /* connected to the server, with a port for this query only; -1: free slot */
	uint64_t since_ms;
	size_t server, tried; /* index of its server; how many servers were asked */
	struct sockaddr_storage peer;
	socklen_t peer_size;
	uint8_t bytes[RESOLVER_QUESTION_MAX];
	size_t size;
};

/* A client's TCP connection, and the resolver's connection to the server. */
struct resolver_session {
	struct tcp_proxy *proxy;  /* NULL: free */
	size_t server, tried;     /* first server asked; how many were tried */
	uint64_t moved, since_ms; /* bytes so far, and when they last grew */
};

struct resolver {
	int epoll_fd, timer_fd, udp_fd, tcp_fd;
	bool is_ticking, is_paused; /* the timer runs; the TCP listener is not watched */
	size_t current, nservers;   /* the server that new queries go to */
	struct ip servers[RESOLV_CONF_SERVERS_MAX];
	uint64_t now_ms, filled_ms;
	unsigned budget; /* thousandths of a query */
	struct resolver_query queries[RESOLVER_UDP_MAX];
	struct resolver_session sessions[RESOLVER_SESSIONS_MAX];
	uint8_t scratch[RESOLVER_ANSWER_MAX];
};

/* The socket address of port 53 of `ip`.  Returns its size. */
socklen_t resolver_state_address(const struct ip *ip, struct sockaddr_storage *out);

/* This server did not answer: new queries go to the next one. */
void resolver_state_skip_server(struct resolver *r, size_t server);

/* A full budget, at the time `now_ms`. */
void resolver_state_init_budget(struct resolver *r, uint64_t now_ms);

/* Takes `cost` queries from the budget.  False: it has too few, and none is taken. */
bool resolver_state_spend(struct resolver *r, unsigned cost);

/* The timer runs while a query or a session waits. */
void resolver_state_start_timer(struct resolver *r);
void resolver_state_stop_timer(struct resolver *r);
