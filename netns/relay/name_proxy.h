/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name_proxy - relays the connections of a jail whose names are checked (client_name.h).
 *
 * Runs in the gateway's process.  The rules redirect connections to it: they go to ports 443 and 80
 * of addresses that are open by a name of the list.
 *
 *	program                 proxy                           server
 *	connect(2) -----------> accept4(2)
 *	ClientHello, request -> reads and holds back the bytes
 *	                        may()?  No: a reset
 *	                        connect(), to the destination
 *	                        that the program chose -------> accept4(2)
 *	                        sends the bytes --------------> the same bytes
 *
 * So the program's connect(2) succeeds before there is a server; if that can't be reached, the
 * program gets a reset.
 */
#pragma once

#include "netns/address/ip.h"
#include "runtime/base/error.h"

#define NAME_PROXY_PORT        443  /* of the gateway, where nothing else listens */
#define NAME_PROXY_CONNECTIONS 128  /* at a time; more wait in the backlog */
#define NAME_PROXY_FIRST_S     10   /* until the name is complete */
#define NAME_PROXY_IDLE_S      3600 /* without a byte in either direction */

/* A destination, as the kernel has kept it. */
struct name_destination {
	struct ip address;
	uint16_t port;
};

struct name_proxy_calls {
	/* May a client reach the server of this name there?  "": it has sent none.  False: it
	 * gets a reset.  is_again: it was allowed before, and the list has changed. */
	bool (*may)(void *context, const char *name, const struct name_destination *to,
		    bool is_again);
	/* A new non-blocking socket of the gateway's namespace that is connected or will be: its
	 * descriptor, or a negative number. */
	int (*connect)(void *context, const struct name_destination *to);
	void *context;
};

/* The listening socket for IPv4 or IPv6 (4, 6) of the calling process' namespace. */
int name_proxy_listen(int family, struct cj_error *err);

struct name_proxy;

/* Takes the listening sockets on success; -1: that family has none. */
int name_proxy_create(int ip4_fd, int ip6_fd, const struct name_proxy_calls *calls,
		      struct name_proxy **out, struct cj_error *err);
void name_proxy_destroy(struct name_proxy **p);

/* Resets the connections whose names are no longer allowed. */
void name_proxy_check_again(struct name_proxy *p);

/* When the descriptor is readable, call name_proxy_serve(): bounded work, never blocks. */
int name_proxy_fd(const struct name_proxy *p);
int name_proxy_serve(struct name_proxy *p, struct cj_error *err);
