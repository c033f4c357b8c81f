/* SPDX-License-Identifier: Apache-2.0 */
/*
 * health - whether the service can run programs.  Every now and then it begins a real run, the
 * probe, which takes the same path as any other; /readyz tells how the last one ended.
 *
 * The probe runs `true` with the profile of the configuration.  Without one it takes the first
 * profile (by name) that says "strict", because that demands most of the host; else "base".
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/service/access/account.h"

struct audit;
struct executions;
struct json_writer;
struct metrics;
struct pool;
struct profile_cache;
struct sessions;
struct service_config;

#define HEALTH_PROFILE_MAX 64

/* What the probe uses and what /readyz shows; all of it is borrowed and outlives the health. */
struct health_context {
	struct executions *executions;
	struct profile_cache *profiles;
	const struct pool *pool;
	const struct metrics *metrics;
	const struct audit *audit;
	const struct sessions *sessions;
};

struct health {
	struct health_context context;
	char profile[HEALTH_PROFILE_MAX];
	uint64_t interval_ms; /* between two probes */
	struct rights rights; /* of the probe */
	struct account account;
	bool is_probing, has_probed;
	uint64_t probed_ms, next_ms; /* monotonic */
	bool succeeded;
	bool is_busy;       /* the last probe waited in the queue for too long: no news */
	char status[32];    /* of the last probe: a run's status, or an error code */
	char problem[512];  /* why the last probe failed, as callers may read it; "": it did not */
	struct arena arena; /* holds the two below, from the last result */
	struct strings warnings;
	struct strings limits; /* "memory", "cgroup", "pids", ... in pairs */
};

void health_init(struct health *h, const struct health_context *c);
void health_fini(struct health *h);
/* After a new configuration: a probe is due. */
int health_adopt(struct health *h, const struct service_config *c, struct cj_error *err);
/* Begins a probe when one is due.  Returns the time in ms until the next, or -1. */
int health_tick(struct health *h, uint64_t now_ms);

enum readiness { READINESS_READY, READINESS_DEGRADED, READINESS_UNREADY };
/* Writes the page /readyz.  Unready is a 503: callers should send no requests. */
enum readiness health_write(const struct health *h, struct json_writer *w);
