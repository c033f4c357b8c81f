/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name_servers - the name servers of this host, and sockets that are connected to them.
 *
 * The supervisor opens them, in the caller's network namespace, for the gateway's resolver.
 */
#pragma once

#include "netns/address/ip.h"
#include "netns/relay/resolver_message.h"
#include "runtime/base/error.h"

struct name_servers {
	struct ip items[RESOLVER_SERVERS_MAX];
	size_t count; /* at least 1 after name_servers_read() */
};

/* Reads `path` ("/etc/resolv.conf") now; it may be missing. */
int name_servers_read(const char *path, struct name_servers *out, struct cj_error *err);

/*
 * name_servers_connect - a new non-blocking socket for one server; the kernel chooses its port.
 *
 * type: SOCK_DGRAM or SOCK_STREAM, which may still be connecting.
 * Returns the descriptor or -errno; EINVAL for a server that is not in the list, or another type.
 */
int name_servers_connect(const struct name_servers *servers, size_t server, int type);
