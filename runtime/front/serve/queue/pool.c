/* SPDX-License-Identifier: Apache-2.0 */
/* Which prepared workers there are, and which there should be. */
#include "runtime/front/serve/queue/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_MS 1000 /* how often files and ages are looked at without a request */

/* --- slots ------------------------------------------------------------------ */

static void forget_slot(struct slot *s)
{
	struct pool_bucket *shelf = s->shelf;

	TAILQ_REMOVE(&shelf->slots, s, link);
	if (s->is_ready)
		shelf->ready--;
	else
		shelf->starting--;
	free(s);
}

static void end_slot(struct slot *s)
{
	worker_conn_destroy(&s->wire);
	forget_slot(s);
}

static void fail(struct pool_bucket *shelf, const char *why)
{
	struct pool *p = shelf->pool;

	shelf->backoff_ms = shelf->backoff_ms ? 2 * shelf->backoff_ms : POOL_BACKOFF_MIN_MS;
	if (shelf->backoff_ms > POOL_BACKOFF_MAX_MS)
		shelf->backoff_ms = POOL_BACKOFF_MAX_MS;
	shelf->retry_at_ms = p->ops.now_ms(p->ops.context) + shelf->backoff_ms;
	if (strcmp(why, shelf->problem) == 0)
		return;
	(void)snprintf(shelf->problem, sizeof(shelf->problem), "%s", why);
	p->ops.failed(p->ops.context, shelf->profile, shelf->tier, why);
}

static void on_line(struct worker_conn *w, const char *text, size_t size)
{
	struct slot *s = w->owner;
	char type[16], why[sizeof(s->shelf->problem)];

	worker_conn_line_type(text, type);
	if (strcmp(type, "ready") == 0 && !s->is_ready) {
		s->is_ready = true;
		s->shelf->starting--;
		s->shelf->ready++;
		s->shelf->backoff_ms = 0;
		s->shelf->problem[0] = '\0';
	} else if (strcmp(type, "unready") == 0) {
		unready_read(text, size, why, sizeof(why));
		fail(s->shelf, why);
	}
}

/* A worker that waits has no reason to end: then another one is built, but not at once. */
static void on_ended(struct worker_conn *w, const char *why)
{
	struct slot *s = w->owner;
	struct pool_bucket *shelf = s->shelf;

	end_slot(s);
	if (shelf->retry_at_ms <= shelf->pool->ops.now_ms(shelf->pool->ops.context))
		fail(shelf, why[0] ? why : "it ended by itself");
}

static bool is_stale(const struct slot *s, uint64_t now_ms)
{
	const struct pool *p = s->shelf->pool;
	bool is_old = p->age_ms > 0 && now_ms - s->born_ms >= p->age_ms;

	return is_old || s->stamp != p->ops.stamp(p->ops.context, s->shelf->profile);
}

/* --- shelves ---------------------------------------------------------------- */

void pool_init(struct pool *p, const struct pool_ops *ops)
{
	*p = (struct pool){ .ops = *ops };
}

static void empty_bucket(struct pool_bucket *shelf)
{
	struct slot *s;

	while ((s = TAILQ_FIRST(&shelf->slots)) != NULL)
		end_slot(s);
}

static void add_bucket(struct pool *p, const char *profile, enum tier tier, unsigned wanted)
{
	struct pool_bucket *shelf = &p->shelves[p->count];

	if (wanted == 0)
		return;
	*shelf = (struct pool_bucket){ .pool = p, .tier = tier, .wanted = wanted };
	(void)snprintf(shelf->profile, sizeof(shelf->profile), "%s", profile);
	TAILQ_INIT(&shelf->slots);
	p->count++;
}

void pool_configure(struct pool *p, const struct pool_config *rows, size_t count, uint64_t age_ms)
{
	for (size_t i = 0; i < p->count; i++)
		empty_bucket(&p->shelves[i]);
	p->count = 0;
	p->age_ms = age_ms;
	for (size_t i = 0; i < count; i++) {
		add_bucket(p, rows[i].profile, TIER_INTERPRETER, rows[i].interpreters);
		add_bucket(p, rows[i].profile, TIER_JAIL, rows[i].jails);
	}
}

static struct pool_bucket *find_bucket(const struct pool *p, const char *profile, enum tier tier)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->shelves[i].tier == tier && strcmp(p->shelves[i].profile, profile) == 0)
			return (struct pool_bucket *)&p->shelves[i];
	return NULL;
}

static struct worker_conn *take_from(struct pool_bucket *shelf, uint64_t now_ms)
{
	struct slot *s, *next;

	for (s = TAILQ_FIRST(&shelf->slots); s; s = next) {
		next = TAILQ_NEXT(s, link);
		if (!s->is_ready)
			continue;
		if (is_stale(s, now_ms)) {
			end_slot(s);
			continue;
		}
		struct worker_conn *wire = s->wire;
		forget_slot(s);
		return wire;
	}
	return NULL;
}

