/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uplink - the gateway's way to the world, by what the host allows.  Acts.
 *
 *	host         CAP_NET_ADMIN over the caller's network namespace and IP forwarding on: a
 *	             routed veth pair and source NAT (links_plug_host, firewall_build_host)
 *	pasta        an ordinary user's: a tap device in the gateway, sockets outside
 *	slirp4netns  the same, older
 *	none         nothing leads out; the jail is closed all the same
 *
 * A helper runs in a pid namespace of its own below the gateway's user namespace; its pid 1 is
 * ours (the keeper), dies with the supervisor, and takes the helper with it.  It has no
 * descriptor, no name and no address that the payload could reach, maps no address to the host's
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
 * *out_why, in the caller's buffer, says why a better kind than the one chosen was not to be had
 * ("IP forwarding is off (sysctl -w net.ipv4.ip_forward=1); pasta is not installed (apt install
 * passt)"), or "".  A kind that was asked for and can't be had is UPLINK_NONE with that reason.
 * Fails: only for reasons that are nobody's choice (no memory, no descriptors).
 */
int uplink_start(const struct uplink_spec *spec, struct uplink **out,
		 char out_why[static UPLINK_WHY_MAX], struct cj_error *err);

/*
 * uplink_await - until packets can leave.  A helper that died or is late (UPLINK_WAIT_MS) gives way
 * to the next kind with UPLINK_AUTO, else to UPLINK_NONE.  out_why is all of uplink_start()'s,
 * and the helper's own last words.
 */
#define UPLINK_WAIT_MS 5000
int uplink_await(struct uplink *u, char out_why[static UPLINK_WHY_MAX], struct cj_error *err);

enum uplink_kind uplink_kind_of(const struct uplink *u);
bool uplink_has_ipv6(const struct uplink *u);

/* Readable when the helper has died; -1: there is none. */
int uplink_fd(const struct uplink *u);
bool uplink_is_ending(const struct uplink *u); /* what uplink_fd() will tell in a moment */

/* After uplink_fd() was readable: why, in its own words where it had some. */
void uplink_lost(struct uplink *u, char out_why[static UPLINK_WHY_MAX]);

void uplink_stop(struct uplink **u);

/* What this host could do, for `cejail doctor`: true, or the reason with its remedy. */
bool uplink_probe(enum uplink_kind kind, const char *path, char out_why[static UPLINK_WHY_MAX]);
