/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preparing - what the pool and the zygotes ask for: it spawns workers and keepers of zygotes,
 * looks at profiles, counts and logs.  Acts.
 */
#pragma once

#include "runtime/service/config/profile_cache.h"
#include "runtime/base/loop.h"
#include "runtime/service/operations/metrics.h"
#include "runtime/service/queue/pool.h"
#include "runtime/service/queue/zygotes.h"
#include "runtime/service/worker/spawner.h"

/* The server's parts; all borrowed. */
struct preparing {
	struct loop *loop;
	struct spawner *spawner;
	struct zygotes *zygotes;
	struct profile_cache *profiles;
	struct metrics *metrics;
};

/* Initializes the pool and p->zygotes, with callbacks to *p. */
void preparing_init(struct preparing *p, struct pool *pool);
