/* SPDX-License-Identifier: Apache-2.0 */
/* uplink_spec - the kinds of uplink, and what one is started with. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "netns/address/allowlist.h"

#define UPLINK_WHY_MAX 400 /* bytes of a reason for the user, with its NUL */

enum uplink_kind {
	UPLINK_AUTO, /* the first of the list above that this host allows */
	UPLINK_HOST,
	UPLINK_PASTA,
	UPLINK_SLIRP4NETNS,
	UPLINK_NONE,
	UPLINK_COUNT
};

struct uplink_spec {
	enum uplink_kind kind;
	unsigned number; /* where to begin looking for a free address and name on the host */
	int gateway_fd;  /* NETLINK_ROUTE socket in the gateway; the id maps are written */
	bool has_ipv6;   /* the gateway forwards it */
	const struct endpoint *allowed; /* closed ranges the caller opened; host uplink */
	size_t nallowed;
	/* Where helpers are looked for, ':' between; NULL: where root installs programs.  The
	 * caller's PATH is not used.  Borrowed until uplink_stop(), as gateway_fd is. */
	const char *path;
};
