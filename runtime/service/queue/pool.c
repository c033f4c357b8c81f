/* SPDX-License-Identifier: Apache-2.0 */
/* Prepared workers: which there are, and which there should be. */
#include "runtime/service/queue/pool.h"

#include "runtime/base/clock.h"
#include "runtime/service/config/profile_cache.h"
#include "runtime/service/log/slog.h"
#include "runtime/service/queue/zygotes.h"

#define CHECK_MS 1000 /* the default; also how often a missing worker is tried again */

bool backoff_note(struct backoff *b, const char *why)
{
	if (strcmp(why, b->problem) == 0)
		return false;
	(void)snprintf(b->problem, sizeof(b->problem), "%s", why);
	return true;
}

bool backoff_fail(struct backoff *b, uint64_t now_ms, const char *why)
{
	b->pause_ms = b->pause_ms ? 2 * b->pause_ms : BACKOFF_MIN_MS;
	if (b->pause_ms > BACKOFF_MAX_MS)
		b->pause_ms = BACKOFF_MAX_MS;
	b->retry_at_ms = now_ms + b->pause_ms;
	return backoff_note(b, why);
}

void backoff_succeed(struct backoff *b)
{
	b->pause_ms = 0;
	b->problem[0] = '\0';
}

bool backoff_is_over(const struct backoff *b, uint64_t now_ms)
{
	return now_ms >= b->retry_at_ms;
}

static void forget_slot(struct slot *s)
{
	struct pool_bucket *bucket = s->bucket;

	TAILQ_REMOVE(&bucket->slots, s, link);
	if (s->is_ready)
		bucket->ready--;
	else
		bucket->starting--;
	free(s);
}

static void end_slot(struct slot *s)
{
	worker_conn_destroy(&s->conn);
	forget_slot(s);
}

static void fail(struct pool_bucket *bucket, const char *why)
{
	if (backoff_fail(&bucket->backoff, clock_ms(), why))
		slog(SLOG_WARNING, "", "no %s of profile '%s' can be prepared ahead: %s",
		     tier_names[bucket->tier], bucket->profile, why);
}

static void note_ready(struct pool *p, const char *profile, enum tier tier,
		       const struct readiness_line *how)
{
	if (tier == TIER_INTERPRETER && (how->is_of_zygote || how->why[0]))
		zygotes_child_ready(p->zygotes, profile, how->why);
}

static void on_line(struct worker_conn *w, const char *text, size_t size)
{
	struct slot *s = w->owner;
	struct pool_bucket *bucket = s->bucket;
	struct readiness_line said;
	enum worker_line line = worker_conn_line(text);

	if (line != WORKER_READY && line != WORKER_UNREADY)
		return;
	ready_read(text, size, &said);
	if (line == WORKER_UNREADY) {
		fail(bucket, said.why);
	} else if (!s->is_ready) {
		s->is_ready = true;
		bucket->starting--;
		bucket->ready++;
		bucket->is_quick = said.is_of_zygote;
		backoff_succeed(&bucket->backoff);
		note_ready(bucket->pool, bucket->profile, bucket->tier, &said);
	}
}

/* A waiting worker should not end: another one is prepared, but after a pause. */
static void on_ended(struct worker_conn *w, const char *why)
{
	struct slot *s = w->owner;
	struct pool_bucket *bucket = s->bucket;

	end_slot(s);
	if (backoff_is_over(&bucket->backoff, clock_ms()))
		fail(bucket, why[0] ? why : "it ended by itself");
}

static bool is_stale(const struct slot *s, uint64_t now_ms)
{
	const struct pool *p = s->bucket->pool;
	bool is_old = p->age_ms > 0 && now_ms - s->born_ms >= p->age_ms;

	return is_old || s->stamp != profile_cache_stamp(p->zygotes->profiles, s->bucket->profile);
}

void pool_init(struct pool *p, struct zygotes *zygotes)
{
	*p = (struct pool){ .zygotes = zygotes, .check_ms = CHECK_MS };
}

static struct pool_bucket *find_bucket(const struct pool *p, const char *profile, enum tier tier)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->buckets[i].tier == tier && strcmp(p->buckets[i].profile, profile) == 0)
			return (struct pool_bucket *)&p->buckets[i];
	return NULL;
}

