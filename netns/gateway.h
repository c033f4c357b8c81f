/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gateway - the process that holds a jail's gateway, the network namespace between the jail and the
 * host, and reads whatever the program sends through it.
 *
 *	supervisor              gateway
 *	clone3 ---------------> keeps the jail's socket and two links, dies with the supervisor
 *	                        lists the host's addresses
 *	                        joins the user namespace that owns the jail's network namespace
 *	                        creates the gateway's namespace, and opens sockets in it
 *	                        enters the jail's network namespace, and opens sockets in it
 *	                        loads the rules of both
 *	                        gives up files, capabilities and system calls
 *	<---- opened, a socket
 *	starts the uplink
 *	join -----------------> makes the links between gateway and jail
 *	<------------- joined
 *	awaits the uplink
 *	ways -----------------> refuses families that lead nowhere; serves names
 *	<--------------- open   (each time the uplink changes)
 *
 *	<------------- denied   a packet, when it is refused
 *	<------------- closed   why nothing new leads out any more
 *	<---------------- ask   on the second link: a socket to a name server of the host
 *	socket --------------->
 *	count ----------------> reads the counters
 *	<------------ counted
 *	kills and reaps it
 *
 * A failure is the error in place of an answer.  The process is a copy of the supervisor's memory,
 * but reaches little with it: it can open no file and no socket, sees no name of the file system,
 * signals nobody, and has one capability, CAP_NET_ADMIN, over the namespaces of the jail.  So
 * whoever takes it over by a packet or a name can change what the rules of this jail refuse, reaches
 * what a program of the jail reaches then, through the uplink, and can send any bytes to port 53 of
 * the host's name servers.
 */
#pragma once

#include "netns/network.h"
#include "runtime/base/step.h"

#define GATEWAY_ANSWER_MS 20000 /* a busy machine needs seconds */

enum gateway_step {
	GATEWAY_OPENED,
	GATEWAY_JOIN,
	GATEWAY_JOINED,
	GATEWAY_WAYS,
	GATEWAY_OPEN,
	GATEWAY_COUNT,
	GATEWAY_COUNTED, /* uint64_t[NET_CLASS_COUNT] */
	GATEWAY_DENIED,  /* struct denial */
	GATEWAY_CLOSED,  /* a text */
	GATEWAY_ASK,
	GATEWAY_SOCKET, /* one descriptor, or none */
	GATEWAY_STEPS
};

/* With GATEWAY_OPENED, and a NETLINK_ROUTE socket of the gateway. */
struct gateway_opened {
	uint32_t has_ipv6; /* the gateway forwards it */
};

struct gateway_join {
	unsigned mtu;
};

/* With GATEWAY_WAYS: which families lead out, and how many name servers the host has. */
struct gateway_ways {
	bool ipv4, ipv6;
	size_t name_servers;
};

/* With GATEWAY_ASK: which name server, and the type of the socket. */
struct gateway_ask {
	size_t server;
	int type;
};

/* The supervisor's side. */
struct gateway {
	int pidfd; /* -1: there is none */
	struct step_link link, asks;
};
#define GATEWAY_NONE                                                                               \
	((struct gateway){ .pidfd = -1, .link = { .sock_fd = -1 }, .asks = { .sock_fd = -1 } })

/*
 * gateway_start - start the process; then await GATEWAY_OPENED.
 *
 * jail_fd: a socket of the jail's network namespace; it stays the caller's.
 * Must not: be called before the id maps are written.
 * Follows:  netdevice(7) SIOCGSKNS, ioctl_ns(2), setns(2), network_namespaces(7).
 */
int gateway_start(const struct network_spec *spec, const struct endpoints *endpoints, int jail_fd,
		  struct gateway *out, struct cj_error *err);

/* Kills and reaps it.  The rules in the jail stay.  Accepts the null value, leaves it behind. */
void gateway_stop(struct gateway *g);

/*
 * gateway_open_here - the namespaces and sockets alone, for a trial: the gateway's and the jail's
 * slots of *h, and h->has_ipv6.
 *
 * h->fds[SLOT_JAIL] is a socket of the jail's namespace.
 * Runs in: a process with every capability over the user namespace that owns that namespace; it is
 * in that network namespace afterwards.  On failure *h may have some sockets.
 */
int gateway_open_here(bool has_dns, struct network_handles *h, struct cj_error *err);
