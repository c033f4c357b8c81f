/* SPDX-License-Identifier: Apache-2.0 */
/* network_parts - what a network holds; for netns/ only, and tests. */
#pragma once

#include "netns/gateway.h"
#include "netns/network.h"
#include "netns/relay/forward.h"
#include "netns/relay/name_servers.h"
#include "netns/rtnetlink/hostaddrs.h"

/* How often something happened in a second. */
struct network_rate {
	uint64_t second;
	unsigned count;
};

struct network {
	const struct network_spec *spec; /* borrowed, as are the endpoints */
	const struct endpoints *endpoints;
	unsigned number;
	struct network_callbacks callbacks;
	struct network_handles handles;
	struct gateway gateway;
	bool is_drain_late; /* the gateway has not answered the last one, and gets no other */
	struct network_rate denial_rate, ask_rate; /* of what it sends */
	int epoll_fd;                              /* -1: nothing to serve yet */
	bool is_building;                          /* the uplink is awaited */
	bool is_filtered;
	enum network_state state;
	char why[NETWORK_WHY_MAX];
	struct hostaddrs *hostaddrs;
	struct name_servers name_servers;
	struct uplink *uplink;
	struct forward *forward;
	struct denials denials;
};

/* --- network_gateway.c: after a failure the gateway is lost -------------------------------- */

/* Its answer to a step; serves what it asks for until then. */
int network_await_gateway(struct network *n, enum gateway_step answer, unsigned timeout_ms,
			  struct step_msg *out, struct cj_error *err);

/* Takes the denials that it has told; never waits. */
int network_take_events(struct network *n, struct cj_error *err);

/* Answers what it asks for: a socket, because it may open none.  Without a descriptor in the answer
 * it asks another server. */
int network_answer_ask(struct network *n, struct cj_error *err);

/* Takes the denials that the kernel has logged.  Without an answer in time (GATEWAY_DRAIN_MS) those
 * rows lack their addresses. */
int network_drain(struct network *n, struct cj_error *err);
