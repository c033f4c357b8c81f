/* SPDX-License-Identifier: Apache-2.0 */
/*
 * health - whether runs work, known because one has just worked: the probe, a real run by the same
 * path as any other, every now and then.  And the page that tells of it.
 *
 * The probe's profile is the configuration's; else the first one (by name) that says "strict", for
 * that one asks most of the host; else "base".  It runs `true`.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/front/serve/access/account.h"

struct service;
struct json_writer;

#define HEALTH_PROFILE_MAX 64

struct health {
	char profile[HEALTH_PROFILE_MAX];
	struct rights rights; /* the probe's */
	struct account account;
	bool is_probing, has_probed;
	uint64_t probed_ms, next_ms; /* monotonic */
	bool succeeded;
	bool is_busy;       /* no probe since then: the last one's turn did not come */
	char status[32];    /* of the last probe: a run's status, or an error's code */
	char problem[512];  /* "" while all is well: why it failed, in a caller's words */
	struct arena arena; /* of what the last result said: */
	struct strings warnings;
	struct strings limits; /* "memory", "cgroup", "pids", ... in pairs */
};

void health_init(struct service *s);
void health_fini(struct health *h);
/* After a new configuration: a probe is due. */
int health_adopt(struct service *s, struct cj_error *err);
/* Starts a probe when one is due; ms until the next. */
int health_tick(struct service *s, uint64_t now_ms);

enum readiness { READINESS_READY, READINESS_DEGRADED, READINESS_UNREADY };
/* /readyz, into w; unready is a 503: no use to send requests. */
enum readiness health_write(struct service *s, struct json_writer *w);
