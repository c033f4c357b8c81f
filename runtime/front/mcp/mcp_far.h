/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_far - runs and sessions at a service: mcp_remote.c has one request for each call of the
 * client, and in it the calls of its program to the tools of the broker.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/error.h"
#include "runtime/base/loop.h"
#include "runtime/front/client/http_answer.h"
#include "runtime/front/client/remote_link.h"
#include "runtime/front/mcp/upstream/broker.h"
#include "runtime/run/mcp/calls/mcp_run.h"

/* --- mcp_far_request.c: one request, on a connection of its own, without blocking --------- */

/* Closing it early makes the service cancel what was asked for. */

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

/* --- mcp_far_calls.c: the calls of a program ------------------------------------------------ */

/*
 *	service                                   here
 *	event "call" ---------------------------> broker_call_begin()
 *	POST .../calls/N <----------------------- its answer
 *	event "answer", of a call that timed
 *	out or was cancelled -------------------> broker_call_end()
 *
 * One answer is under way at a time.  While the service has no room for it, the next ones wait.
 */
struct far_calls {
	struct broker_calls calls;
	uint64_t last_id;
	char url[2 * PLAN_ID_MAX + 64]; /* of the run or the exec */
	TAILQ_HEAD(, far_answer) answers;
	size_t nanswers;
	struct far_request post; /* of the first of them */
	uint64_t retry_at_ms;    /* it is to be sent again then; 0: it is under way */
	bool has_no_memory;      /* for an answer, which the program would wait for */
};

/* The request of `run` has the tools of the broker. */
void far_calls_open(struct far_calls *c, struct loop *loop, const char *socket_path,
		    struct broker *broker, const struct mcp_run *run);
/* Cancels the calls.  Nothing happens if it was not opened. */
void far_calls_close(struct far_calls *c);

/* An event of the run that is about its calls.  Fails: it is none that a service sends. */
int far_calls_take(struct far_calls *c, char *line, size_t size, struct cj_error *err);

/* Returns the time in ms until there is more to do; -1: never. */
int far_calls_tick(struct far_calls *c, uint64_t now_ms);
