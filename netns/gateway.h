/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gateway - the program libexec/cejail/gateway, which makes a jail's gateway, the network namespace
 * between the jail and the host, and then reads whatever the program sends to cejail itself: names
 * to look up, and the heads of packets that the rules refuse.
 *
 *	supervisor              gateway
 *	clone3, execve -------> has the jail's socket and three links, dies with the supervisor
 *	                        starts the loader (loader.h) as the supervisor's child
 *	                        joins the user namespace that owns the jail's network namespace
 *	                        creates the gateway's namespace, and opens sockets in it
 *	                        enters the jail's network namespace, and opens sockets in it
 *	<--- opened, sockets -- those for rules and links; they keep the gateway alive
 *	lets the loader load    gives up memory, files, capabilities and system calls
 *	<-------------- ready
 *	starts the uplink, lets the loader join the jail's user namespace, makes the links
 *	serve ----------------> answers port 53
 *	<------------- served
 *
 *	<------------- denied   a packet, when it is refused
 *	<---------------- ask   on the second link: a socket to a name server of the host
 *	socket --------------->
 *	<--------------- name   likewise: a name that the program asks for; then its addresses
 *	named ----------------> whether the list has it; then those that the rules let pass now
 *	<-------------- check   likewise: the name that a client states in TLS or HTTP
 *	checked --------------> whether the list has it for this port; if it has:
 *	                        dial, to the dialer: a socket that is connected there
 *	again ----------------> the list has changed: asks once more about each connection
 *	<-------------- served
 *	filter ---------------> from here on names are filtered, or any name is answered
 *	<-------------- served
 *	lose ----------------->  the uplink has ended: each query fails at once
 *	drain ----------------> tells the denials that wait in the kernel's log
 *	<------------ drained
 *	kills and reaps it
 *
 * The supervisor works through the sockets of "opened" and never enters a namespace of the jail.
 * From there it gets only the kernel's own words, and the gateway's, which it checks.
 *
 * The dialer (gateway_dialer.c) is a second process, there if names can be checked: it can open TCP
 * sockets of the gateway's namespace and connect them, and nothing else.  The rules filter them as
 * they filter the jail's packets.
 *
 * The process can open no file and no socket, copies and passes on no descriptor, signals nobody
 * and has no capability.  A program that takes it over can send any bytes to port 53 of the host's
 * name servers, answer with false names, and report denials that were none (but hide none of those
 * that the kernel has counted).  Of a live list it can open any public address for the ports of a
 * listed name: the supervisor does not see the answer.  It can skip the check of names, and through
 * the dialer reach what the jail may reach.  Nothing of the supervisor's memory is in it, and
 * nothing of the caller's environment.
 */
#pragma once

#include <assert.h>

#include "netns/address/names.h"
#include "netns/loader/loader.h"
#include "netns/network.h"
#include "netns/relay/client_name.h"
#include "netns/relay/name_proxy.h"
#include "netns/relay/resolver_message.h"
#include "runtime/base/step.h"

#define GATEWAY_ANSWER_MS 20000 /* a busy machine needs seconds */
#define GATEWAY_DRAIN_MS  2000  /* what the kernel has logged; the counters have all */
#define GATEWAY_SEND_MS   1000  /* the gateway reads its link */

enum gateway_step {
	GATEWAY_OPENED,
	GATEWAY_READY,
	GATEWAY_SERVE,
	GATEWAY_SERVED,
	GATEWAY_DENIED, /* struct denial */
	GATEWAY_ASK,
	GATEWAY_SOCKET,  /* one descriptor, or none */
	GATEWAY_NAME,    /* struct gateway_name; in place of GATEWAY_ASK */
	GATEWAY_NAMED,   /* uint32_t: a bit for each address that is open, or GATEWAY_NAME_* */
	GATEWAY_CHECK,   /* struct gateway_check */
	GATEWAY_CHECKED, /* bool */
	GATEWAY_AGAIN,   /* the list has changed; the answer is GATEWAY_SERVED */
	GATEWAY_DIAL,    /* to the dialer: struct name_destination; the answer is GATEWAY_SOCKET */
	GATEWAY_FILTER,  /* bool; the answer is GATEWAY_SERVED */
	GATEWAY_LOSE,
	GATEWAY_DRAIN,
	GATEWAY_DRAINED,
	GATEWAY_STEPS
};
extern const char *const gateway_step_names[GATEWAY_STEPS];

/* With GATEWAY_OPENED. */
struct gateway_opened {
	uint32_t slots; /* network_handles_pack() */
	uint32_t has_ipv6;
};

