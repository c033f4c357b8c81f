/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network - a jail's network as one thing: what init opens, what the supervisor builds,
 * serves while the program runs, and reports.
 *
 * Init and supervisor share the work because a namespace can be entered only by init, and
 * should be configured while init builds the root:
 *
 *	init        network_open       born in the gateway's namespace: opens sockets in it, moves
 *	                               on to the jail's own, opens sockets there
 *	supervisor  network_build      through those sockets: rules, then links, then an uplink
 *	            network_await      the uplink is ready
 *	            network_serve      denials, name queries, forwards, new host addresses, a helper
 *	                               that died
 *	            network_report     what was refused, by the kernel's own counters
 *
 * Mode none has no gateway; it shares network_open and network_serve for --connect tcp:.
 */
#pragma once

#include "netns/allowlist.h"
#include "netns/firewall/denials.h"
#include "netns/uplink/uplink.h"
#include "runtime/base/error.h"

enum network_mode { NETWORK_NONE, NETWORK_PUBLIC, NETWORK_MODE_COUNT };
extern const char *const network_mode_names[NETWORK_MODE_COUNT];

/* A warning that begins so is about what this host lacks; 'cejail doctor' names the remedy. */
#define NETWORK_DEGRADED "network: "

#define NETWORK_PORTS_MAX 16 /* --connect tcp: end points of one run */

/* The plan's part. */
struct network_spec {
	enum network_mode mode;
	enum uplink_kind uplink;
	const struct allowlist_entry *allow; /* --allow: only these */
	size_t nallow;
	bool allow_private;
	const uint16_t *ports; /* --connect tcp:127.0.0.1:PORT */
	size_t nports;
};

/* What init hands out; a slot that is not used is -1. */
enum network_slot {
	SLOT_GATEWAY_ROUTE,
	SLOT_GATEWAY_RULES,
	SLOT_GATEWAY_LOG,
	SLOT_DNS_UDP,
	SLOT_DNS_TCP,
	SLOT_JAIL_ROUTE,
	SLOT_JAIL_RULES,
	SLOT_JAIL_LOG,
	SLOT_LISTENERS, /* one for each port */
	SLOT_COUNT = SLOT_LISTENERS + NETWORK_PORTS_MAX
};

struct network_handles {
	int fds[SLOT_COUNT];
	bool has_ipv6; /* the gateway forwards it */
};

void network_handles_init(struct network_handles *h);
void network_handles_fini(struct network_handles *h);

/*
 * network_open - the namespaces and the sockets in them.
 *
 * Runs in:  init, with capabilities over the user namespace that owns its network namespace, the
 *           host's /proc in place.  Afterwards the process is in the jail's network namespace with
 *           `lo` up.
 * Fails:    with nothing held.
 */
int network_open(const struct network_spec *spec, struct network_handles *out,
		 struct cj_error *err);

/* ICMP echo sockets for the jail's one group: ping works without a capability.  icmp(7) */
int network_allow_ping(unsigned gid, struct cj_error *err);

/* --- the supervisor's side ---------------------------------------------------------- */

/* What a network has to say while it is built and served. */
struct network_callbacks {
	void (*warn)(void *context, const char *text); /* NETWORK_DEGRADED: this host's lack */
	void (*denied)(void *context, const struct denial *denial); /* a refusal, as it is heard */
	void *context;
};

struct network;

/*
 * network_build - from handles to rules, links and an uplink that is on its way.
 *
 * `endpoints` is what the targets were resolved to; `number` begins the search for a free address
 * on the host.  Takes the handles, also on failure.  A kernel without nf_tables or veth makes no
 * network at all (a warning; network_is_filtered() is false), never one without rules.
 */
int network_build(const struct network_spec *spec, const struct endpoints *endpoints,
		  unsigned number, struct network_handles *handles,
		  const struct network_callbacks *callbacks, struct network **out,
		  struct cj_error *err);

/* Waits for the uplink.  One that can't be had is a warning: the jail stays closed. */
int network_await(struct network *n, struct cj_error *err);

bool network_is_filtered(const struct network *n);
enum uplink_kind network_uplink(const struct network *n);

/* Readable when there is something to do; then network_serve(): bounded, never blocks. */
int network_fd(const struct network *n);
int network_serve(struct network *n, struct cj_error *err);

/*
 * network_report - after the last process has ended: hears what is left and reads the counters.
 * The list belongs to the network.
 */
const struct denials *network_report(struct network *n);

void network_destroy(struct network **n);
