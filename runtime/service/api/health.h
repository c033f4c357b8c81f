/* SPDX-License-Identifier: Apache-2.0 */
/*
 * health - whether the service can run programs.  Every now and then it begins a real run, the
 * probe, which takes the same path as any other; /readyz tells how the last one ended.
 *
 * The probe runs `true` with the profile of the configuration.  Without one it takes the first
 * profile (by name) that says "strict", because that demands most of the host; else "base".
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/service/access/account.h"

struct api;
struct json_node;
struct json_writer;
struct service_config;

#define HEALTH_PROFILE_MAX 64

struct health {
	char profile[HEALTH_PROFILE_MAX];
	uint64_t interval_ms; /* between two probes */
	struct rights rights; /* of the probe */
	struct account account;
	bool is_probing, has_probed;
	uint64_t probed_ms, next_ms; /* monotonic */
	bool succeeded;
	bool is_busy;      /* the last probe waited in the queue for too long: no news */
	char status[32];   /* of the last probe: a run's status, or an error code */
	char problem[512]; /* why the last probe failed, as callers may read it; "": it did not */
	struct arena arena;
	const struct json_node *result; /* of the last probe, in the arena; NULL: it had none */
};

/* After a new configuration: a probe is due. */
int health_adopt(struct api *a, const struct service_config *c, struct cj_error *err);
/* Begins a probe when one is due.  Returns the time in ms until the next, or -1. */
int health_tick(struct api *a, uint64_t now_ms);

enum readiness { READINESS_READY, READINESS_DEGRADED, READINESS_UNREADY };
/* Writes the page /readyz.  Unready is a 503: callers should send no requests. */
enum readiness health_write(const struct api *a, struct json_writer *w);
