/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool - workers prepared ahead: per profile and tier a shelf of them.  Decides; whoever hires,
 * looks at profile files and knows the time is an argument.
 *
 * Each is used once.  It carries the stamp its profile's files had before it was hired: one whose
 * stamp is no longer theirs, or that is too old, is ended and replaced.  Refilling is pool_tick's,
 * away from any request; where it fails it is tried again later and later.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "runtime/base/error.h"
#include "runtime/front/serve/worker/job.h"
#include "runtime/front/serve/api/request.h"
#include "runtime/front/serve/config/service_config.h"
#include "runtime/front/serve/worker/worker_conn.h"

#define POOL_STARTING_MAX   2  /* at once, so that runs get their share of the processors */
#define POOL_QUIET_MS       20 /* without a request: a shelf that is half full waits for it */
#define POOL_BACKOFF_MIN_MS 1000
#define POOL_BACKOFF_MAX_MS 60000

/* Why a run of a profile that has a pool got a jail of its own. */
enum pool_bypass {
	BYPASS_REQUEST, /* it asks for a jail of another shape */
	BYPASS_CEILING, /* a ceiling of its caller makes it another shape */
	BYPASS_EMPTY,   /* no prepared jail was there */
	BYPASS_COUNT    /* also: it didn't */
};
extern const char *const pool_bypass_names[BYPASS_COUNT]; /* "request", "ceiling", "empty" */

struct pool_ops {
	int (*hire)(void *context, const char *profile, enum tier tier, struct worker_conn **out,
		    struct cj_error *err);
	uint64_t (*stamp)(void *context, const char *profile); /* of its files as they are now */
	uint64_t (*now_ms)(void *context);
	/* It couldn't be built: said once for each reason. */
	void (*failed)(void *context, const char *profile, enum tier tier, const char *why);
	void *context;
};

struct pool;
struct slot {
	TAILQ_ENTRY(slot) link;
	struct pool_bucket *shelf;
	struct worker_conn *wire;
	bool is_ready;
	uint64_t born_ms, stamp;
};
TAILQ_HEAD(slot_list, slot);

struct pool_bucket {
	struct pool *pool;
	char profile[64];
	enum tier tier;
	unsigned wanted, starting, ready;
	struct slot_list slots; /* oldest first */
	uint64_t retry_at_ms, backoff_ms;
	char problem[512]; /* why the last one couldn't be built; "" while all is well */
};

struct pool {
	struct pool_ops ops;
	uint64_t age_ms, taken_ms, looked_ms; /* when last */
	struct pool_bucket shelves[2 * POOLS_MAX];
	size_t count;
};

void pool_init(struct pool *p, const struct pool_ops *ops);
/* Ends what there is; pool_tick builds anew.  A count of 0: only ends. */
void pool_configure(struct pool *p, const struct pool_config *rows, size_t count, uint64_t age_ms);

/* The worker that has most done already for such a request, or NULL: the caller's. */
struct worker_conn *pool_take(struct pool *p, const char *profile, enum request_fit fit,
			      enum tier *out_tier);
/* The best tier that is kept for such requests. */
enum tier pool_wanted_tier(const struct pool *p, const char *profile, enum request_fit fit);

/*
 * Why a run that was served by `got` was not served by a pool; `why_cold`: why its fit is FIT_COLD.
 */
enum pool_bypass pool_bypass_of(const struct pool *p, const char *profile, enum request_fit fit,
				enum pool_bypass why_cold, enum tier got);

/* Replaces what is too old, or stale, hires what is missing.  Returns ms until there is more to do,
 * or -1. */
int pool_tick(struct pool *p);
/* How many of a tier are ready. */
size_t pool_ready(const struct pool *p, enum tier tier);
