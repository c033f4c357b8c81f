/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_far - the calls of a program at a service to the tools of the broker, within the request
 * that mcp_remote.c has for each call of the client.
 */
#pragma once

#include "runtime/front/client/service_calls.h"
#include "runtime/front/mcp/upstream/broker.h"
#include "runtime/run/mcp/calls/mcp_run.h"

struct far_calls {
	struct broker_calls calls;
	uint64_t last_id;
	char url[2 * PLAN_ID_MAX + 64]; /* of the run or the exec */
	struct call_answers answers;
};

/* The request of `run` has the tools of the broker. */
void far_calls_open(struct far_calls *c, struct loop *loop, const char *socket_path,
		    struct broker *broker, const struct mcp_run *run);
/* Cancels the calls.  Nothing happens if it was not opened. */
void far_calls_close(struct far_calls *c);

/* An event of the run that is about its calls.  Fails: it is none that a service sends. */
int far_calls_take(struct far_calls *c, char *line, size_t size, struct cj_error *err);
