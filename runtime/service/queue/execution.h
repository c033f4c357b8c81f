/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execution - the acting half of a run: its caller, its worker, its audit lines.
 *
 *	execution_begin     the run is queued
 *	executions_tick     when its turn comes: the audit line, a worker (from the pool, or a new
 *	                    one), the job
 *	the worker's lines  events go to the caller; the summary and the result end the run
 *	completion          the second audit line, the metrics, the answer; exactly once
 *
 * A run completes without a result when its worker dies, breaks the protocol or exceeds the
 * deadline.  Then the control pipe is closed, which cancels the run, and later the socket.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/service/log/api_error.h"
#include "runtime/service/queue/pool.h"
#include "runtime/service/queue/runs.h"
#include "runtime/session/session.h"

struct audit;
struct exchange;
struct executions;
struct metrics;

#define EXECUTION_GRACE_MS 30000 /* for set-up and clean-up, in addition to the time limit */
/* From closing the control pipe to closing the socket: the end of a cell, and its result. */
#define EXECUTION_CANCEL_MS (CELL_CANCEL_MS + 3000)
#define EXECUTION_LOST_MS   2000  /* from the end of a worker in a session to the session's */
#define EXECUTION_EXIT_MS   15000 /* for a worker to exit after its result */

/* Who waits for a run, and who has its worker. */
struct execution_ops {
	struct exchange *exchange; /* NULL: the run has no caller that waits; taken */
	/* A worker that takes a JOB_EXEC, of a session.  NULL: one of the pool, or a new one. */
	int (*spawn)(void *context, struct worker_conn **out, struct cj_error *err);
	/* Beside or instead of an exchange: at last the result's JSON, or NULL and the reason why
	 * there is none.  NULL: nobody wants to know. */
	void (*on_complete)(void *context, const char *result, size_t size, enum api_code why);
	void *context;
};

/* What executions use; all of it is borrowed and outlives them. */
struct executions_context {
	struct runs *runs;
	struct pool *pool; /* also spawns a worker when none is prepared */
	struct metrics *metrics;
	struct audit *audit;
};

struct executions_limits {
	unsigned concurrency; /* runs at the same time */
	unsigned queue;       /* runs that wait */
	uint64_t queue_ms;    /* the longest time that a run waits */
};

struct executions *executions_create(const struct executions_context *c); /* NULL: no memory */
/* Completes what is still running: as cancelled while draining, else as failed. */
void executions_destroy(struct executions **all);
void executions_set_limits(struct executions *e, struct executions_limits limits);

/* API_OK: this caller may queue one more run. */
enum api_code executions_admit(const struct executions *e, const struct account *a);
/* Takes the body of the order's job, which is malloc'ed.  out_run may be NULL. */
int execution_begin(struct executions *all, const struct run_order *order,
		    const struct execution_ops *ops, struct run **out_run, struct cj_error *err);
/* A queued run completes at once; the worker of a running one still sends its result. */
void execution_cancel(struct run *run);
/*
 * execution_host_ended - the session of an unfinished run has ended, as `message` tells its caller.
 *
 * A queued run completes at once, with API_SESSION_ENDED.  The worker of a running one may still
 * send its result for a moment.  Keeps the pointer until the run is complete.
 */
void execution_host_ended(struct run *run, const char *message);
void executions_cancel_all(struct executions *e);

/* From now on the service is shutting down: no new runs. */
void executions_drain(struct executions *e);
bool executions_is_draining(const struct executions *e);

/* While it holds, no run starts; they wait as for their turn. */
void executions_hold(struct executions *e, bool holds);

/*
 * Starts the runs whose turn it is, refuses those that waited too long.  Returns the time in ms
 * until there is more to do, or -1.
 */
int executions_tick(struct executions *e, uint64_t now_ms);
/* Unfinished runs, and workers that have not exited yet. */
size_t executions_count(const struct executions *e);

struct executions_load {
	size_t running, running_max, queued, queued_max;
};
struct executions_load executions_load(const struct executions *e);
