/* SPDX-License-Identifier: Apache-2.0 */
/* flight_parts - what flight.c (the way) and landing.c (the end) share. */
#pragma once

#include <string.h>
#include <sys/queue.h>

#include "runtime/front/serve/flight.h"
#include "runtime/front/serve/service.h"

#define RESULT_BEFORE "{\"type\":\"result\",\"result\":"
struct flight {
	TAILQ_ENTRY(flight) link;
	struct service *service;
	struct run *run;           /* NULL: landed, and the worker is leaving */
	struct exchange *exchange; /* NULL: nobody's, answered, or gone */
	struct flight_terms terms;
	char profile_sha256[SHA256_HEX_MAX], code_sha256[SHA256_HEX_MAX];
	char request_sha256[SHA256_HEX_MAX]; /* for the audit; "" where there is none */
	size_t code_bytes, body_size;
	char *body; /* until it is handed over */
	void (*landed)(void *context, const char *result, size_t size, enum api_code why);
	void *context;
	struct wire *wire;
	uint64_t deadline_ms; /* of the next hard step; 0: none */
	bool is_cut, is_broken, is_on_record;
	uint64_t dropped; /* events that a slow caller didn't get */
	uint64_t begun_us;
};
TAILQ_HEAD(flight_list, flight);

struct flights {
	struct flight_list flying, leaving; /* with a worker */
	size_t nleaving;
};

/* Until it has landed. */
static inline const char *flight_request_id(const struct flight *f)
{
	return f->run->trace.request_id;
}

/* Closes and frees; in no list any more. */
void flight_destroy(struct flight *f);

/* Events that a slow caller didn't get, as the line that says so. */
void flight_tell_dropped(struct flight *f);

/* False: it is required and can't be had.  NULL: the start. */
bool flight_record(struct flight *f, const struct summary *s);

/*
 * The ends of a run, each answers its caller.  After the first three the worker, if there is one,
 * is leaving; the last one frees the flight.
 */
void flight_land(struct flight *f, const char *line, size_t size);
void flight_land_without(struct flight *f, const char *why);
void flight_land_cancelled(struct flight *f); /* its worker has none, or is not waited for */
void flight_turn_away(struct flight *f, enum api_code why); /* refused, and not remembered */
