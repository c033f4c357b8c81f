/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network - a jail's network: the supervisor builds it, serves it while the program runs, and
 * reports the denials.
 *
 * A jail begins with its loopback alone.  The rest is built when the program first opens an inet or
 * netlink socket, or before the program starts (network_spec.starts_early).  Until then no
 * interface, route or rule exists that could let a packet out.
 *
 *	init        network_open     brings `lo` up; a socket of the jail's namespace, and the
 *	                             listeners of --connect tcp: and --upstream
 *	supervisor  network_create   takes them; serves the listeners
 *	            network_build    starts the gateway's process, loads rules, starts the uplink,
 *	                             then makes links
 *	            network_await    waits until the uplink is ready
 *	            network_proceed  looks whether it is ready, for a loop that also does other work
 *	            network_serve    what the gateway reports and asks for, forwarded ports, new
 *	                             addresses of the host, the end of a helper
 *	            network_report   the denials, by the kernel's own counters
 *	gateway     gateway.h        reads what the program sends to cejail: names to look up, and
 *	                             the heads of denied packets
 *
 * "The network" in CONTRIBUTING.md has a picture of the three namespaces.
 *
 * Mode none has no gateway; it uses network_open, network_create and network_serve for
 * --connect tcp: only.
 */
#pragma once

#include <assert.h>

#include "netns/address/allowlist.h"
#include "netns/firewall/denials.h"
#include "netns/uplink/uplink.h"
#include "netns/upstream/http_upstream.h"
#include "runtime/base/error.h"

enum network_mode { NETWORK_NONE, NETWORK_PUBLIC, NETWORK_MODE_COUNT };
extern const char *const network_mode_names[NETWORK_MODE_COUNT];

/* Prefix of a warning about a missing feature of this host; 'cejail doctor' names the remedy. */
#define NETWORK_DEGRADED "network: "

#define NETWORK_WHY_MAX   (UPLINK_WHY_MAX + 128) /* bytes of a reason, with its NUL */
#define NETWORK_PORTS_MAX 16 /* --connect tcp: ports and --upstream servers of one run */
static_assert(UPSTREAMS_MAX == NETWORK_PORTS_MAX, "each has a listener");

/* What a connection to an address that a name of the list has opened is filtered by. */
enum network_allow_by {                           /* each is stricter than the one before it */
			NETWORK_ALLOW_BY_ADDRESS, /* by its address alone */
			NETWORK_ALLOW_BY_AUTO,    /* as the next one, if the list has a wildcard */
			NETWORK_ALLOW_BY_NAME, /* also, on ports 443 and 80, by the name that the program sends */
			NETWORK_ALLOW_BY_COUNT
};
extern const char *const network_allow_by_names[NETWORK_ALLOW_BY_COUNT];

/* When the names of --allow are looked up. */
enum network_names {                     /* each is stricter than the one before it */
		     NETWORK_NAMES_LIVE, /* when the program asks for them */
		     NETWORK_NAMES_AUTO, /* likewise, if the list has a wildcard or names are checked, else: */
		     NETWORK_NAMES_START, /* before the program starts, and the jail has no name server */
		     NETWORK_NAMES_COUNT
};
extern const char *const network_names_names[NETWORK_NAMES_COUNT];

/* The network of a plan. */
struct network_spec {
	enum network_mode mode;
	enum uplink_kind uplink;
	bool starts_early; /* built before the program starts, not when it opens a socket */
	const struct allowlist_entry *allow; /* --allow: only these */
	size_t nallow;
	const struct allowlist_entry *deny; /* --deny: not these */
	size_t ndeny;
	bool is_live; /* the jail has a name server that filters, and its lists may change */
	enum network_allow_by allow_by;
	enum network_names names;
	bool allow_private;
	const uint16_t *ports; /* --connect tcp:127.0.0.1:PORT */
	size_t nports;
	const struct http_upstream_spec *upstreams; /* --upstream */
	size_t nupstreams;                          /* and nports: at most NETWORK_PORTS_MAX */
};

/* Whether names are checked with this list.  Then the program itself looks all of them up. */
bool network_checks_names(enum network_allow_by by, const struct allowlist_entry *allow,
			  size_t nallow);

/* With an allow list the jail has no DNS, because names in queries could carry data out.  With a
 * live one it has, for the names of the list alone; without one, for all that are not denied. */
bool network_has_dns(const struct network_spec *spec);

/* Sockets that init and the gateway's process hand out, and its own; one that is not used is -1. */
enum network_slot {
	SLOT_JAIL_RULES, /* of the loader, in its order: this and three more */
	SLOT_GATEWAY_RULES,
	SLOT_JAIL_ROUTE,
	SLOT_GATEWAY_ROUTE,
	SLOT_GATEWAY_LOG,
	SLOT_DNS_UDP,
	SLOT_DNS_TCP,
	SLOT_PROXY4, /* listeners for connections whose names are checked */
	SLOT_PROXY6,
	SLOT_DIALER, /* a pidfd */
	SLOT_JAIL_LOG,
	SLOT_JAIL,      /* tells which namespace is the jail's; init opens it and these: */
	SLOT_LISTENERS, /* one for each port, then one for each upstream */
	SLOT_COUNT = SLOT_LISTENERS + NETWORK_PORTS_MAX
};

