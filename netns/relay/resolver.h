/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolver - the name server of a jail: port 53 of its gateway, relayed to the host's servers.
 *
 * Runs in the gateway's process, which may open no socket.  It asks for each connection to a name
 * server (name_servers_connect), which begins in the caller's own namespace.  So the host's name
 * servers may be on loopback or in a closed range, and the jail reaches only their answers.  Only
 * plain queries pass, over UDP and TCP, and the relay rewrites each one (resolver_make_plain).
 * Where names are filtered (resolver_filter), there is nothing over TCP.
 */
#pragma once

#include "netns/address/ip.h"
#include "netns/relay/resolver_message.h"
#include "runtime/base/error.h"

#define RESOLVER_QUERIES_MAX 64 /* waiting for an answer at a time, UDP and TCP together */

/* Runs in the gateway's namespace, before that has its address (IP_FREEBIND). */
int resolver_listen(const struct ip *address, int *out_udp_fd, int *out_tcp_fd,
		    struct cj_error *err);

struct resolver;

/*
 * The filter of names, for a live allow list.  A query for a name that may not be asked is refused;
 * one for something else than an address has an empty answer.  An answer has the addresses that
 * open() leaves, once it has opened them.
 */
enum resolver_end {
	RESOLVER_LATER,  /* the client gets a failure, and may ask again */
	RESOLVER_DENIED, /* an alias in the answer is: it gets a refusal */
	RESOLVER_OPEN
};

struct resolver_names {
	bool (*may_ask)(void *context, const char *name);
	/* Leaves the first *count of addresses[], which are open now. */
	enum resolver_end (*open)(void *context, const char *name,
				  const struct resolver_aliases *aliases,
				  struct resolver_address *addresses, size_t *count);
	void *context;
};

/* The host's name servers: how many there are, and a new non-blocking socket that is connected to
 * one of them: its descriptor, or a negative number.  type: SOCK_DGRAM, SOCK_STREAM. */
struct resolver_upstream {
	size_t count;
	int (*connect)(void *context, size_t server, int type);
	void *context;
};

/* Takes the sockets on success.  Without a server each query fails at once. */
int resolver_create(int udp_fd, int tcp_fd, const struct resolver_upstream *upstream,
		    struct resolver **out, struct cj_error *err);
void resolver_destroy(struct resolver **r);

/* From here on `names` (borrowed) filters; NULL: any name is answered, as at first. */
void resolver_filter(struct resolver *r, const struct resolver_names *names);

/* From here on there is no server, also for the queries that wait. */
void resolver_lose_servers(struct resolver *r);

/* When the descriptor is readable, call resolver_serve(): it does bounded work and never blocks.
 * The descriptor includes a timer, by which queries that have waited too long are dropped. */
int resolver_fd(const struct resolver *r);
int resolver_serve(struct resolver *r, struct cj_error *err);
