/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runs - the runs of the service: queued, running, finished; and which one is next.  Pure: time is
 * an argument.
 *
 * A run only moves forward through these states.  The last finished runs stay in a list, up to a
 * number for each caller, so that one caller's runs do not push out another's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "profiles/plan/plan.h"
#include "runtime/service/access/account.h"
#include "runtime/service/log/api_error.h"
#include "runtime/service/queue/pool.h"
#include "runtime/service/queue/reservation.h"
#include "runtime/service/worker/job.h"

#define RUNS_REMEMBERED_MAX  1024
#define RUNS_OF_A_CALLER_MAX 64

enum run_state { RUN_QUEUED, RUN_RUNNING, RUN_FINISHED, RUN_STATE_COUNT };
extern const char *const run_state_names[RUN_STATE_COUNT];

/* A limit that some runs share, beside those of the service and of their caller. */
struct run_gate {
	unsigned running, most;
	struct reservation *memory; /* that a run of the gate needs; NULL: none; borrowed */
};

struct execution;
struct run {
	TAILQ_ENTRY(run) link;
	struct run_order order;
	enum run_state state;
	bool has_tier, has_summary;
	enum tier tier;
	uint64_t created_ms, started_ms, ended_ms; /* since the epoch; 0: not yet */
	uint64_t queued_until_ms;                  /* monotonic */
	struct summary summary;
	struct execution *execution; /* of an unfinished run: execution.h */
};
TAILQ_HEAD(run_list, run);

struct runs {
	struct run_list lists[RUN_STATE_COUNT]; /* oldest first */
	size_t counts[RUN_STATE_COUNT];
	uint64_t turns;
};

void runs_init(struct runs *r);
void runs_fini(struct runs *r);

/* API_OK: this caller may queue one more run. */
enum api_code runs_admit(const struct runs *r, const struct account *a, unsigned queue_max);

/* A new run, queued until `until_ms` at most.  Moves the order.  NULL: no memory. */
struct run *runs_add(struct runs *r, const struct run_order *order, uint64_t until_ms,
		     uint64_t epoch_ms);

/*
 * runs_next - the queued run that starts next, or NULL.  Of the callers that may run one more, it
 * is the oldest run of the caller whose last start is longest ago.
 */
struct run *runs_next(const struct runs *r, unsigned concurrency);
void runs_start(struct runs *r, struct run *run, uint64_t wall_ms);
/* From any state; removes finished runs above the limits. */
void runs_finish(struct runs *r, struct run *run, uint64_t wall_ms);
/* Removes a run that was refused after all. */
void runs_drop(struct runs *r, struct run *run);

/* A run that was queued for too long, or NULL; then *out_wait_ms is the time until the next. */
struct run *runs_overdue(const struct runs *r, uint64_t now_ms, uint64_t *out_wait_ms);

/* Queued and running ones. */
size_t runs_unfinished(const struct runs *r);

/*
 * runs_find - the newest run of this caller with that id, or NULL; an unfinished one comes first.
 *
 * Ids belong to their callers: one caller neither sees nor blocks the ids of another.
 */
struct run *runs_find(const struct runs *r, const char *caller, const char *id);
bool runs_has_live(const struct runs *r, const char *caller, const char *id);
