/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runs - the runs of the service: queued, running, finished; and which one is next.  No system
 * calls: time is an argument.
 *
 * A run only moves forward through these states.  The last finished runs stay in a list, up to a
 * number for each caller, so that one caller's runs do not push out another's.
 *
 * An exec of a session is a run as well.  Sessions share the memory of the host, so their execs
 * wait for it: the reservations below.
 */
#pragma once

#include <sys/queue.h>

#include "profiles/plan/plan.h"
#include "runtime/run/report/spans.h"
#include "runtime/service/access/account.h"
#include "runtime/service/log/api_error.h"
#include "runtime/service/queue/pool.h"
#include "runtime/service/worker/job.h"

#define RUNS_REMEMBERED_MAX  1024
#define RUNS_OF_A_CALLER_MAX 64

/* --- the memory that each session reserves of what all sessions may have -------------- */

/*
 * A session reserves its memory limit while it is created and while one of its execs is in
 * progress.  Between them it reserves what it uses, as its jail was measured last, and at least
 * RESERVATION_MIN.  With is_strict it always reserves its limit, and so does a session that was not
 * measured since its last exec.
 */
#define RESERVATION_MIN (8u << 20) /* a jail in which nothing runs uses less */

/* What all sessions reserve together. */
struct reservations {
	uint64_t most_bytes; /* an exec begins only while the sum stays within this */
	uint64_t bytes;
	uint64_t limits_bytes; /* the sum of their limits */
	bool is_strict;
};

/* Of one session; all of it 0: it reserves nothing. */
struct reservation {
	struct reservations *all; /* borrowed; NULL: not begun, or ended */
	uint64_t limit_bytes;
	uint64_t bytes; /* reserved now */
	uint64_t used_bytes;
	bool is_measured; /* since the last run ended */
	unsigned runs;    /* in progress */
};

void reservation_begin(struct reservation *r, struct reservations *all, uint64_t limit_bytes);
void reservation_end(struct reservation *r);

/* May `bytes` more be reserved? */
bool reservations_have_room(const struct reservations *all, uint64_t bytes);
/* UINT64_MAX: not known.  A measurement during a run changes nothing. */
void reservation_measure(struct reservation *r, uint64_t used_bytes);
/* After all->is_strict has changed. */
void reservation_renew(struct reservation *r);

/* --- runs --------------------------------------------------------------------------- */

enum run_state { RUN_QUEUED, RUN_RUNNING, RUN_FINISHED, RUN_STATE_COUNT };
extern const char *const run_state_names[RUN_STATE_COUNT];

/* A limit that some runs share, beside those of the service and of their caller. */
struct run_gate {
	unsigned running, most;
	struct reservation *memory; /* that a run of the gate needs; NULL: none; borrowed */
};

struct exchange;
struct executions;
struct pending_calls;

/* The caller of a run, and the source of its worker. */
struct run_ops {
	struct exchange *exchange; /* NULL: no caller waits for it, or it was answered; taken */
	/* A worker that takes a JOB_EXEC, of a session.  NULL: one of the pool, or a new one. */
	int (*spawn)(void *context, struct worker_conn **out, struct cj_error *err);
	/* Beside or instead of an exchange: at last the result's JSON, or NULL and the reason why
	 * there is none.  NULL: nobody wants to know. */
	void (*on_complete)(void *context, const char *result, size_t size, enum api_code why);
	void *context;
};

struct run {
	TAILQ_ENTRY(run) link;
	TAILQ_ENTRY(run) turn_link; /* of a queued run, in the queue of its account */
	struct run_order order;
	enum run_state state;
	bool has_tier, has_summary;
	enum tier tier;
	uint64_t created_ms, started_ms, ended_ms; /* since the epoch; 0: not yet */
	uint64_t first_event_ms;                   /* of those for the caller, monotonic */
	uint64_t queued_until_ms;                  /* monotonic */
	struct summary summary;

	/* Of an unfinished run, which execution.c carries out. */
	struct executions *all;
	struct run_ops ops;
	const char *host_ended; /* how its session has ended; NULL: it has not */
	struct worker_conn *conn;
	struct pending_calls *calls; /* NULL: it makes none */
	uint64_t last_call;          /* of a finished one */
	struct spans spans;          /* all 0: not recorded */
	unsigned refused_calls, lost_calls;
	bool lacks_audit;     /* the line of a call could not be written */
	uint64_t deadline_ms; /* of the next hard step; 0: none */
	bool is_lost;         /* its worker has ended without a result, or is awaited no more */
	bool is_cancelled;    /* the control pipe is closed */
	bool is_audited;      /* the line about its start is written */
	uint64_t dropped;     /* events that a slow caller did not get */
	uint64_t begun_us;
};
TAILQ_HEAD(run_list, run);

struct runs {
	struct run_list lists[RUN_STATE_COUNT]; /* oldest first; queued ones: first overdue first */
	struct account_list waiting; /* accounts with queued runs; whose turn is next, first */
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
