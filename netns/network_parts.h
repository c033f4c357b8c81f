/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network_parts - what a network holds; private to network.c and network_build.c.
 */
#pragma once

#include "netns/relay/resolver.h"
#include "netns/relay/forward.h"
#include "netns/network.h"
#include "netns/rtnetlink/hostaddrs.h"

enum network_source {
	SOURCE_JAIL_LOG,
	SOURCE_GATEWAY_LOG,
	SOURCE_HOSTADDRS, /* an interface of the host got an address */
	SOURCE_UPLINK,    /* the helper died */
	SOURCE_FORWARD,
	SOURCE_RESOLVER,
	SOURCE_COUNT
};

struct network {
	const struct network_spec *spec; /* borrowed, as are the endpoints */
	const struct endpoints *endpoints;
	unsigned number;
	struct network_callbacks callbacks;
	struct network_handles handles;
	int epoll_fd;     /* -1: nothing to serve yet */
	bool is_building; /* the uplink is awaited */
	bool is_filtered;
	enum network_state state;
	char why[NETWORK_WHY_MAX];
	struct hostaddrs *hostaddrs;
	struct uplink *uplink;
	struct forward *forward;
	struct resolver *resolver;
	struct denials denials;
};

void network_warn(const struct network *n, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Sets NETWORK_FAILED and its reason; a text that is too long is cut. */
void network_failed(struct network *n, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

int network_watch_fd(struct network *n, enum network_source source, int fd, struct cj_error *err);

/* Rejected at once, a program need not wait for a timeout. */
int network_reject_unreachable(struct network *n, struct cj_error *err);
