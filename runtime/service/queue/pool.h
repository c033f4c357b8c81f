/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool - workers prepared ahead: one bucket of them per profile and tier.
 *
 * Each worker is used once.  It carries the stamp that its profile's files had before it was
 * spawned: when the stamp differs from theirs, or the worker is too old, the pool ends and replaces
 * it.  pool_tick() refills the buckets, never a request; after a failure it waits longer each time.
 */
#pragma once

#include <sys/queue.h>

#include "runtime/base/error.h"
#include "runtime/run/request/request.h"
#include "runtime/service/config/service_config.h"
#include "runtime/service/worker/job.h"
#include "runtime/service/worker/worker_conn.h"

#define POOL_STARTING_MAX 2 /* at the same time: the processors are for runs first */
/* A bucket that is half full is refilled after so long without a request; the second is for
 * buckets whose last worker came from a zygote. */
#define POOL_QUIET_MS       20
#define POOL_QUIET_QUICK_MS 3

/*
 * When to try again what has failed: each pause is twice as long as the one before.  It also says
 * which reasons are new.
 */
#define BACKOFF_MIN_MS 1000
#define BACKOFF_MAX_MS 60000

/* All 0: nothing has failed. */
struct backoff {
	uint64_t retry_at_ms, pause_ms;
	char problem[512]; /* the last failure's reason; "": it has succeeded since */
};

/* It failed: a pause begins.  Returns whether the reason is another one than the last. */
bool backoff_fail(struct backoff *b, uint64_t now_ms, const char *why);
/* The same without a pause. */
bool backoff_note(struct backoff *b, const char *why);
/* It succeeded: the next pause is short again.  A pause that has begun goes on. */
void backoff_succeed(struct backoff *b);

bool backoff_is_over(const struct backoff *b, uint64_t now_ms);

struct pool;
struct zygotes;
struct slot {
	TAILQ_ENTRY(slot) link;
	struct pool_bucket *bucket;
	struct worker_conn *conn;
	bool is_ready;
	uint64_t born_ms, stamp;
};
TAILQ_HEAD(slot_list, slot);

struct pool_bucket {
	struct pool *pool;
	char profile[64];
	enum tier tier;
	unsigned wanted, starting, ready;
	bool is_quick;          /* the last one came from a zygote: a tenth of the work */
	struct slot_list slots; /* oldest first */
	struct backoff backoff; /* of preparing a worker */
};

struct pool {
	struct zygotes *zygotes; /* borrowed; also spawns the workers */
	uint64_t age_ms;         /* 0: no limit */
	uint64_t check_ms; /* how often ages and profile files are checked without a request */
	uint64_t taken_ms, stale_checked_ms; /* the last time */
	struct pool_bucket buckets[(TIER_COUNT - 1) * POOLS_MAX];
	size_t count;
};

void pool_init(struct pool *p, struct zygotes *zygotes);
/* Ends all prepared workers; pool_tick() prepares new ones.  A count of 0: no pool. */
void pool_configure(struct pool *p, const struct pool_config *rows, size_t count, uint64_t age_ms);
/* Adds those tiers of the row that its profile does not have yet; prepared workers stay. */
void pool_add(struct pool *p, const struct pool_config *row);

/* What serves such a request best; the tiers below it, down to TIER_JAIL, serve it as well. */
enum tier pool_best_tier(enum request_fit fit);
/*
 * pool_take - the ready worker that is prepared furthest, up to `best`, or NULL.
 *
 * TIER_REPL, for a session with that context: one of that tier or of TIER_JAIL.  The caller owns
 * the worker.
 */
struct worker_conn *pool_take(struct pool *p, const char *profile, enum tier best,
			      enum tier *out_tier);
/*
 * pool_find - the same, or else a new worker that is not of the pool.
 *
 * The new one has TIER_COLD, or TIER_INTERPRETER where a zygote serves the profile.
 */
int pool_find(struct pool *p, const char *profile, enum tier best, struct worker_conn **out,
	      enum tier *out_tier, struct cj_error *err);
/*
 * pool_send_job - give the job to the worker, which was found with the same arguments.
 *
 * If a prepared worker has died meanwhile, the next one takes the job, and at last a cold one.
 * When a cold one has died, its last line says why, so that is no failure.  Fails: *conn is NULL
 * then.
 */
int pool_send_job(struct pool *p, const char *profile, enum tier best, const struct job *job,
		  struct worker_conn **conn, enum tier *tier, struct cj_error *err);
/* The "ready" line of a worker with TIER_INTERPRETER that pool_find() has spawned. */
void pool_note_ready(struct pool *p, const char *profile, const char *line, size_t size);
/* The best tier that the pool keeps for such requests. */
enum tier pool_wanted_tier(const struct pool *p, const char *profile, enum request_fit fit);

/* Why a run that got the tier `got` bypassed the pool.  `why_cold`: why its fit is FIT_COLD. */
enum pool_bypass pool_bypass_of(const struct pool *p, const char *profile, enum request_fit fit,
				enum pool_bypass why_cold, enum tier got);

/*
 * Ends workers that are too old or stale, spawns those that are missing.  Returns the time in ms
 * until there is more to do, or -1.
 */
int pool_tick(struct pool *p);
/* The number of ready workers of a tier. */
size_t pool_ready(const struct pool *p, enum tier tier);
