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

#include "runtime/service/queue/pool.h"
#include "runtime/service/queue/runs.h"
#include "runtime/session/session.h"

struct audit;
struct metrics;

#define EXECUTION_GRACE_MS 30000 /* for set-up and clean-up, in addition to the time limit */
/* From closing the control pipe to closing the socket: the end of a cell, and its result. */
#define EXECUTION_CANCEL_MS (CELL_CANCEL_MS + 3000)
#define EXECUTION_LOST_MS   2000  /* from the end of a worker in a session to the session's */
#define EXECUTION_EXIT_MS   15000 /* for a worker to exit after its result */
/* Of one run; further ones are only counted. */
#define EXECUTION_REFUSED_CALLS_AUDITED 100

struct executions_limits {
	unsigned concurrency; /* runs at the same time */
	unsigned queue;       /* runs that wait */
	uint64_t queue_ms;    /* the longest time that a run waits */
};

struct executions {
	/* Borrowed; all of it outlives them. */
	struct runs *runs;
	struct pool *pool; /* also spawns a worker when none is prepared */
	struct metrics *metrics;
	struct audit *audit;
	struct line_file *trace_file; /* spans.h */
	/* Their owner sets these at any time. */
	struct executions_limits limits;
	bool is_draining; /* the service is shutting down: there are no new runs */
	bool holds;       /* no run starts; they wait as for their turn */
	/* A socket for the calls of a program with tools, the caller's to close; -1: there is none,
	 * and its calls fail.  NULL: there never is. */
	int (*open_calls)(void *context);
	void *calls_context;

	struct worker_conn_list exiting; /* workers whose runs are complete */
	size_t exiting_count;
};

/* Cancels what is queued, and completes what runs: as cancelled while draining, else as failed. */
void executions_fini(struct executions *e);

/* Takes the body of the order's job, which is malloc'ed.  NULL: *err says why not. */
struct run *execution_begin(struct executions *all, const struct run_order *order,
			    const struct run_ops *ops, struct cj_error *err);
/* Passes the answer to a call on, as run_calls_answer(); of any run. */
enum api_code execution_answer_call(struct run *run, uint64_t call, const char *member,
				    struct blob value);
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

/*
 * Starts the runs whose turn it is, refuses those that waited too long.  Returns the time in ms
 * until there is more to do, or -1.
 */
int executions_tick(struct executions *e, uint64_t now_ms);
/* Unfinished runs, and workers that have not exited yet. */
size_t executions_count(const struct executions *e);
