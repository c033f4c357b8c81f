/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_far_calls - the calls of a program at a service to the tools of the broker.
 *
 *	service                                   here
 *	event "call" ---------------------------> broker_call_begin()
 *	POST .../calls/N <----------------------- its answer
 *	event "answer", of a call that timed
 *	out or was cancelled -------------------> broker_call_end()
 *
 * One answer is under way at a time.  While the service has no room for it, the next ones wait.
 */
#pragma once

#include "runtime/front/mcp/mcp_far_request.h"
#include "runtime/front/mcp/upstream/broker.h"
#include "runtime/run/mcp/calls/mcp_run.h"

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
