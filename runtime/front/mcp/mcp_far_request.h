/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_far_request - one request to the service, on a connection of its own, without blocking.
 *
 * Closing it early makes the service cancel what was asked for.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/error.h"
#include "runtime/base/loop.h"
#include "runtime/front/client/http_answer.h"
#include "runtime/front/client/remote_link.h"

/* The owner sets what is above `watch`, which is WATCH_NULL, and fd -1. */
struct far_request {
	struct loop *loop;
	const char *socket_path; /* of the service */
	/* A piece of the answer's body; NULL: it is not wanted. */
	int (*keep)(struct far_request *q, const char *bytes, size_t size, struct cj_error *err);
	/* The answer is whole, or keep() has set is_over, or err->code says why there is no more.
	 * May close the request, and free it. */
	void (*end)(struct far_request *q, const struct cj_error *err);
	bool holds;   /* the answer waits at the service: far_request_hold() */
	bool is_over; /* no more of the answer is wanted */
	struct watch watch;
	int fd;
	struct http_answer answer;
	char head[REMOTE_HEAD_MAX];
	const char *body;
	size_t head_size, size, sent;
};

/* Borrows the body of the message.  Fails: the service cannot be reached; end() is not called. */
int far_request_start(struct far_request *q, const struct remote_message *message,
		      struct cj_error *err);
void far_request_hold(struct far_request *q, bool holds);
/* Also of one that was never started. */
void far_request_close(struct far_request *q);
