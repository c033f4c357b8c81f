/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader - a process of the program `gateway` that loads rules, reads their counters, and makes the
 * links: gateway_start(), gateway_start_loader().
 *
 *	caller                  loader
 *	sockets --------------> keeps them: of the namespaces that later orders are about
 *	an order -------------> builds a batch by libmnl (rules) or libnl-route-3 (links), and sends
 *	                        it through a socket
 *	<---------------- done  or why it failed; then it awaits the next order
 *	join -----------------> joins the user namespace that owns the first socket's network; it
 *	                        keeps CAP_NET_ADMIN there, and the calls that an order needs
 *	<---------------- done
 *
 * It obeys its caller alone, and reads nothing that a jail sends.  Until it joins, it has the
 * caller's rights: so a supervisor lets it load what the host's own network needs, and then join,
 * before the jail has a link.  It ends with its caller, or when the link is closed.
 *
 * A jail may have the caller's user id, and so many descriptors on their way that the user can send
 * no other: unix(7) ETOOMANYREFS.  So orders about a jail that has a link have none, and their
 * lists travel in messages before them.
 *
 * Each function fails as the one of firewall.h or links.h whose order it is.  Without an answer
 * (EPIPE, ETIMEDOUT) it is not known what the order has done: the loader is ended then, and each
 * later order fails with EPIPE.
 */
#pragma once

#include <assert.h>

#include "netns/firewall/firewall.h"
#include "netns/rtnetlink/links.h"
#include "runtime/base/step.h"

/* Orders, and their answer. */
enum loader_step {
	LOADER_LIST, /* bytes of the next order's lists; no answer */
	LOADER_SOCKETS,
	LOADER_JAIL,
	LOADER_GATEWAY,
	LOADER_HOST,
	LOADER_CONTAINER,
	LOADER_REPLACE,
	LOADER_OPEN_NAMES,
	LOADER_CLOSE_HOST,
	LOADER_UNREACHABLE,
	LOADER_COUNT,
	LOADER_LINKS,
	LOADER_PLUG,
	LOADER_TAP,
	LOADER_LOOK,
	LOADER_UNPLUG,
	LOADER_JOIN,
	LOADER_DONE,
	LOADER_STARTED, /* of gateway_start(): its pid */
	LOADER_STEPS
};
extern const char *const loader_step_names[LOADER_STEPS];

/* The sockets that it keeps: of tables, and of links. */
enum loader_table { LOADER_OF_JAIL, LOADER_OF_GATEWAY, LOADER_TABLES };
enum { LOADER_JAIL_ROUTE = LOADER_TABLES, LOADER_GATEWAY_ROUTE, LOADER_KEPT };

struct loader {
	int pidfd; /* -1: there is none */
	struct step_link link;
	bool is_looking; /* the answer of loader_look() is on its way */
};
#define LOADER_NONE ((struct loader){ .pidfd = -1, .link = { .sock_fd = -1 } })

/* It has ended, and nothing that it has loaded can be changed any more. */
static inline bool loader_has_ended(const struct loader *l)
{
	return l->link.sock_fd < 0;
}

/* Takes the pidfd of a loader that gateway_start() has started. */
int loader_take(struct loader *l, struct cj_error *err);

/* Kills and reaps it.  Accepts the null value, leaves it behind. */
void loader_stop(struct loader *l);

/* LOADER_KEPT of them, NETLINK_NETFILTER and NETLINK_ROUTE; or one of a container's table.  They
 * stay the caller's. */
int loader_give_sockets(struct loader *l, const int *fds, size_t n, struct cj_error *err);

/* For good: from here on it has no right but over the networks of the first socket's user
 * namespace, which may be its own.  Without a socket it stays in its own. */
int loader_join(struct loader *l, struct cj_error *err);

int loader_apply_jail(struct loader *l, const struct firewall_spec *spec, struct cj_error *err);
int loader_apply_gateway(struct loader *l, const struct firewall_spec *spec, struct cj_error *err);
int loader_replace(struct loader *l, enum loader_table table, const struct firewall_spec *from,
		   const struct firewall_spec *to, struct cj_error *err);
/* In the jail's table. */
int loader_unreachable(struct loader *l, int family, struct cj_error *err);
/* In each table; a failure of one leaves those before it as they are then.  The gateway's first:
 * the jail's decides what the program reaches. */
int loader_open_names(struct loader *l, const struct endpoint *named, size_t n,
		      struct cj_error *err);
int loader_close_host(struct loader *l, const struct ip *ip, struct cj_error *err);
/* Adds those of each socket's table of this name to counts[]. */
int loader_read_counters(struct loader *l, const char *table,
			 uint64_t counts[static NET_CLASS_COUNT], struct cj_error *err);

/* By a socket of the order's own: for the host's table the kernel makes it the owner. */
int loader_apply_host(struct loader *l, int nft_fd, const struct firewall_host_spec *spec,
		      struct cj_error *err);
int loader_apply_container(struct loader *l, int nft_fd, const struct firewall_container_spec *spec,
			   char out_table[static FIREWALL_TABLE_MAX], struct cj_error *err);

/* It may open no namespace any more: jail_netns_fd is the jail's, and stays the caller's. */
int loader_join_links(struct loader *l, int jail_netns_fd, const struct links_spec *spec,
		      struct cj_error *err);
int loader_plug_host(struct loader *l, int host_fd, const struct links_host_spec *spec,
		     struct cj_error *err);
/* The other three: of LINK_UPLINK in the gateway, a tap device. */
int loader_configure_tap(struct loader *l, const struct links_tap_spec *spec, struct cj_error *err);
/* Returns -EAGAIN without an answer in LOADER_LOOK_MS, with *err as it was: the next call waits for
 * it. */
#define LOADER_LOOK_MS 20
int loader_look(struct loader *l, struct links_state *out, struct cj_error *err);
int loader_unplug(struct loader *l, struct cj_error *err);

/* --- for the program ----------------------------------------------------------------------- */

/* One order.  Its lists come before it, one behind the other, and here are their lengths: each
 * pointer is null on the way. */
struct loader_order {
	struct firewall_spec spec, from; /* from: of LOADER_REPLACE, without its lists */
	struct firewall_host_spec host;
	struct firewall_container_spec container;
	char table[FIREWALL_TABLE_MAX];
	struct ip ip;
	int family;
	enum loader_table on; /* of LOADER_REPLACE */
	struct links_spec links;
	struct links_host_spec plug;
	struct links_tap_spec tap;
};

struct loader_answer {
	struct cj_error why; /* code 0: it is done */
	char table[FIREWALL_TABLE_MAX];
	uint64_t counts[NET_CLASS_COUNT];
	struct links_state state;
};
static_assert(sizeof(struct loader_answer) <= STEP_PLAIN_MAX, "the loader has no sendmsg(2)");

/* A list of an order: where its pointer and its length are, and the bytes of an item. */
struct loader_list {
	size_t items, count, size;
};
#define LOADER_LISTS     9
#define LOADER_LISTS_MAX (1024 * 1024) /* bytes of an order; each list has a limit far below it */
extern const struct loader_list loader_lists[LOADER_LISTS];