/* The first tier that serves such a request; those after it, down to a jail, do, too. */
static enum tier best_tier(enum request_fit fit)
{
	switch (fit) {
	case FIT_INTERPRETER:
		return TIER_INTERPRETER;
	case FIT_JAIL:
		return TIER_JAIL;
	default:
		return TIER_COLD;
	}
}

struct worker_conn *pool_take(struct pool *p, const char *profile, enum request_fit fit,
			      enum tier *out_tier)
{
	uint64_t now_ms = p->ops.now_ms(p->ops.context);

	p->taken_ms = now_ms;
	for (enum tier tier = best_tier(fit); tier > TIER_COLD; tier--) {
		struct pool_bucket *shelf = find_bucket(p, profile, tier);
		struct worker_conn *wire = shelf ? take_from(shelf, now_ms) : NULL;
		if (wire) {
			*out_tier = tier;
			return wire;
		}
	}
	return NULL;
}

enum tier pool_wanted_tier(const struct pool *p, const char *profile, enum request_fit fit)
{
	enum tier tier = best_tier(fit);

	while (tier > TIER_COLD && !find_bucket(p, profile, tier))
		tier--;
	return tier;
}

const char *const pool_bypass_names[BYPASS_COUNT] = {
	[BYPASS_REQUEST] = "request",
	[BYPASS_CEILING] = "ceiling",
	[BYPASS_EMPTY] = "empty",
};

enum pool_bypass pool_bypass_of(const struct pool *p, const char *profile, enum request_fit fit,
				enum pool_bypass why_cold, enum tier got)
{
	if (got != TIER_COLD || pool_wanted_tier(p, profile, FIT_INTERPRETER) == TIER_COLD)
		return BYPASS_COUNT;
	if (fit == FIT_COLD)
		return why_cold;
	/* A pool of interpreters alone has nothing for a request that needs a jail of it. */
	return pool_wanted_tier(p, profile, fit) == TIER_COLD ? BYPASS_REQUEST : BYPASS_EMPTY;
}

/* --- refilling -------------------------------------------------------------- */

static struct slot *add_slot(struct pool_bucket *shelf)
{
	struct slot *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->shelf = shelf;
	TAILQ_INSERT_TAIL(&shelf->slots, s, link);
	shelf->starting++;
	return s;
}

static void spawn_one(struct pool_bucket *shelf, uint64_t now_ms)
{
	struct pool *p = shelf->pool;
	struct cj_error err = { 0 };
	struct slot *s = add_slot(shelf);

	if (!s) {
		fail(shelf, "no memory");
		return;
	}
	s->born_ms = now_ms;
	/* Before it reads them: files that change meanwhile make it stale. */
	s->stamp = p->ops.stamp(p->ops.context, shelf->profile);
	if (p->ops.hire(p->ops.context, shelf->profile, shelf->tier, &s->wire, &err) < 0) {
		forget_slot(s);
		fail(shelf, err.msg);
		return;
	}
	s->wire->owner = s;
	s->wire->line = on_line;
	s->wire->ended = on_ended;
}

static void end_stale(struct pool_bucket *shelf, uint64_t now_ms)
{
	struct slot *s, *next;

	for (s = TAILQ_FIRST(&shelf->slots); s; s = next) {
		next = TAILQ_NEXT(s, link);
		if (s->is_ready && is_stale(s, now_ms))
			end_slot(s);
	}
}

/* Every LOOK_MS; what is taken is looked at then. */
static void end_all_stale(struct pool *p, uint64_t now_ms)
{
	if (now_ms < p->looked_ms + LOOK_MS)
		return;
	p->looked_ms = now_ms;
	for (size_t i = 0; i < p->count; i++)
		end_stale(&p->shelves[i], now_ms);
}

static bool has_place(const struct pool_bucket *shelf, uint64_t now_ms)
{
	return shelf->starting + shelf->ready < shelf->wanted && now_ms >= shelf->retry_at_ms;
}

/* Building one takes twenty times what a prepared one needs for a request: that goes first. */
static bool can_wait(const struct pool_bucket *shelf, uint64_t now_ms)
{
	return now_ms < shelf->pool->taken_ms + POOL_QUIET_MS &&
	       2 * (shelf->starting + shelf->ready) >= shelf->wanted;
}

int pool_tick(struct pool *p)
{
	uint64_t now_ms = p->ops.now_ms(p->ops.context);
	unsigned starting = 0;
	int wait_ms = p->count > 0 ? LOOK_MS : -1;

	end_all_stale(p, now_ms);
	for (size_t i = 0; i < p->count; i++)
		starting += p->shelves[i].starting;
	for (size_t i = 0; i < p->count; i++) {
		struct pool_bucket *shelf = &p->shelves[i];
		for (; starting < POOL_STARTING_MAX && has_place(shelf, now_ms); starting++) {
			if (can_wait(shelf, now_ms)) {
				wait_ms = POOL_QUIET_MS;
				break;
			}
			spawn_one(shelf, now_ms);
		}
	}
	return wait_ms;
}

size_t pool_ready(const struct pool *p, enum tier tier)
{
	size_t count = 0;

	for (size_t i = 0; i < p->count; i++)
		if (p->shelves[i].tier == tier)
			count += p->shelves[i].ready;
	return count;
}
