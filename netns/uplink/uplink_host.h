/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uplink_host - a routed link and source NAT in the caller's own network namespace.  Acts.
 *
 * Each jail has a number on this host: its link is "cjNUMBER", its addresses 198.19.x.y and
 * fdce:6a12::NUMBER, its table "cejail-NUMBER".  The table belongs to its socket, the link to the
 * gateway: the kernel removes both when the supervisor and the jail are gone, however they go.
 * What belongs to the administrator, forwarding above all, is looked at and never changed.
 */
#pragma once

#include <stdbool.h>

#include "netns/uplink/uplink_spec.h"
#include "runtime/base/error.h"

struct uplink_host {
	bool has_ipv6;
	int rules_fd;  /* keeps the table there; null: -1 */
	char name[16]; /* of the link; null: "" */
};

/*
 * uplink_host_start - 0: plugged, the rules stood first; 1: this host does not allow it, why[] says
 * what and the remedy; negative: an error that is nobody's choice.
 *
 * With 0, a nonempty why[] is a warning: somebody else's table drops forwarded packets.
 * Fills *out in any case.
 */
int uplink_host_start(const struct uplink_spec *spec, struct uplink_host *out,
		      char why[static UPLINK_WHY_MAX], struct cj_error *err);

/*
 * The kernel closes the table later (deferred_close.h), and removes the link when the gateway ends:
 * to remove them here would take 30 ms.  Accepts the null value, leaves it behind.
 */
void uplink_host_stop(struct uplink_host *u);

/* True: uplink_host_start() has what it needs; why[] may hold the warning.  Changes nothing. */
bool uplink_host_probe(char why[static UPLINK_WHY_MAX]);
