/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uplink_host - a routed link and source NAT in the caller's own network namespace.  Acts.
 *
 * Each jail has a number on this host: its link is "cjNUMBER", its addresses 198.19.x.y and
 * fdce:6a12::NUMBER, its table "cejail-NUMBER".  Jails that follow one another share a table
 * (host_table.h), and their links are "cjsTABLE-NUMBER".  A jail with closed ranges that the caller
 * opened always has a table of its own.
 *
 * A socket owns the table, and the gateway owns the link: the kernel removes both when those that
 * hold them have ended, however they ended.  Settings of the administrator, such as IP forwarding,
 * are read and never changed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "netns/uplink/uplink_spec.h"
#include "runtime/base/error.h"

struct uplink_host {
	bool has_ipv6;
	char name[16];  /* of the link; null: "" */
	char table[16]; /* the jail's own; "": it is shared */
	/* Descriptors; null: -1 */
	int rules_fd;      /* keeps the table loaded */
	int mark_fd;       /* host_table_mark(); the ring may have it instead */
	int ring_fd;       /* deferred_close() of both */
	uint64_t given_ms; /* when the holder gave a shared table */
};

/*
 * uplink_host_start - load the rules, then plug the link.
 *
 * Returns 0: done; 1: this host does not allow it, and why[] has the reason and the remedy;
 * negative: no memory or no descriptors.
 * With 0, a nonempty why[] is a warning: another table of this host drops forwarded packets.
 * Fills *out in any case.
 */
int uplink_host_start(const struct uplink_spec *spec, struct uplink_host *out,
		      char why[static UPLINK_WHY_MAX], struct cj_error *err);

#define UPLINK_HOST_NONE                                                                           \
	{                                                                                          \
		.rules_fd = -1, .mark_fd = -1, .ring_fd = -1                                       \
	}

/*
 * Takes the link down, then removes a table of the jail's own; a kernel worker closes its socket
 * (deferred_close.h).  The kernel removes the link when the gateway ends.  Accepts the null value,
 * leaves it behind.
 */
void uplink_host_stop(struct uplink_host *u);

/* Does this host allow uplink_host_start()?  why[] may have the warning.  Changes nothing. */
bool uplink_host_probe(char why[static UPLINK_WHY_MAX]);
