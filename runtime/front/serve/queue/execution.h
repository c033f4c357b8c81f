/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execution - the acting half of a run: its caller, its worker, its record.
 *
 *	execution_begin        queued
 *	its turn            on record (audit), a worker from the pool or a cold one, the job
 *	lines               events to the caller, the summary, the result
 *	landed              on record again, counted, answered; once, whatever happened
 *
 * It lands without a result when its worker dies, says what makes no sense, or stays past all
 * limits: then the leash is cut first, the socket later.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/front/serve/api/api_error.h"
#include "runtime/front/serve/queue/pool.h"
#include "runtime/front/serve/api/request.h"
#include "runtime/front/serve/queue/runs.h"

struct service;
struct exchange;
struct executions;

#define EXECUTION_GRACE_MS 30000 /* set-up and clean-up, beside the program's own time */
#define EXECUTION_CUT_MS   5000  /* from the leash to the socket */
#define EXECUTION_LEAVE_MS 15000 /* a worker that has said all */

/* What was judged of it. */
struct execution_terms {
	enum request_fit fit;
	enum pool_bypass why_cold; /* with FIT_COLD */
	bool wants_events, may_name_host_paths, audit_required;
	struct lower lower;
	uint64_t wall_ms, output_bytes; /* as they will be in force */
};

/* What is known of a run when it is taken; all of it is copied, but for what is said to be taken.
 */
struct execution_order {
	struct exchange *exchange; /* NULL: nobody's; taken */
	struct account *account;
	const char *id, *profile, *profile_sha256;
	const struct trace *trace;
	struct execution_terms terms;
	struct blob code; /* for the record: its hash and size */
	char *body;       /* malloc'ed, taken */
	size_t body_size;
	/* Instead of an exchange: the result's JSON, or NULL and why there is none. */
	void (*landed)(void *context, const char *result, size_t size, enum api_code why);
	void *context;
};

struct executions *executions_create(void); /* NULL: no memory */
/* Whatever is under way lands as it can: cancelled, if workers still tell. */
void executions_destroy(struct executions **f);

int execution_begin(struct service *s, const struct execution_order *order, struct cj_error *err);
/* Its result will say so; a queued one lands at once. */
void execution_cancel(struct run *run);
void executions_cancel_all(struct service *s);
/* Starts whose turn it is, refuses who has waited too long.  ms until there is more to do, or -1.
 */
int executions_tick(struct service *s, uint64_t now_ms);
/* Live runs, and workers that have not ended. */
size_t executions_count(const struct service *s);
