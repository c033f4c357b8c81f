/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolver - the name server of a jail: port 53 of its gateway, relayed to the host's servers.
 *
 * Init opens the sockets in the gateway's namespace.  The supervisor forwards each query from the
 * caller's own namespace.  So the host's name servers may be on loopback or in a closed range, and
 * the jail reaches only their answers.  Only plain queries pass, over UDP and TCP, and the relay
 * rewrites each one (resolver_make_plain).
 */
#pragma once

#include "netns/address/ip.h"
#include "runtime/base/error.h"

#define RESOLVER_QUERIES_MAX 64 /* waiting for an answer at a time, UDP and TCP together */

/* Runs in init, in the gateway's namespace, before that has its address (IP_FREEBIND). */
int resolver_listen(const struct ip *address, int *out_udp_fd, int *out_tcp_fd,
		    struct cj_error *err);

struct resolver;

/* Reads `path` ("/etc/resolv.conf") now; it may be missing.  Takes the sockets on success. */
int resolver_create(int udp_fd, int tcp_fd, const char *path, struct resolver **out,
		    struct cj_error *err);
void resolver_destroy(struct resolver **r);

/* When the descriptor is readable, call resolver_serve(): it does bounded work and never blocks.
 * The descriptor includes a timer, by which queries that have waited too long are dropped. */
int resolver_fd(const struct resolver *r);
int resolver_serve(struct resolver *r, struct cj_error *err);