static void add_bucket(struct pool *p, const char *profile, enum tier tier, unsigned wanted)
{
	struct pool_bucket *bucket = &p->buckets[p->count];

	if (wanted == 0 || find_bucket(p, profile, tier) || p->count == COUNT_OF(p->buckets))
		return;
	*bucket = (struct pool_bucket){ .pool = p, .tier = tier, .wanted = wanted };
	(void)snprintf(bucket->profile, sizeof(bucket->profile), "%s", profile);
	TAILQ_INIT(&bucket->slots);
	p->count++;
}

/* Slots point to their buckets, which stay where they are. */
void pool_add(struct pool *p, const struct pool_config *row)
{
	add_bucket(p, row->profile, TIER_INTERPRETER, row->interpreters);
	add_bucket(p, row->profile, TIER_JAIL, row->jails);
	add_bucket(p, row->profile, TIER_REPL, row->repls);
}

void pool_configure(struct pool *p, const struct pool_config *rows, size_t count, uint64_t age_ms)
{
	struct slot *s;

	for (size_t i = 0; i < p->count; i++)
		while ((s = TAILQ_FIRST(&p->buckets[i].slots)) != NULL)
			end_slot(s);
	p->count = 0;
	p->age_ms = age_ms;
	for (size_t i = 0; i < count; i++)
		pool_add(p, &rows[i]);
}

static struct worker_conn *take_from(struct pool_bucket *bucket, uint64_t now_ms)
{
	struct slot *s, *next;

	for (s = TAILQ_FIRST(&bucket->slots); s; s = next) {
		next = TAILQ_NEXT(s, link);
		if (!s->is_ready)
			continue;
		if (is_stale(s, now_ms)) {
			end_slot(s);
			continue;
		}
		struct worker_conn *conn = s->conn;
		forget_slot(s);
		return conn;
	}
	return NULL;
}

enum tier pool_best_tier(enum request_fit fit)
{
	return fit == FIT_INTERPRETER ? TIER_INTERPRETER : fit == FIT_JAIL ? TIER_JAIL : TIER_COLD;
}

struct worker_conn *pool_take(struct pool *p, const char *profile, enum tier best,
			      enum tier *out_tier)
{
	uint64_t now_ms = clock_ms();

	p->taken_ms = now_ms;
	while (best > TIER_COLD) {
		struct pool_bucket *bucket = find_bucket(p, profile, best);
		struct worker_conn *conn = bucket ? take_from(bucket, now_ms) : NULL;
		if (conn) {
			*out_tier = best;
			return conn;
		}
		/* the jail of a started interpreter is not divided, so it can't become a session */
		best = best == TIER_REPL ? TIER_JAIL : best - 1;
	}
	return NULL;
}

int pool_find(struct pool *p, const char *profile, enum tier best, struct worker_conn **out,
	      enum tier *out_tier, struct cj_error *err)
{
	struct worker_order wanted = { .profile = profile,
				       .tier = TIER_INTERPRETER,
				       .has_job = true };
	struct cj_error none = { 0 };

	*out = pool_take(p, profile, best, out_tier);
	if (*out)
		return 0;
	*out_tier = TIER_INTERPRETER;
	if (best == TIER_INTERPRETER && find_bucket(p, profile, TIER_INTERPRETER) &&
	    zygotes_spawn(p->zygotes, &wanted, out, &none) == 0)
		return 0;
	*out_tier = wanted.tier = TIER_COLD;
	wanted.has_job = false;
	return zygotes_spawn(p->zygotes, &wanted, out, err);
}

int pool_send_job(struct pool *p, const char *profile, enum tier best, const struct job *job,
		  struct worker_conn **conn, enum tier *tier, struct cj_error *err)
{
	while (worker_send_job(&(*conn)->worker, job, err) < 0) {
		bool was_cold = *tier == TIER_COLD;
		if (was_cold && err->code == EPIPE)
			break; /* its last line says why */
		worker_conn_destroy(conn);
		if (was_cold || pool_find(p, profile, best, conn, tier, err) < 0)
			return -err->code;
	}
	return 0;
}

void pool_note_ready(struct pool *p, const char *profile, const char *line, size_t size)
{
	struct readiness_line said;

	ready_read(line, size, &said);
	note_ready(p, profile, TIER_INTERPRETER, &said);
}

enum tier pool_wanted_tier(const struct pool *p, const char *profile, enum request_fit fit)
{
	enum tier tier = pool_best_tier(fit);

	while (tier > TIER_COLD && !find_bucket(p, profile, tier))
		tier--;
	return tier;
}

