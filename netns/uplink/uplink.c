/* SPDX-License-Identifier: Apache-2.0 */
#include "netns/uplink/uplink.h"

#include <net/if.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/ioctl.h>

#include "netns/address/addresses.h"
#include "netns/loader/loader.h"
#include "netns/uplink/uplink_helper.h"
#include "netns/uplink/uplink_parts.h"
#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"

const char *const uplink_names[UPLINK_COUNT] = {
	[UPLINK_AUTO] = "auto",   [UPLINK_HOST] = "host",
	[UPLINK_PASTA] = "pasta", [UPLINK_SLIRP4NETNS] = "slirp4netns",
	[UPLINK_NONE] = "none",
};

struct uplink {
	struct uplink_spec spec;
	enum uplink_kind kind;
	bool is_plugged;
	bool is_configured; /* the tap device */
	bool has_ipv6;      /* the helper was started with it */
	uint64_t until_ms;  /* on clock_ms(): how long the helper is awaited; 0: not yet awaited */
	struct uplink_host host;
	struct uplink_keeper keeper;
	char why[UPLINK_WHY_MAX];
};

/* Appends a reason, after "; " if there is one already. */
static void add_why(struct uplink *u, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void add_why(struct uplink *u, const char *fmt, ...)
{
	size_t used = strlen(u->why);
	if (used > 0 && used < sizeof(u->why) - 2) {
		memcpy(u->why + used, "; ", sizeof("; "));
		used += 2;
	}
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(u->why + used, sizeof(u->why) - used, fmt, ap);
	va_end(ap);
}

static int start_helper(struct uplink *u, enum uplink_kind kind, struct cj_error *err)
{
	const struct uplink_helper *h = uplink_helper_of(kind);
	char path[UPLINK_PATH_MAX];
	if (uplink_helper_find(h, u->spec.path, path, err) < 0 || uplink_helper_try_tun(err) < 0)
		return -err->code;
	uplink_helper_choose_build(h, path);
	u->has_ipv6 = u->spec.has_ipv6 && h->argv46 && uplink_helper_has_ipv6();
	const struct uplink_keeper_spec spec = {
		.path = path,
		.argv = u->has_ipv6 ? h->argv46 : h->argv4,
		.is_net_admin = h->needs_net_admin,
		.gateway_fd = u->spec.gateway_fd,
	};
	return uplink_keeper_start(&spec, &u->keeper, err) < 0 ? cj_wrap(err, "%s", h->name) : 0;
}

/* Tries the kinds from `first` on; only one kind unless the caller asked for "auto". */
static int start_from(struct uplink *u, enum uplink_kind first, struct cj_error *err)
{
	enum uplink_kind last = u->spec.kind == UPLINK_AUTO ? UPLINK_SLIRP4NETNS : u->spec.kind;

	u->kind = UPLINK_NONE;
	u->until_ms = 0;
	for (enum uplink_kind kind = first; kind <= last && kind < UPLINK_NONE; kind++) {
		struct cj_error refused = { 0 };
		char text[CJ_ERROR_TEXT_MAX];
		int rc = kind == UPLINK_HOST ? uplink_host_start(&u->spec, &u->host, &refused)
					     : start_helper(u, kind, &refused);
		if (rc == 0) {
			u->kind = kind;
			u->is_plugged = kind == UPLINK_HOST;
			return 0;
		}
		/* A shortage of this process ends the run; after any other error another kind of
		 * uplink may work. */
		if (kind == UPLINK_HOST &&
		    (rc == -ENOMEM || rc == -EMFILE || rc == -ENFILE || rc == -ENOBUFS)) {
			*err = refused;
			return rc;
		}
		if (!strstr(u->why, refused.msg)) /* the device is the same for every helper */
			add_why(u, "%s", cj_error_text(&refused, text));
	}
	return 0;
}

int uplink_start(const struct uplink_spec *spec, struct uplink **out, struct cj_error *err)
{
	struct uplink *u = calloc(1, sizeof(*u));
	if (!u)
		return cj_fail(err, ENOMEM, "create an uplink");
	u->spec = *spec;
	u->keeper = UPLINK_KEEPER_NONE;
	u->host = UPLINK_HOST_NONE;

	enum uplink_kind first = spec->kind == UPLINK_AUTO ? UPLINK_HOST : spec->kind;
	if (start_from(u, first, err) < 0) {
		uplink_stop(&u);
		return -err->code;
	}
	*out = u;
	return 0;
}

static bool has_died(const struct uplink *u, int wait_ms)
{
	return fd_await(u->keeper.pidfd, POLLIN, wait_ms);
}

enum look { LOOK_WAIT, LOOK_READY, LOOK_LOST }; /* lost: the reason is added */

/* Whether the helper may still do what it has not done.  No netlink subscription: other code reads
 * from gateway_fd. */
static enum look wait_for(struct uplink *u, const char *lacks)
{
	if (u->until_ms == 0)
		u->until_ms = clock_ms() + UPLINK_WAIT_MS;
	if (has_died(u, 0)) {
		char exit_text[UPLINK_WHY_MAX];
		uplink_keeper_describe_exit(&u->keeper, exit_text, sizeof(exit_text));
		add_why(u, "%s ended at its start, %s", uplink_names[u->kind], exit_text);
		return LOOK_LOST;
	}
	if (clock_ms() <= u->until_ms)
		return LOOK_WAIT;
	add_why(u, "%s %s in %d s", uplink_names[u->kind], lacks, UPLINK_WAIT_MS / 1000);
	return LOOK_LOST;
}

static int configure_tap(struct uplink *u, struct cj_error *err)
{
	struct links_tap_spec tap = uplink_helper_tap;
	if (!u->has_ipv6)
		tap.ip6 = tap.router6 = (struct ip){ 0 };
	u->is_configured = true; /* or in part */

	/*
	 * Both helpers would send a packet to 127.0.0.1 to the host's own loopback: their options
	 * close 10.0.2.2 and similar addresses only.  While "lo" of the gateway is up, its kernel
	 * keeps such packets, with or without rules.  So "lo" must be up before there is a default
	 * route.
	 */
	struct ifreq loopback = { .ifr_name = "lo" };
	loopback.ifr_flags = IFF_UP;
	if (ioctl(u->spec.gateway_fd, SIOCSIFFLAGS, &loopback) < 0)
		return cj_fail(err, errno, "bring up 'lo' of the gateway");
	return loader_configure_tap(u->spec.loader, &tap, err);
}

/*
 * A helper first attaches to the device, and some time later, on a slow machine more than a second,
 * begins to read from it.  A connection that begins in between is lost: pasta drops one whose first
 * packet came twice.  So the helper must have read what the kernel sends when the device comes up.
 */
static enum look plug_helper(struct uplink *u)
{
	struct cj_error err = { 0 };
	struct links_state seen = { 0 };
	(void)loader_look(u->spec.loader, &seen, &err); /* later: it has seen nothing */
	if (seen.is_served && u->is_configured)
		return LOOK_READY;
	if (seen.has_carrier && !u->is_configured)
		(void)configure_tap(u, &err);
	if (err.code == 0)
		return wait_for(u, u->is_configured ? "read no packet" : "made no link");
	add_why(u, "%s: %s", uplink_names[u->kind], err.msg);
	return LOOK_LOST;
}

int uplink_proceed(struct uplink *u, bool *out_decided, struct cj_error *err)
{
	struct cj_error ignored; /* the tap device ends with its gateway */
	while (u->kind != UPLINK_NONE && !u->is_plugged) {
		enum look look = plug_helper(u);
		u->is_plugged = look == LOOK_READY;
		if (look != LOOK_LOST)
			break;
		/* The next helper attaches to the same tap device, unless that has addresses
		 * already. */
		uplink_keeper_stop(&u->keeper);
		if (u->is_configured)
			(void)loader_unplug(u->spec.loader, &ignored);
		if (loader_has_ended(u->spec.loader)) {
			u->kind = UPLINK_NONE;
			return cj_reject_as(err, EPIPE, "%s", u->why);
		}
		u->is_configured = false;
		if (start_from(u, u->kind + 1, err) < 0)
			return -err->code;
	}
	*out_decided = u->kind == UPLINK_NONE || u->is_plugged;
	return 0;
}

int uplink_await(struct uplink *u, struct cj_error *err)
{
	for (;;) {
		bool is_decided = false;
		if (uplink_proceed(u, &is_decided, err) < 0)
			return -err->code;
		if (is_decided)
			return 0;
		(void)has_died(u, UPLINK_LOOK_MS); /* a helper needs about 5 ms */
	}
}

enum uplink_kind uplink_kind_of(const struct uplink *u)
{
	return u->kind;
}

bool uplink_has_ipv6(const struct uplink *u)
{
	return u->kind == UPLINK_HOST ? u->host.has_ipv6 : u->kind != UPLINK_NONE && u->has_ipv6;
}

int uplink_fd(const struct uplink *u)
{
	return u->keeper.pidfd;
}

/* The keeper reports on its link, or closes it, before it ends. */
bool uplink_is_ending(const struct uplink *u)
{
	return fd_await(u->keeper.link_fd, POLLIN, 0);
}

const char *uplink_why(const struct uplink *u)
{
	return u->why;
}

const char *uplink_warning(const struct uplink *u)
{
	return u->host.warning;
}

void uplink_lost(struct uplink *u)
{
	char exit_text[UPLINK_WHY_MAX - 32];
	uplink_keeper_describe_exit(&u->keeper, exit_text, sizeof(exit_text));
	u->why[0] = '\0';
	add_why(u, "%s ended, %s", uplink_names[u->kind], exit_text);

	/* Takes away the default routes, so the gateway rejects packets at once.  Without it a tap
	 * device that nobody is attached to drops them silently. */
	uplink_cut(u);
	uplink_keeper_stop(&u->keeper);
	u->kind = UPLINK_NONE;
}

void uplink_cut(const struct uplink *u)
{
	struct ifreq request = { .ifr_name = LINK_UPLINK };      /* no flag */
	(void)ioctl(u->spec.gateway_fd, SIOCSIFFLAGS, &request); /* fails if there is none */
}

void uplink_stop(struct uplink **u)
{
	if (!*u)
		return;
	uplink_keeper_stop(&(*u)->keeper);
	if ((*u)->kind == UPLINK_HOST)
		uplink_host_stop(&(*u)->host);
	free(*u);
	*u = NULL;
}

int uplink_probe(enum uplink_kind kind, const char *path, struct cj_error *err)
{
	const struct uplink_helper *h = uplink_helper_of(kind);
	char found[UPLINK_PATH_MAX], warning[UPLINK_WHY_MAX];

	if (!h)
		return kind == UPLINK_HOST ? uplink_host_check(warning, err) : 0;
	int rc = uplink_helper_find(h, path, found, err);
	return rc < 0 ? rc : uplink_helper_try_tun(err);
}
