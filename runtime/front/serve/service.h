/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service - all that the server has, for the files that make it work together: server.c (sockets,
 * signals, life), api*.c (requests to replies), execution.c (runs), health.c.  One process, one
 * thread, one of these.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/front/serve/access/account.h"
#include "runtime/front/serve/access/audit.h"
#include "runtime/front/serve/operations/health.h"
#include "runtime/front/serve/http/http.h"
#include "runtime/front/serve/config/profile_cache.h"
#include "runtime/front/serve/loop.h"
#include "runtime/front/serve/operations/metrics.h"
#include "runtime/front/serve/queue/pool.h"
#include "runtime/front/serve/queue/runs.h"
#include "runtime/front/serve/config/service_config.h"
#include "runtime/front/serve/worker/spawner.h"

struct executions;

struct service {
	struct loop loop;
	struct spawner spawner;
	struct service_config *config; /* the one in force */
	unsigned concurrency;          /* of the configuration, or what the host suggests */
	uid_t own_uid;
	uint64_t started_ms; /* since the epoch */
	bool is_draining;

	struct http *http;
	struct accounts accounts;
	struct metrics *metrics;
	struct audit audit;
	struct runs runs;
	struct profile_cache *known;
	struct pool pool;
	struct executions *flights;
	struct health health;
};

uint64_t service_wall_ms(void); /* since the epoch */
/* A worker of its own, of a struct service: pool.h's hire, and a cold run's. */
int service_spawn_worker(void *service, const char *profile, enum tier tier,
			 struct worker_conn **out, struct cj_error *err);
