/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote_exchange - one request to a service and its answer, on a connection of its own, in an
 * event loop.  Closing it early makes the service cancel what was asked for.
 */
#pragma once

#include <stdbool.h>

#include "runtime/base/loop.h"
#include "runtime/front/client/remote_link.h"

/* The owner sets what is above `is_over`; the rest is as in REMOTE_EXCHANGE_NULL. */
struct remote_exchange {
	struct loop *loop;
	/* A piece of the answer's body; NULL: it is not wanted. */
	int (*keep)(struct remote_exchange *q, const char *bytes, size_t size,
		    struct cj_error *err);
	/* The answer is whole, or keep() has set is_over, or err->code says why there is no more.
	 * May close the exchange, and free it. */
	void (*end)(struct remote_exchange *q, const struct cj_error *err);
	bool holds;   /* the answer waits at the service: remote_exchange_hold() */
	bool is_over; /* no more of the answer is wanted */
	struct watch watch;
	int fd;
	struct http_answer answer;
	char head[REMOTE_HEAD_MAX];
	const char *body;
	size_t head_size, size, sent;
};

/*
 * remote_exchange_start - send the request on the connected socket fd, and read the answer.
 *
 * Owns: takes fd, also when it fails; borrows the body.
 * `message` NULL: the request is sent already.
 */
int remote_exchange_start(struct remote_exchange *q, int fd, const struct remote_message *message,
			  struct cj_error *err);
void remote_exchange_hold(struct remote_exchange *q, bool holds);
/* Also of one that was never started, whose fd is -1. */
void remote_exchange_close(struct remote_exchange *q);
