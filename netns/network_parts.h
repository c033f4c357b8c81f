/* SPDX-License-Identifier: Apache-2.0 */
/* network_parts - what a network holds; for netns/ only, and tests. */
#pragma once

#include "netns/firewall/firewall.h"
#include "netns/gateway.h"
#include "netns/network.h"
#include "netns/relay/forward.h"
#include "netns/relay/resolver_message.h"
#include "netns/rtnetlink/hostaddrs.h"

/* How often something happened in a second. */
struct network_rate {
	uint64_t second;
	unsigned count;
};

/* The name servers of this host, for the gateway's resolver. */
struct name_servers {
	struct ip items[RESOLVER_SERVERS_MAX];
	size_t count; /* at least 1 after name_servers_read() */
};

struct network {
	const struct network_spec *spec; /* borrowed, as is what the first rules point to */
	struct names_rules rules;
	struct arena rules_arena; /* of rules that came later */
	unsigned number;
	struct network_callbacks callbacks;
	struct network_handles handles;
	struct gateway gateway;
	struct loader loader;
	bool is_drain_late; /* the gateway has not answered the last one, and gets no other */
	struct network_rate denial_rate, ask_rate, name_rate; /* of what it sends */
	int epoll_fd;                                         /* -1: nothing to serve yet */
	bool is_building;                                     /* the uplink is awaited */
	bool is_filtered;
	enum network_state state;
	char why[NETWORK_WHY_MAX];
	struct hostaddrs *hostaddrs;
	struct name_servers name_servers;
	struct names *names;      /* NULL: it is not is_live */
	bool has_refused_address; /* the warning of it has been given */
	struct uplink *uplink;
	struct forward *forward;
	struct http_upstream *upstream; /* NULL: the plan has none */
	struct denials denials;
	uint64_t denied_names; /* all; the kernel counts packets */
};

/* --- network_rules.c ------------------------------------------------------------------------- */

/* Names can be checked: the list of a session may get some later. */
bool network_has_proxy(const struct network_spec *spec);

/* The rules about destinations in this table, of these, of the host's addresses and of
 * what names have opened and no table has. */
struct firewall_spec network_firewall(const struct network *n, enum loader_table table,
				      const struct names_rules *rules);

/* --- network.c, for network_change.c --------------------------------------------------------- */

/* A gateway that fails or breaks the protocol takes the uplink with it, and the run goes on.  So
 * does a loader that has ended. */
void network_lose_gateway(struct network *n, const struct cj_error *why);

/* Sets NETWORK_FAILED and its reason, and warns of it, with `prefix` before it.  A text that is too
 * long is cut. */
__attribute__((format(printf, 3, 4))) void network_set_failed(struct network *n, const char *prefix,
							      const char *fmt, ...);

/* --- network_gateway.c: after a failure the gateway is lost -------------------------------- */

/* Its answer to a step; serves what it asks for until then. */
int network_await_gateway(struct network *n, enum gateway_step answer, unsigned timeout_ms,
			  struct step_msg *out, struct cj_error *err);

/* Takes the denials that it has told; never waits. */
int network_take_events(struct network *n, struct cj_error *err);

/* Answers what it asks for: a socket, because it may open none.  Without a descriptor in the answer
 * it asks another server. */
int network_answer_ask(struct network *n, struct cj_error *err);

/* Reads `path` ("/etc/resolv.conf") now; it may be missing. */
int name_servers_read(const char *path, struct name_servers *out, struct cj_error *err);

/* A new non-blocking socket for one server, in the caller's network namespace: the descriptor or
 * -errno.  `type`: SOCK_DGRAM or SOCK_STREAM, which may still be connecting. */
int name_servers_connect(const struct name_servers *servers, size_t server, int type);

/* Takes the denials that the kernel has logged.  Without an answer in time (GATEWAY_DRAIN_MS) those
 * rows lack their addresses. */
int network_drain(struct network *n, struct cj_error *err);
