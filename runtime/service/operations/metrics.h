/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics - counters of the service, as Prometheus text 0.0.4.
 *
 * One table of families: name, type, help, labels.  Callers can't choose the values of labels:
 * profiles are counted by name once a run was accepted, up to a limit, then as "other".
 */
#pragma once

#include "runtime/base/error.h"
#include "runtime/service/log/api_error.h"
#include "runtime/service/worker/job.h"
#include "runtime/jail/jail.h"
#include "runtime/session/session.h"

#define METRICS_PROFILES_MAX 32

struct json_writer;
struct metrics;
struct metrics *metrics_create(void); /* NULL: no memory */
void metrics_destroy(struct metrics **m);

#define METRICS_IN_SESSION TIER_COUNT /* in place of a tier: an exec of a session */
void metrics_count_run(struct metrics *m, const char *profile, enum tier tier,
		       const struct summary *s,
		       uint64_t request_us); /* from the whole request to its result */
void metrics_count_call(struct metrics *m, enum call_end end);
void metrics_count_session(struct metrics *m, const char *profile);
void metrics_count_session_end(struct metrics *m, enum session_end why);
void metrics_count_refusal(struct metrics *m, enum api_code why);
void metrics_count_pool(struct metrics *m, const char *profile, enum tier wanted, enum tier got);
/* BYPASS_COUNT: not bypassed, nothing is counted. */
void metrics_count_bypass(struct metrics *m, const char *profile, enum pool_bypass why);
/* As members of the open array: profile, reason, runs. */
void metrics_write_bypassed(const struct metrics *m, struct json_writer *w);
enum zygote_event {
	ZYGOTE_STARTED,    /* a zygote is ready */
	ZYGOTE_CHILD,      /* a jail came from a zygote */
	ZYGOTE_FAILED,     /* a jail should have come from one, and started its interpreter */
	ZYGOTE_MISSING,    /* there was none for a jail */
	ZYGOTE_UNSUITABLE, /* there is none for this profile */
	ZYGOTE_EVENT_COUNT
};

void metrics_count_zygote(struct metrics *m, const char *profile, enum zygote_event event);
void metrics_count_http(struct metrics *m, unsigned http_status);

/* Values that are read when the page is requested. */
struct gauges {
	uint64_t in_flight, queued, connections, zygotes, audit_failures;
	uint64_t pool_ready[TIER_COUNT]; /* prepared workers */
	uint64_t sessions, sessions_max, sessions_reserved_bytes, sessions_limits_bytes;
	uint64_t in_flight_max, queued_max; /* 0: left out */
	uint64_t started_ms;                /* of the service, since the epoch */
	bool has_probed;
	uint64_t probe_succeeded, probe_age_ms;
};
/* The whole page; malloc'ed, the caller frees it. */
int metrics_write(const struct metrics *m, const struct gauges *g, char **out_text,
		  size_t *out_size, struct cj_error *err);

/* Of this process; 0 if the kernel does not say. */
struct metrics_process {
	uint64_t resident_bytes, open_fds, cpu_us;
};
void metrics_look_at_process(struct metrics_process *out);