/* With GATEWAY_SERVE: how many name servers the host has. */
struct gateway_serve {
	size_t name_servers;
	bool are_filtered; /* as with GATEWAY_FILTER */
};

/* With GATEWAY_ASK: which name server, and the type of the socket. */
struct gateway_ask {
	size_t server;
	int type;
};

/* With GATEWAY_NAME. */
struct gateway_name {
	char text[RESOLVER_NAME_MAX];
	struct resolver_aliases aliases; /* that an answer has for it, and */
	struct ip addresses[RESOLVER_ADDRESSES_MAX];
	size_t count; /* 0: there is no answer yet; may it be asked? */
};

/* With GATEWAY_CHECK: may a client that states this name connect there? */
struct gateway_check {
	char text[CLIENT_NAME_MAX]; /* "": it has stated none */
	struct name_destination to;
	bool is_again; /* it was allowed before */
};

#define GATEWAY_NAME_DENIED (UINT32_C(1) << 29) /* an alias is */
#define GATEWAY_NAME_LISTED (UINT32_C(1) << 30) /* it may be asked */
/* None could be opened now: asked too often, or the rules can't be loaded. */
#define GATEWAY_NAME_LATER (UINT32_C(1) << 31)
static_assert(RESOLVER_ADDRESSES_MAX <= 29 && RESOLVER_NAME_MAX == NAMES_SIZE_MAX,
	      "each address has a bit, and each name fits");
static_assert(sizeof(struct gateway_name) <= STEP_PLAIN_MAX, "the gateway has no sendmsg(2)");

/* The supervisor's side. */
struct gateway {
	int pidfd, dialer_pidfd; /* -1: there is none */
	struct step_link link, asks;
};
#define GATEWAY_NONE                                                                               \
	((struct gateway){ .pidfd = -1,                                                            \
			   .dialer_pidfd = -1,                                                     \
			   .link = { .sock_fd = -1 },                                              \
			   .asks = { .sock_fd = -1 } })

struct gateway_wants {
	bool has_dns;   /* it listens on port 53 */
	bool has_proxy; /* and for connections whose names are checked (name_proxy.h) */
};

/*
 * gateway_start - start the process; then await GATEWAY_OPENED and GATEWAY_READY.
 *
 * jail_fd: a socket of the jail's network namespace; it stays the caller's.
 * out_loader: see loader_take().
 * Must not: be called before the id maps are written.
 * Follows:  netdevice(7) SIOCGSKNS, ioctl_ns(2), setns(2), network_namespaces(7).
 */
int gateway_start(const struct gateway_wants *wants, int jail_fd, struct gateway *out,
		  struct loader *out_loader, struct cj_error *err);

/*
 * gateway_start_log - the program alone reads the log of denied packets of a network namespace that
 * another program made: a container's.  Its steps are GATEWAY_DENIED, and those of a drain.
 *
 * log_fd: a NETLINK_NETFILTER socket of that namespace; it stays the caller's.
 * Runs in: a process with CAP_NET_ADMIN over the namespace.
 * Fails:   as denials_listen().
 */
int gateway_start_log(int log_fd, struct gateway *out, struct cj_error *err);

/* After EPIPE in place of a process' first answer: why that may be.  Returns -err->code. */
int gateway_hint(struct cj_error *err);

/* A loader alone.  The program begins with the caller's rights, but an execve(2) of a user other
 * than root keeps only ambient capabilities: capabilities(7). */
int gateway_start_loader(struct loader *out, struct cj_error *err);

/* Kills and reaps it.  Accepts the null value, leaves it behind. */
void gateway_stop(struct gateway *g);

/*
 * gateway_run - what the program does, in a process that gateway_start() has made: until the
 * supervisor ends it, or has ended.
 * Returns: its exit status.  The supervisor learns a failure by the link.
 */
int gateway_run(const struct gateway_wants *wants);
/* What it does in a process that gateway_start_log() has made, until then. */
int gateway_run_log(void);
/* The loader: serves the link until its other end is closed, then ends the process. */
_Noreturn void gateway_run_loader(int link_fd);

/*
 * gateway_open_here - the namespaces and sockets alone, for a trial: the gateway's and the jail's
 * slots of *h, and h->has_ipv6.
 *
 * h->fds[SLOT_JAIL] is a socket of the jail's namespace.
 * Runs in: a process with every capability over the user namespace that owns that namespace; it is
 * in that network namespace afterwards.  On failure *h may have some sockets.
 */
int gateway_open_here(bool has_dns, struct network_handles *h, struct cj_error *err);
