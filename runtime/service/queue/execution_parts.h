/* SPDX-License-Identifier: Apache-2.0 */
/* execution_parts - shared by execution.c (from queued to running) and completion.c (the end). */
#pragma once

#include <sys/queue.h>

#include "runtime/service/operations/audit.h"
#include "runtime/service/http/http.h"
#include "runtime/service/operations/metrics.h"
#include "runtime/service/queue/execution.h"

#define RESULT_BEFORE "{\"type\":\"result\",\"result\":"

struct execution {
	TAILQ_ENTRY(execution) link;
	struct executions *all;
	struct run *run;          /* NULL: complete, and the worker has not exited yet */
	struct execution_ops ops; /* its exchange is NULL: answered, or the caller is gone */
	const char *host_ended;   /* how its session has ended; NULL: it has not */
	bool is_lost;             /* its worker in the session has ended without a result */
	struct worker_conn *conn;
	uint64_t deadline_ms; /* of the next hard step; 0: none */
	bool is_cancelled;    /* the control pipe is closed */
	bool is_audited;      /* the line about its start is written */
	uint64_t dropped;     /* events that a slow caller did not get */
	uint64_t begun_us;
};
TAILQ_HEAD(execution_list, execution);

struct executions {
	struct executions_context context;
	struct executions_limits limits;
	bool is_draining, holds;
	struct execution_list running, exiting; /* both with a worker */
	size_t exiting_count;
};

/* Valid until the run is complete. */
static inline const char *execution_request_id(const struct execution *e)
{
	return e->run->order.job.trace.request_id;
}

/* Closes and frees an execution that is in no list any more. */
void execution_destroy(struct execution *e);

/* Sends the line that says how many events a slow caller did not get. */
void execution_report_dropped(struct execution *e);

/* Writes the audit line of the start (NULL) or the end.  False: it is required and failed. */
bool execution_audit(struct execution *e, const struct summary *s);

/*
 * The ways a run completes.  Each answers the caller.  After the first five the worker, if there
 * is one, is in the list `exiting`; the last one frees the execution.
 */
void execution_complete(struct execution *e, const char *line, size_t size);
void execution_fail(struct execution *e, const char *why);
void execution_fail_with_host(struct execution *e);                /* because of e->host_ended */
void execution_fail_at_host(struct execution *e, const char *why); /* it has no room for it */
void execution_complete_cancelled(struct execution *e); /* without a result from the worker */
void execution_refuse(struct execution *e, enum api_code why); /* no record of the run is kept */