/* What became of a run's network. */
enum network_state {
	NETWORK_UNUSED, /* not built: the jail had only its loopback */
	NETWORK_READY,  /* built, with the uplink that the plan asks for */
	NETWORK_FAILED, /* no packet could leave the jail, or none after some time */
	NETWORK_STATE_COUNT
};
extern const char *const network_state_names[NETWORK_STATE_COUNT]; /* "unused", ... */

struct network_handles {
	int fds[SLOT_COUNT];
	bool has_ipv6; /* the gateway forwards it */
};

void network_handles_init(struct network_handles *h);
void network_handles_fini(struct network_handles *h);

/* For a message with descriptors: a bit for each slot that is used, and their descriptors in the
 * order of the slots.  fds[] borrows them. */
uint32_t network_handles_pack(const struct network_handles *h, int fds[SLOT_COUNT], size_t *out_n);
/* Takes those of fds[] that a bit of `slots` names; the rest stay the caller's. */
void network_handles_unpack(struct network_handles *h, uint32_t slots, int *fds, size_t n);

/*
 * network_open - `lo` and the sockets of the jail's own namespace.
 *
 * Runs in:  init, with capabilities over the user namespace that owns its network namespace.
 * Fails:    with nothing held.
 */
int network_open(const struct network_spec *spec, struct network_handles *out,
		 struct cj_error *err);

/* ICMP echo sockets for the jail's one group: ping works without a capability.  icmp(7) */
int network_allow_ping(unsigned gid, struct cj_error *err);

/* --- the supervisor's side ---------------------------------------------------------- */

/* Called while a network is built and served. */
struct network_callbacks {
	void (*warn)(void *context, const char *text); /* may begin with NETWORK_DEGRADED */
	void (*denied)(void *context,
		       const struct denial *denial); /* a denial, when it is received */
	void *context;
};

struct network;

struct network_setup {
	const struct network_spec *spec;   /* borrowed until network_destroy(), as are endpoints */
	const struct endpoints *endpoints; /* the resolved allow list */
	unsigned number; /* where to begin looking for a free address on the host */
	struct network_callbacks callbacks;
};

/* Takes the handles, also on failure. */
int network_create(const struct network_setup *setup, struct network_handles *handles,
		   struct network **out, struct cj_error *err);

/*
 * network_build - open the gateway, load the rules, make the links and start the uplink.
 *
 * Blocks for some milliseconds.  Then await the uplink.  Does nothing with mode none, or the second
 * time.  Without nf_tables or veth in the kernel the jail gets no network (a warning;
 * network_is_filtered() is false), never one without rules.
 * Must not: be called before the id maps are written.
 * Fails:    half-built: then network_give_up() or network_destroy().
 */
int network_build(struct network *n, struct cj_error *err);

/* The uplink of network_build() is not ready yet. */
bool network_is_building(const struct network *n);
/* Waits for the uplink.  If there is none, that is a warning, and no packet leaves the jail. */
int network_await(struct network *n, struct cj_error *err);
/* The same without waiting: call it again after NETWORK_LOOK_MS while network_is_building(). */
#define NETWORK_LOOK_MS UPLINK_LOOK_MS
int network_proceed(struct network *n, struct cj_error *err);

/* After a failure of any of them: warns, and removes what was built.  The jail's loopback and the
 * ports of --connect tcp: stay. */
void network_give_up(struct network *n, const struct cj_error *why);

/* As --allow and --deny.  is_list: only what is allowed is open, and nothing if there is none; else
 * all that is public, as without a list. */
struct network_lists {
	bool is_list;
	struct strings allow, deny;
};

/*
 * network_change - other lists, in one transaction of each table.
 *
 * Looks up the names of --deny, as long as the host's resolver takes.  Connections to what is no
 * longer open are reset by their next packet.  Those to addresses that the new list's names have
 * opened go on.  allow_private stays.  Needs is_live.
 * Fails: EINVAL for a target; EAGAIN or E2BIG for a name of --deny; else with the old list in
 * force, or, if that can't be loaded again, with all closed (network_state() says so).
 */
int network_change(struct network *n, const struct network_lists *lists, struct cj_error *err);

/* *out_why: the reason of NETWORK_FAILED, else NULL; valid until the next call for this network. */
enum network_state network_state(const struct network *n, const char **out_why);

bool network_is_filtered(const struct network *n);
enum uplink_kind network_uplink(const struct network *n);

/* When it is readable, call network_serve(): bounded work, never blocks.  -1: nothing to serve. */
int network_fd(const struct network *n);
int network_serve(struct network *n, struct cj_error *err);

/*
 * network_report - after the last process has ended: receives the remaining denials and reads the
 * counters.
 * The list belongs to the network.
 */
const struct denials *network_report(struct network *n);

/*
 * network_take_denials - what was denied since the last call, by the kernel's counters, for a jail
 * whose programs each have a result.  network_denied_so_far() still counts it.
 * Fails: the counters can't be read; then *out has what was logged.
 */
int network_take_denials(struct network *n, struct denials *out, struct cj_error *err);

/* NULL: the plan has none. */
const struct http_upstream *network_upstream(const struct network *n);

/* The packets that were refused so far, as far as the kernel has logged them. */
uint64_t network_denied_so_far(const struct network *n);

void network_destroy(struct network **n);
