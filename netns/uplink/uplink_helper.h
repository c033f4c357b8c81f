/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uplink_helper - pasta and slirp4netns: where they are installed, their arguments, and the
 * addresses they serve.
 */
#pragma once

#include "netns/rtnetlink/links.h"
#include "netns/uplink/uplink.h"
#include "runtime/base/error.h"

#define UPLINK_PATH_MAX 4096
/* Where root installs programs.  The caller's PATH is not used: its value is not trusted. */
#define UPLINK_HELPER_PATH "/usr/local/bin:/usr/bin:/bin"

struct uplink_helper {
	const char *name, *package; /* as distributions call it */
	const char *avx2_suffix;    /* or NULL: uplink_helper_choose_build() */
	const char *const *argv4;   /* IPv4 alone */
	const char *const *argv46;  /* NULL: no reliable IPv6 */
	bool needs_net_admin;       /* CAP_NET_ADMIN over the gateway, at its start */
};

/* What every helper serves at the tap device; IPv6 only if it was started with it. */
extern const struct links_tap_spec uplink_helper_tap;

/* NULL: this kind has no helper. */
const struct uplink_helper *uplink_helper_of(enum uplink_kind kind);

/*
 * uplink_helper_find - the first file of its name in `path` (NULL: UPLINK_HELPER_PATH).
 *
 * Fails: ENOENT if there is none; EPERM if users other than root and the caller may write it, or
 *        another user owns it: then out_path names it.
 */
int uplink_helper_find(const struct uplink_helper *h, const char *path,
		       char out_path[static UPLINK_PATH_MAX], struct cj_error *err);

/*
 * A helper with avx2_suffix executes the file of its own path and this suffix, on a processor with
 * AVX2 and where there is one.  Puts that path into `path`, which saves an execve(2), under the
 * conditions of uplink_helper_find().
 */
void uplink_helper_choose_build(const struct uplink_helper *h, char path[static UPLINK_PATH_MAX]);

/* Fails if the helper's user can't open the tun device.  The helper of a root caller is not
 * root. */
int uplink_helper_try_tun(struct cj_error *err);

/* Whether the caller's network namespace leads to the IPv6 Internet.  Sends nothing. */
bool uplink_helper_has_ipv6(void);

/* "/usr/bin/pasta (pasta 0.0~git...)".  It runs the helper, so only doctor may call it. */
int uplink_helper_version(enum uplink_kind kind, char *out, size_t size, struct cj_error *err);
