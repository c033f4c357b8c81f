/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uplink - the gateway's connection to the Internet, by the best way this host allows.  Acts.
 *
 *	host         CAP_NET_ADMIN over the caller's network namespace and IP forwarding on: a
 *	             routed veth pair and source NAT (links_plug_host, firewall_build_host)
 *	pasta        an ordinary user's: a tap device in the gateway (uplink_tap), sockets outside
 *	slirp4netns  the same, older
 *	none         no packet leaves the jail
 *
 * A helper runs in a pid namespace of its own, below the gateway's user namespace.  Pid 1 of it is
 * cejail's keeper: it dies with the supervisor, and the helper dies with it.  The payload can reach
 * the helper by no descriptor, no name and no address.  The helper maps no address to the host's
 * loopback and forwards no port.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "netns/uplink/uplink_spec.h"
#include "runtime/base/error.h"

extern const char *const uplink_names[UPLINK_COUNT]; /* "auto", "host", ... */

struct uplink; /* holds a link, an owner table, or a helper */

/*
 * uplink_start - choose and begin; a helper starts while the jail is being built.
 *
 * out_why says why a better kind than the one chosen is not available ("IP forwarding is off
 * (sysctl -w net.ipv4.ip_forward=1); pasta is not installed (sudo apt-get install passt)"), or "".
 * If a requested kind is not available, the result is UPLINK_NONE with that reason.
 * Fails: only without memory or descriptors.
 */
int uplink_start(const struct uplink_spec *spec, struct uplink **out,
		 char out_why[static UPLINK_WHY_MAX], struct cj_error *err);

/*
 * uplink_await - wait until packets can leave: the helper is attached to the tap device.
 *
 * If the helper died or is late (UPLINK_WAIT_MS), the next kind is tried with UPLINK_AUTO, else the
 * result is UPLINK_NONE.  out_why has the reasons of uplink_start() and how the helper ended.
 */
#define UPLINK_WAIT_MS 5000
int uplink_await(struct uplink *u, char out_why[static UPLINK_WHY_MAX], struct cj_error *err);

/* The same without waiting: call it again after UPLINK_LOOK_MS until *out_decided. */
#define UPLINK_LOOK_MS 1
int uplink_proceed(struct uplink *u, bool *out_decided, char out_why[static UPLINK_WHY_MAX],
		   struct cj_error *err);

enum uplink_kind uplink_kind_of(const struct uplink *u);
bool uplink_has_ipv6(const struct uplink *u);

/* Readable when the helper has died; -1: there is no helper. */
int uplink_fd(const struct uplink *u);
bool uplink_is_ending(const struct uplink *u); /* uplink_fd() will be readable in a moment */

/* After uplink_fd() was readable: how the helper ended, with its last output. */
void uplink_lost(struct uplink *u, char out_why[static UPLINK_WHY_MAX]);

void uplink_stop(struct uplink **u);

/* Is this kind available?  For `cejail doctor`.  False: out_why has the reason and its remedy. */
bool uplink_probe(enum uplink_kind kind, const char *path, char out_why[static UPLINK_WHY_MAX]);
