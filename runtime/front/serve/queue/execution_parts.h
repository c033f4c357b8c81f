/* SPDX-License-Identifier: Apache-2.0 */
/* execution_parts - what execution.c (the way) and completion.c (the end) share. */
#pragma once

#include <string.h>
#include <sys/queue.h>

#include "runtime/front/serve/queue/execution.h"
#include "runtime/front/serve/service.h"

#define RESULT_BEFORE "{\"type\":\"result\",\"result\":"
struct execution {
	TAILQ_ENTRY(execution) link;
	struct service *service;
	struct run *run;           /* NULL: landed, and the worker is leaving */
	struct exchange *exchange; /* NULL: nobody's, answered, or gone */
	struct execution_terms terms;
	char profile_sha256[SHA256_HEX_MAX], code_sha256[SHA256_HEX_MAX];
	char request_sha256[SHA256_HEX_MAX]; /* for the audit; "" where there is none */
	size_t code_bytes, body_size;
	char *body; /* until it is handed over */
	void (*landed)(void *context, const char *result, size_t size, enum api_code why);
	void *context;
	struct worker_conn *wire;
	uint64_t deadline_ms; /* of the next hard step; 0: none */
	bool is_cut, is_broken, is_on_record;
	uint64_t dropped; /* events that a slow caller didn't get */
	uint64_t begun_us;
};
TAILQ_HEAD(execution_list, execution);

struct executions {
	struct execution_list flying, leaving; /* with a worker */
	size_t nleaving;
};

/* Until it has landed. */
static inline const char *execution_request_id(const struct execution *f)
{
	return f->run->trace.request_id;
}

/* Closes and frees; in no list any more. */
void execution_destroy(struct execution *f);

/* Events that a slow caller didn't get, as the line that says so. */
void execution_tell_dropped(struct execution *f);

/* False: it is required and can't be had.  NULL: the start. */
bool execution_record(struct execution *f, const struct summary *s);

/*
 * The ends of a run, each answers its caller.  After the first three the worker, if there is one,
 * is leaving; the last one frees the flight.
 */
void execution_land(struct execution *f, const char *line, size_t size);
void execution_land_without(struct execution *f, const char *why);
void execution_land_cancelled(struct execution *f); /* its worker has none, or is not waited for */
void execution_turn_away(struct execution *f, enum api_code why); /* refused, and not remembered */
