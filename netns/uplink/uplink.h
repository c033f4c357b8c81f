/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uplink - the gateway's connection to the Internet, by the best way this host allows.
 *
 *	host         CAP_NET_ADMIN over the caller's network namespace and IP forwarding on: a
 *	             routed veth pair and source NAT (loader_plug_host, loader_apply_host)
 *	pasta        an ordinary user's: a tap device in the gateway, sockets outside
 *	slirp4netns  the same, older
 *	none         no packet leaves the jail
 *
 * A helper runs in a pid namespace of its own, below the gateway's user namespace.  Pid 1 of it is
 * cejail's keeper: it dies with the supervisor, and the helper dies with it.  The payload can reach
 * the helper by no descriptor, no name and no address.  The helper maps no address to the host's
 * loopback and forwards no port.
 */
#pragma once

#include "netns/address/allowlist.h"
#include "runtime/base/error.h"

#define UPLINK_WHY_MAX 400 /* bytes of a reason for the user, with its NUL */

enum uplink_kind {
	UPLINK_AUTO, /* the first of the list above that this host allows */
	UPLINK_HOST,
	UPLINK_PASTA,
	UPLINK_SLIRP4NETNS,
	UPLINK_NONE,
	UPLINK_COUNT
};
extern const char *const uplink_names[UPLINK_COUNT]; /* "auto", "host", ... */

struct uplink_spec {
	enum uplink_kind kind;
	unsigned number;       /* where to begin looking for a free address and name on the host */
	int gateway_fd;        /* any socket in the gateway; the id maps are written */
	bool has_ipv6;         /* the gateway forwards it */
	struct loader *loader; /* has the gateway's sockets, and has not joined yet */
	const struct endpoint *allowed; /* closed ranges the caller opened; host uplink */
	size_t nallowed;
	/* Where helpers are looked for, ':' between; NULL: where root installs programs.  The
	 * caller's PATH is not used.  Borrowed until uplink_stop(), as the socket and the loader
	 * are. */
	const char *path;
};

struct loader;
struct uplink; /* holds a link, an owner table, or a helper */

/*
 * uplink_start - choose and begin; a helper starts while the jail is being built.
 *
 * If a requested kind is not available, the result is UPLINK_NONE, and uplink_why() has the reason.
 * Fails: only without memory or descriptors.
 */
int uplink_start(const struct uplink_spec *spec, struct uplink **out, struct cj_error *err);

/*
 * uplink_await - wait until packets can leave: the helper is attached to the tap device.
 *
 * If the helper died or is late (UPLINK_WAIT_MS), the next kind is tried with UPLINK_AUTO, else the
 * result is UPLINK_NONE.
 */
#define UPLINK_WAIT_MS 15000 /* a busy machine needs several seconds */
int uplink_await(struct uplink *u, struct cj_error *err);

/* The same without waiting: call it again after UPLINK_LOOK_MS until *out_decided. */
#define UPLINK_LOOK_MS 1
int uplink_proceed(struct uplink *u, bool *out_decided, struct cj_error *err);

enum uplink_kind uplink_kind_of(const struct uplink *u);
bool uplink_has_ipv6(const struct uplink *u);

/* Why no better kind was taken ("IP forwarding is off; turn it on: sysctl -w net.ipv4.ip_forward=1;
 * pasta is not installed (sudo apt-get install passt)"), and how helpers ended; "": no reason. */
const char *uplink_why(const struct uplink *u);

/* What may stop the packets of a host uplink; "": nothing. */
const char *uplink_warning(const struct uplink *u);

/* Readable when the helper has died; -1: there is no helper. */
int uplink_fd(const struct uplink *u);
bool uplink_is_ending(const struct uplink *u); /* uplink_fd() will be readable in a moment */

/* After uplink_fd() was readable: the kind becomes UPLINK_NONE, and uplink_why() says how the
 * helper ended, with its last output. */
void uplink_lost(struct uplink *u);

void uplink_stop(struct uplink **u);

/* Takes the gateway's end down: no packet passes from here on, also while the gateway lives. */
void uplink_cut(const struct uplink *u);

/* For `cejail doctor`: 0 when this kind is available, else the reason and its remedy.  Changes
 * nothing. */
int uplink_probe(enum uplink_kind kind, const char *path, struct cj_error *err);
