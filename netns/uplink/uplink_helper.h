/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uplink_helper - what is known of pasta and slirp4netns: where they are, how they are called,
 * which addresses go with them.  The table is pure, the rest acts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "netns/rtnetlink/links.h"
#include "netns/uplink/uplink_spec.h"
#include "runtime/base/error.h"

#define UPLINK_PATH_MAX 4096
/* Where root installs programs.  The caller's PATH is not asked: it is set by whoever starts us. */
#define UPLINK_HELPER_PATH "/usr/local/bin:/usr/bin:/bin"

struct uplink_helper {
	const char *name, *package; /* as apt and dnf know it */
	const char *const *argv4;   /* IPv4 alone */
	const char *const *argv46;  /* NULL: it has no IPv6 that we would rely on */
	struct links_tap_spec tap;
};

/* NULL: this kind is no helper. */
const struct uplink_helper *uplink_helper_of(enum uplink_kind kind);

/*
 * uplink_helper_find - the first file of its name in `path` (NULL: UPLINK_HELPER_PATH).
 * Refused, with the reason in out_why: none there; one that others than root and the caller may
 * write, or that belongs to somebody else.
 */
bool uplink_helper_find(const struct uplink_helper *h, const char *path,
			char out_path[static UPLINK_PATH_MAX], char out_why[static UPLINK_WHY_MAX]);

/* May the helper's user open the tun device?  The helper of a root caller is not root. */
bool uplink_helper_has_tun(char out_why[static UPLINK_WHY_MAX]);

/* Does the caller's network namespace lead to the IPv6 Internet?  Sends nothing. */
bool uplink_helper_has_ipv6(void);

/* "/usr/bin/pasta (pasta 0.0~git...)": runs the helper, so for doctor alone.  False: `out` says
 * why. */
bool uplink_helper_version(enum uplink_kind kind, char *out, size_t size);
