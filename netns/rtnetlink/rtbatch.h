/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rtbatch - several rtnetlink requests in one send(2), each with a text for errors.  Acts.
 *
 * The kernel executes them in order and answers only failures and the last one, so a batch is two
 * system calls.  libnl builds the messages but does not get the socket, because it would close that
 * borrowed descriptor.
 * Follows: netlink(7).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/error.h"

#define RTBATCH_MESSAGES_MAX 24
#define RTBATCH_BYTES_MAX    6144
#define RTBATCH_WHAT_MAX     96

struct nl_msg;

/* Zero is an empty batch. */
struct rtbatch {
	_Alignas(4) uint8_t bytes[RTBATCH_BYTES_MAX];
	size_t size, count;
	size_t at[RTBATCH_MESSAGES_MAX];                   /* where in `bytes` each begins */
	int tolerated[RTBATCH_MESSAGES_MAX];               /* positive errno that is no failure */
	char what[RTBATCH_MESSAGES_MAX][RTBATCH_WHAT_MAX]; /* "bring up 'eth0'" */
	int failed; /* positive errno of building it; rtbatch_send() reports it */
};

/* The answer to RTM_GETLINK as the last message. */
struct rtbatch_link {
	int index;
	uint8_t operstate; /* IF_OPER_* */
	bool has_carrier;
};

/* Takes `msg`; NULL is kept as ENOMEM.  The text names action and object. */
void rtbatch_add(struct rtbatch *b, struct nl_msg *msg, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The last message may fail with this errno. */
void rtbatch_tolerate(struct rtbatch *b, int code);

/*
 * rtbatch_send - send, and read the answers up to the last one.
 *
 * Messages after one that failed are executed, too; the first failure is reported.
 * out_link may be NULL; else the last message is an RTM_GETLINK.
 * Owns: borrows route_fd, a NETLINK_ROUTE socket without subscriptions, not in use elsewhere.
 */
int rtbatch_send(int route_fd, struct rtbatch *b, struct rtbatch_link *out_link,
		 struct cj_error *err);
