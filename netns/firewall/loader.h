/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader - a process of the program `gateway` that loads rules and reads their counters, by the
 * sockets that its caller gives it: gateway_start(), gateway_start_loader().
 *
 *	caller                  loader
 *	an order, sockets ----> builds a batch, and sends it through the socket
 *	<---------------- done  or why it failed; then it awaits the next order
 *	join, a socket -------> joins the user namespace that owns the socket's network; it keeps
 *	                        CAP_NET_ADMIN there, and the calls that an order needs
 *	<---------------- done
 *
 * It obeys its caller alone, and reads nothing that a jail sends.  Until it joins, it has the
 * caller's rights: so a supervisor lets it load what the host's own network needs, and then join,
 * before the jail has a link.  It ends with its caller, or when the link is closed.
 *
 * Each function fails as the one of firewall.h whose order it is; EPIPE: the loader has ended.
 * Then the rules are as they were.
 */
#pragma once

#include "netns/firewall/firewall.h"
#include "runtime/base/step.h"

#define LOADER_ANSWER_MS 20000 /* a busy machine needs seconds */

/* Orders, and their answer. */
enum loader_step {
	LOADER_JAIL,
	LOADER_GATEWAY,
	LOADER_HOST,
	LOADER_CONTAINER,
	LOADER_REPLACE,
	LOADER_OPEN_NAMES,
	LOADER_CLOSE_HOST,
	LOADER_UNREACHABLE,
	LOADER_COUNT,
	LOADER_JOIN,
	LOADER_DONE,
	LOADER_STARTED, /* of gateway_start(): its pidfd */
	LOADER_STEPS
};
extern const char *const loader_step_names[LOADER_STEPS];

struct loader {
	int pidfd; /* -1: there is none */
	struct step_link link;
};
#define LOADER_NONE ((struct loader){ .pidfd = -1, .link = { .sock_fd = -1 } })

/* Takes the pidfd of a loader that gateway_start() has started. */
int loader_take(struct loader *l, struct cj_error *err);

/* Kills and reaps it.  Accepts the null value, leaves it behind. */
void loader_stop(struct loader *l);

/* For good: from here on it has no right but over the networks of this socket's user namespace,
 * which may be its own. */
int loader_join(const struct loader *l, int sock_fd, struct cj_error *err);

int loader_apply_jail(const struct loader *l, int nft_fd, const struct firewall_spec *spec,
		      struct cj_error *err);
int loader_apply_gateway(const struct loader *l, int nft_fd, const struct firewall_spec *spec,
			 struct cj_error *err);
/* The kernel makes this socket the owner of the table. */
int loader_apply_host(const struct loader *l, int nft_fd, const struct firewall_host_spec *spec,
		      struct cj_error *err);
int loader_apply_container(const struct loader *l, int nft_fd,
			   const struct firewall_container_spec *spec,
			   char out_table[static FIREWALL_TABLE_MAX], struct cj_error *err);
int loader_replace(const struct loader *l, int nft_fd, const struct firewall_spec *from,
		   const struct firewall_spec *to, struct cj_error *err);
int loader_unreachable(const struct loader *l, int nft_fd, int family, struct cj_error *err);
int loader_read_table(const struct loader *l, int nft_fd, const char *table,
		      uint64_t counts[static NET_CLASS_COUNT], struct cj_error *err);

/* In two tables, in this order; a failure of the second one leaves the first as it is then. */
int loader_open_names(const struct loader *l, const int nft_fds[static 2],
		      const struct endpoint *named, size_t n, struct cj_error *err);
int loader_close_host(const struct loader *l, const int nft_fds[static 2], const struct ip *ip,
		      struct cj_error *err);
/* The sum of both. */
int loader_read_counters(const struct loader *l, const int nft_fds[static 2],
			 uint64_t counts[static NET_CLASS_COUNT], struct cj_error *err);

/* --- for the program ----------------------------------------------------------------------- */

/*
 * One order.  Its lists are in a memfd, one behind the other, and here are their lengths: each
 * pointer is null on the way.
 */
struct loader_order {
	struct firewall_spec spec, from; /* from: of LOADER_REPLACE, without its lists */
	struct firewall_host_spec host;
	struct firewall_container_spec container;
	char table[FIREWALL_TABLE_MAX];
	struct ip ip;
	int family;
	size_t list_bytes; /* of the memfd; 0: there is none */
};

/* A list of an order: where its pointer and its length are, and the bytes of an item. */
struct loader_list {
	size_t items, count, size;
};
#define LOADER_LISTS 9
extern const struct loader_list loader_lists[LOADER_LISTS];

struct loader_answer {
	char table[FIREWALL_TABLE_MAX];
	uint64_t counts[NET_CLASS_COUNT];
};
