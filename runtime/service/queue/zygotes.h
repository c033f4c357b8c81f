/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zygotes - one started interpreter for each profile of the pool, whose forks become the launchers
 * of jails (runtime/jail/zygote/zygote.h).
 *
 * What children of one zygote share is bounded: after a number of children, or a time, the next
 * one is started, and serves as soon as it is ready.  A zygote whose profile or loaded files have
 * changed serves no more.  Where there is none, interpreters are started one by one, as without
 * zygotes.
 */
#pragma once

#include "runtime/base/error.h"
#include "runtime/service/config/service_config.h"
#include "runtime/service/operations/metrics.h"
#include "runtime/service/queue/pool.h"
#include "runtime/service/worker/worker_conn.h"

#define ZYGOTE_FAILURES_MAX 3 /* children in a row that could not be made: it is ended */

/* Of zygotes_spawn(): not now, but soon; this is no failure. */
#define ZYGOTES_NOT_YET EINPROGRESS

struct profile_cache;
struct zygotes;
struct zygote_row;
struct zygote_slot {
	struct zygote_row *row;
	struct worker_conn *conn; /* to its keeper */
	int sock_fd;              /* where jails are asked for; -1: it is not ready */
	uint64_t born_ms, stamp;
	uint64_t children;
	unsigned failures; /* in a row */
};

/* Of a profile. */
struct zygote_row {
	struct zygotes *zygotes;
	char profile[64];
	struct zygote_slot *serving, *starting; /* NULL: none */
	uint64_t stamp;         /* of the profile's files when they were checked last */
	bool is_wanted;         /* what the profile said then */
	bool is_unsuitable;     /* it can't use a zygote, until it changes */
	struct backoff backoff; /* of starting one, or of its children */
};

struct zygotes_limits {
	uint64_t children, age_ms;
};

struct zygotes {
	/* Borrowed; all of it outlives them. */
	struct loop *loop;
	struct spawner *spawner;
	struct profile_cache *profiles;
	struct metrics *metrics;

	struct zygotes_limits limits;
	uint64_t checked_ms; /* when all profiles were checked last */
	struct zygote_row rows[POOLS_MAX];
	size_t count;
};

/* Ends all zygotes; zygotes_tick() starts new ones, for rows with interpreters. */
void zygotes_configure(struct zygotes *z, const struct pool_config *rows, size_t count,
		       const struct zygotes_limits *limits);

/* Adds the profile of the row if it has no zygote yet; all zygotes stay. */
void zygotes_add(struct zygotes *z, const struct pool_config *row);

/* Ends zygotes that serve no more, starts those that are missing. */
void zygotes_tick(struct zygotes *z);

enum zygote_answer {
	ZYGOTE_NONE,  /* start the interpreter in the jail */
	ZYGOTE_SOON,  /* one is starting: ask again when something has happened */
	ZYGOTE_READY, /* *out_fd: the socket for requests, borrowed */
};
/* For one jail more. */
enum zygote_answer zygotes_ask(struct zygotes *z, const char *profile, int *out_fd);
/* How it went; `why` is "" if the jail came from the zygote. */
void zygotes_child_ready(struct zygotes *z, const char *profile, const char *why);

/*
 * zygotes_spawn - the worker, or the keeper of a zygote, that is wanted.
 *
 * With TIER_INTERPRETER it is forked of the profile's zygote, if there is one.  Fails:
 * ZYGOTES_NOT_YET while one starts; also where none serves, if the order has a job that waits.
 */
int zygotes_spawn(struct zygotes *z, const struct worker_order *wanted, struct worker_conn **out,
		  struct cj_error *err);

size_t zygotes_alive(const struct zygotes *z); /* that serve */
