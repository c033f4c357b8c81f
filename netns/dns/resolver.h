/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolver - the name server a jail sees: port 53 of its gateway, relayed to the host's. Acts.
 *
 * The sockets were opened by init in the gateway's namespace; the supervisor passes each query on
 * from the caller's own namespace, so the host's name servers may be on loopback or in a closed
 * range and the jail still reaches nothing but their answers.  Only plain queries pass, over UDP
 * and TCP, and each is written anew (resolver_make_plain).
 */
#pragma once

#include "netns/ip.h"
#include "runtime/base/error.h"

/* Runs in init, in the gateway's namespace, before its address is there (IP_FREEBIND). */
int resolver_listen(const struct ip *address, int *out_udp_fd, int *out_tcp_fd,
		    struct cj_error *err);

struct resolver;

/* Reads `path` ("/etc/resolv.conf") now; it may be missing.  Takes the sockets on success. */
int resolver_create(int udp_fd, int tcp_fd, const char *path, struct resolver **out,
		    struct cj_error *err);
void resolver_destroy(struct resolver **r);

/* Readable when there is something to do; then resolver_serve(): never blocks, bounded work.  It
 * also drops what has waited too long (a timer of its own is in the descriptor). */
int resolver_fd(const struct resolver *r);
int resolver_serve(struct resolver *r, struct cj_error *err);