enum pool_bypass pool_bypass_of(const struct pool *p, const char *profile, enum request_fit fit,
				enum pool_bypass why_cold, enum tier got)
{
	if (got != TIER_COLD || pool_wanted_tier(p, profile, FIT_INTERPRETER) == TIER_COLD)
		return BYPASS_COUNT;
	if (fit == FIT_COLD)
		return why_cold;
	/* a pool that keeps interpreters only has no worker for a request with FIT_JAIL */
	return pool_wanted_tier(p, profile, fit) == TIER_COLD ? BYPASS_REQUEST : BYPASS_EMPTY;
}

/* False: it can't be spawned now. */
static bool spawn_one(struct pool_bucket *bucket, uint64_t now_ms)
{
	struct pool *p = bucket->pool;
	struct cj_error err = { 0 };
	struct slot *s = calloc(1, sizeof(*s));
	const struct worker_order wanted = { .profile = bucket->profile, .tier = bucket->tier };

	if (!s) {
		fail(bucket, "no memory");
		return false;
	}
	s->bucket = bucket;
	TAILQ_INSERT_TAIL(&bucket->slots, s, link);
	bucket->starting++;
	s->born_ms = now_ms;
	/* before the worker reads the files: if they change meanwhile, it is stale */
	s->stamp = profile_cache_stamp(p->zygotes->profiles, bucket->profile);
	if (zygotes_spawn(p->zygotes, &wanted, &s->conn, &err) < 0) {
		forget_slot(s);
		if (err.code != ZYGOTES_NOT_YET)
			fail(bucket, err.msg);
		return false;
	}
	s->conn->owner = s;
	s->conn->line = on_line;
	s->conn->ended = on_ended;
	return true;
}

/* Every check_ms; pool_take() checks what it takes in any case. */
static void end_all_stale(struct pool *p, uint64_t now_ms)
{
	if (now_ms < p->stale_checked_ms + p->check_ms)
		return;
	p->stale_checked_ms = now_ms;
	for (size_t i = 0; i < p->count; i++) {
		struct slot *s, *next;
		for (s = TAILQ_FIRST(&p->buckets[i].slots); s; s = next) {
			next = TAILQ_NEXT(s, link);
			if (s->is_ready && is_stale(s, now_ms))
				end_slot(s);
		}
	}
}

/* How many workers are missing, unless the last failure was a short time ago. */
static unsigned missing(const struct pool_bucket *bucket, uint64_t now_ms)
{
	unsigned has = bucket->starting + bucket->ready;

	return has < bucket->wanted && backoff_is_over(&bucket->backoff, now_ms)
		   ? bucket->wanted - has
		   : 0;
}

/*
 * To start an interpreter takes twenty times as long as a request on one that waits: requests go
 * first.  From a zygote it takes as long as a short one, and only that goes first.
 */
static unsigned quiet_ms(const struct pool_bucket *bucket)
{
	return bucket->is_quick ? POOL_QUIET_QUICK_MS : POOL_QUIET_MS;
}

int pool_tick(struct pool *p)
{
	uint64_t now_ms = clock_ms(), check_ms = p->check_ms;
	unsigned starting = 0;
	int wait_ms = -1;

	end_all_stale(p, now_ms);
	for (size_t i = 0; i < p->count; i++)
		starting += p->buckets[i].starting;
	for (size_t i = 0; i < p->count; i++) {
		struct pool_bucket *bucket = &p->buckets[i];
		bool is_asked = now_ms < p->taken_ms + quiet_ms(bucket);
		unsigned wants;
		for (; starting < POOL_STARTING_MAX && (wants = missing(bucket, now_ms)) > 0;
		     starting++) {
			if (is_asked && 2 * wants <= bucket->wanted) {
				wait_ms = loop_sooner(wait_ms, (int)quiet_ms(bucket));
				break;
			}
			if (!spawn_one(bucket, now_ms))
				break;
		}
		/* one that could not be spawned is tried again soon */
		if (bucket->starting + bucket->ready < bucket->wanted)
			check_ms = CHECK_MS;
	}
	return wait_ms >= 0 || p->count == 0 ? wait_ms : (int)check_ms;
}

size_t pool_ready(const struct pool *p, enum tier tier)
{
	size_t count = 0;

	for (size_t i = 0; i < p->count; i++)
		if (p->buckets[i].tier == tier)
			count += p->buckets[i].ready;
	return count;
}
