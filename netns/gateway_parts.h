/* SPDX-License-Identifier: Apache-2.0 */
/* gateway_parts - what the files of the gateway's process share; for netns/gateway*.c only. */
#pragma once

#include "netns/gateway.h"
#include "netns/relay/name_proxy.h"
#include "runtime/base/child.h"
#include "runtime/kernel/seccomp/call_list.h"

/* How many the program has: its name, its version, and what it is to do (gateway_main.c). */
#define GATEWAY_WORDS 5

/*
 * Descriptors that are never closed, so that no other one gets their numbers: the two links, and
 * the socket of port 53 for UDP.  A UDP socket to a name server is connected in the caller's
 * network, and with an address it would send anywhere there.  So only port 53 sends with an
 * address, and nothing by sendmsg(2), whose address a filter can't see and which passes on
 * descriptors.
 */
enum { LINK_FD = CHILD_FIRST_FD, ASKS_FD, NAMES_FD };
#define LOG_FD    ASKS_FD        /* of gateway_start_log() */
#define LOADER_FD (NAMES_FD + 1) /* of gateway_start(): the loader's end of its link */

/* One question of the gateway's process, to the supervisor or to the dialer. */
struct gateway_question {
	enum gateway_step step;
	const void *data;
	size_t size;
	enum gateway_step answer;
	size_t answer_size;
};

/* Ends this process without an answer: the two ends may be out of step then, and no later answer
 * could be trusted. */
void gateway_ask(const struct step_link *link, const struct gateway_question *q,
		 struct step_msg *out_answer);

/* Both ends compare it: a supervisor lives longer than its program in the case of an upgrade. */
#define GATEWAY_VERSION_MAX 64
void gateway_version(char out[static GATEWAY_VERSION_MAX]);

/* --- gateway_open.c --- */

/* The gateway's slots of *h, and h->has_ipv6; this process is in its namespace afterwards. */
int gateway_open_own(bool has_dns, struct network_handles *h, struct cj_error *err);
/* The jail's, and likewise. */
int gateway_open_jail(int netns_fd, struct network_handles *h, struct cj_error *err);

/* --- gateway_confine.c --- */

extern const struct call_list gateway_calls, gateway_log_calls, gateway_dialer_calls,
    gateway_loader_calls;

/* What a process keeps. */
struct gateway_rights {
	const struct call_list *calls;
	const char *whose; /* for messages */
	bool has_joined;   /* the user namespace is another one, whose first ids it takes */
	uint64_t kept;     /* capabilities: 1 << CAP_* */
};

/* For good: gives up files, all other capabilities, and all calls but those of the list. */
int gateway_give_up(int link_fd, const struct gateway_rights *rights, struct cj_error *err);

/* --- gateway_loader.c --- */

/* The loader as a child of the calling process' parent, who learns its pidfd by the link. */
int gateway_fork_loader(int link_fd, struct cj_error *err);

/* --- gateway_dialer.c --- */

/*
 * gateway_start_dialer - a process that connects sockets of the calling process' network namespace,
 * and hands them out.  It is a child of the caller's parent, who ends and reaps it.
 */
int gateway_start_dialer(struct step_link *out, int *out_pidfd, struct cj_error *err);

/* A TCP socket that is or will be connected; -1: there is none. */
int gateway_dial(const struct step_link *dialer, const struct name_destination *to);
