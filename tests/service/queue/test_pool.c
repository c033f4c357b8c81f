/* SPDX-License-Identifier: Apache-2.0 */
/* Workers prepared ahead: which there are, which there should be. */
/* WRAP: zygotes_spawn zygotes_child_ready profile_cache_stamp clock_ms slog */
#include "runtime/service/queue/pool.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/service/log/slog.h"
#include "runtime/service/queue/zygotes.h"

#define SPAWNED_MAX 64

/* Every worker that was spawned: as a conn without a process at its end. */
static struct world {
	struct pool pool;
	struct zygotes zygotes;
	uint64_t now_ms, stamp;
	bool refuses, is_early, has_zygote;
	struct worker_conn *spawned[SPAWNED_MAX];
	enum tier tiers[SPAWNED_MAX];
	unsigned count, complaints, children;
	char why[512], why_no_zygote[1024];
} world;

int __wrap_zygotes_spawn(struct zygotes *z, const struct worker_order *wanted,
			 struct worker_conn **out, struct cj_error *err);
int __wrap_zygotes_spawn(struct zygotes *z, const struct worker_order *wanted,
			 struct worker_conn **out, struct cj_error *err)
{
	struct world *w = &world;

	assert_ptr_equal(z, &w->zygotes);
	if (wanted->has_job && !w->has_zygote)
		return cj_fail(err, ZYGOTES_NOT_YET, "there is no zygote");
	if (w->is_early)
		return cj_fail(err, ZYGOTES_NOT_YET, "wait");
	if (w->refuses)
		return cj_reject(err, "there is nobody");
	*out = calloc(1, sizeof(**out));
	assert_non_null(*out);
	**out = (struct worker_conn){ .worker = WORKER_NULL, .watch = WATCH_NULL };
	assert_true(w->count < SPAWNED_MAX);
	w->tiers[w->count] = wanted->tier;
	w->spawned[w->count++] = *out;
	return 0;
}

void __wrap_zygotes_child_ready(struct zygotes *z, const char *profile, const char *why);
void __wrap_zygotes_child_ready(struct zygotes *z, const char *profile, const char *why)
{
	assert_ptr_equal(z, &world.zygotes);
	assert_string_equal(profile, "python");
	world.children++;
	(void)snprintf(world.why_no_zygote, sizeof(world.why_no_zygote), "%s", why);
}

uint64_t __wrap_profile_cache_stamp(struct profile_cache *k, const char *name);
uint64_t __wrap_profile_cache_stamp(struct profile_cache *k, const char *name)
{
	(void)k, (void)name;
	return world.stamp;
}

uint64_t __wrap_clock_ms(void);
uint64_t __wrap_clock_ms(void)
{
	return world.now_ms;
}

/* Keeps the reason, behind the last colon. */
void __wrap_slog(enum slog_level level, const char *request_id, const char *fmt, ...);
__attribute__((format(printf, 3, 4))) void __wrap_slog(enum slog_level level,
						       const char *request_id, const char *fmt, ...)
{
	char line[1024];
	va_list args;

	assert_int_equal(level, SLOG_WARNING);
	assert_string_equal(request_id, "");
	va_start(args, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	assert_non_null(strstr(line, ": "));
	world.complaints++;
	(void)snprintf(world.why, sizeof(world.why), "%s", strrchr(line, ':') + 2);
}

static const struct pool_config rows[] = {
	{ .profile = "python", .jails = 1, .interpreters = 2 },
	{ .profile = "node", .jails = 1 },
};

static int set_up(void **state)
{
	world = (struct world){ .now_ms = 1000, .stamp = 7 };
	pool_init(&world.pool, &world.zygotes);
	pool_configure(&world.pool, rows, 2, 60000);
	*state = &world;
	return 0;
}

static int tear_down(void **state)
{
	pool_configure(&((struct world *)*state)->pool, NULL, 0, 0);
	return 0;
}

static void say(struct world *w, unsigned i, const char *line)
{
	w->spawned[i]->line(w->spawned[i], line, strlen(line));
}

static void be_ready(struct world *w, unsigned i)
{
	say(w, i, "{\"type\":\"ready\"}");
}

/* Some quiet time later, until all that is wanted is there. */
static void fill(struct world *w)
{
	w->now_ms += 1000;
	for (unsigned done = w->count;;) {
		(void)pool_tick(&w->pool);
		if (done == w->count)
			return;
		while (done < w->count)
			be_ready(w, done++);
	}
}

static unsigned total(const struct world *w)
{
	unsigned count = 0;

	for (size_t i = 0; i < w->pool.count; i++)
		count += w->pool.buckets[i].ready + w->pool.buckets[i].starting;
	return count;
}

static struct worker_conn *take(struct world *w, const char *profile, enum request_fit fit,
				enum tier *out_tier)
{
	*out_tier = TIER_COLD;
	return pool_take(&w->pool, profile, pool_best_tier(fit), out_tier);
}

/* --- filling -------------------------------------------------------------------- */

static void the_wanted_number_of_workers_is_prepared(void **state)
{
	struct world *w = *state;

	fill(w);
	assert_int_equal(w->count, 4);
	assert_int_equal(pool_ready(&w->pool, TIER_INTERPRETER), 2);
	assert_int_equal(pool_ready(&w->pool, TIER_JAIL), 2);
}

static void a_half_full_bucket_is_filled_when_no_request_is_near(void **state)
{
	struct world *w = *state;
	enum tier tier;

	fill(w);
	struct worker_conn *taken = take(w, "python", FIT_INTERPRETER, &tier);
	assert_int_equal(pool_tick(&w->pool), POOL_QUIET_MS);
	assert_int_equal(w->count, 4);
	w->now_ms += POOL_QUIET_MS;
	(void)pool_tick(&w->pool);
	assert_int_equal(w->count, 5);
	worker_conn_destroy(&taken);
}

static void a_half_full_bucket_is_filled_sooner_from_a_zygote(void **state)
{
	struct world *w = *state;
	enum tier tier;

	w->now_ms += 1000;
	for (unsigned done = 0; total(w) < 4 || done < w->count;) {
		(void)pool_tick(&w->pool);
		while (done < w->count)
			say(w, done++, "{\"type\":\"ready\",\"zygote\":true}");
	}
	struct worker_conn *taken = take(w, "python", FIT_INTERPRETER, &tier);
	assert_int_equal(pool_tick(&w->pool), POOL_QUIET_QUICK_MS);
	assert_int_equal(w->count, 4);
	w->now_ms += POOL_QUIET_QUICK_MS;
	(void)pool_tick(&w->pool);
	assert_int_equal(w->count, 5);
	worker_conn_destroy(&taken);
}

static void an_emptier_bucket_is_filled_at_once(void **state)
{
	struct world *w = *state;
	enum tier tier;

	fill(w);
	struct worker_conn *first = take(w, "python", FIT_INTERPRETER, &tier);
	struct worker_conn *second = take(w, "python", FIT_INTERPRETER, &tier);
	(void)pool_tick(&w->pool);
	assert_int_equal(w->count, 5);
	worker_conn_destroy(&first);
	worker_conn_destroy(&second);
}

static void only_a_few_start_at_once(void **state)
{
	struct world *w = *state;

	(void)pool_tick(&w->pool);
	(void)pool_tick(&w->pool);
	assert_int_equal(w->count, POOL_STARTING_MAX);
}

static void a_worker_that_is_not_ready_is_not_taken(void **state)
{
	struct world *w = *state;
	enum tier tier;

	(void)pool_tick(&w->pool);
	assert_null(take(w, "python", FIT_INTERPRETER, &tier));
	be_ready(w, 1);
	struct worker_conn *conn = take(w, "python", FIT_INTERPRETER, &tier);
	assert_ptr_equal(conn, w->spawned[1]);
	worker_conn_destroy(&conn);
}

/* --- taking ----------------------------------------------------------------------- */

static void a_request_gets_the_best_that_fits_it(void **state)
{
	static const struct {
		const char *profile;
		enum request_fit fit;
		enum tier wanted;
	} cases[] = {
		{ "python", FIT_JAIL, TIER_JAIL },
		{ "python", FIT_JAIL, TIER_COLD },
		{ "python", FIT_INTERPRETER, TIER_INTERPRETER },
		{ "python", FIT_COLD, TIER_COLD },
		{ "node", FIT_INTERPRETER, TIER_JAIL },
		{ "node", FIT_INTERPRETER, TIER_COLD },
		{ "shell", FIT_INTERPRETER, TIER_COLD },
	};
	struct world *w = *state;

	fill(w);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum tier tier;
		struct worker_conn *conn = take(w, cases[i].profile, cases[i].fit, &tier);
		assert_int_equal(tier, cases[i].wanted);
		assert_int_equal(conn != NULL, cases[i].wanted != TIER_COLD);
		worker_conn_destroy(&conn);
	}
}

static void a_session_with_an_interpreter_is_taken_by_its_own_kind_only(void **state)
{
	static const struct pool_config one = { .profile = "python", .repls = 1 };
	struct world *w = *state;
	enum tier tier;

	pool_configure(&w->pool, &one, 1, 60000);
	fill(w);
	assert_int_equal(pool_ready(&w->pool, TIER_REPL), 1);
	assert_null(take(w, "python", FIT_INTERPRETER, &tier));
	assert_int_equal(pool_wanted_tier(&w->pool, "python", FIT_INTERPRETER), TIER_COLD);
	assert_null(pool_take(&w->pool, "node", TIER_REPL, &tier));
	struct worker_conn *conn = pool_take(&w->pool, "python", TIER_REPL, &tier);
	assert_non_null(conn);
	assert_null(pool_take(&w->pool, "python", TIER_REPL, &tier));
	fill(w);
	w->stamp++; /* its profile changes */
	assert_null(pool_take(&w->pool, "python", TIER_REPL, &tier));
	worker_conn_destroy(&conn);
}

static void each_prepared_worker_is_taken_once_and_replaced(void **state)
{
	struct world *w = *state;
	enum tier tier;

	fill(w);
	struct worker_conn *first = take(w, "python", FIT_INTERPRETER, &tier);
	struct worker_conn *second = take(w, "python", FIT_INTERPRETER, &tier);
	assert_ptr_not_equal(first, second);
	assert_int_equal(total(w), 2);
	fill(w);
	assert_int_equal(total(w), 4);
	assert_int_equal(w->count, 6);
	worker_conn_destroy(&first);
	worker_conn_destroy(&second);
}

static void the_wanted_tier_is_known_when_no_worker_is_ready(void **state)
{
	struct world *w = *state;

	assert_int_equal(pool_wanted_tier(&w->pool, "python", FIT_INTERPRETER), TIER_INTERPRETER);
	assert_int_equal(pool_wanted_tier(&w->pool, "node", FIT_INTERPRETER), TIER_JAIL);
	assert_int_equal(pool_wanted_tier(&w->pool, "python", FIT_COLD), TIER_COLD);
	assert_int_equal(pool_wanted_tier(&w->pool, "shell", FIT_JAIL), TIER_COLD);
}

/* --- what is not used any more ------------------------------------------------------ */

static void a_profile_that_changed_makes_its_workers_stale(void **state)
{
	struct world *w = *state;
	enum tier tier;

	fill(w);
	w->stamp = 8;
	assert_null(take(w, "python", FIT_INTERPRETER, &tier));
	fill(w);
	assert_int_equal(total(w), 4);
	struct worker_conn *conn = take(w, "python", FIT_INTERPRETER, &tier);
	assert_non_null(conn);
	worker_conn_destroy(&conn);
}

static void a_profile_that_changes_while_one_starts_makes_it_stale(void **state)
{
	struct world *w = *state;
	enum tier tier;

	(void)pool_tick(&w->pool);
	w->stamp = 8;
	be_ready(w, 0);
	assert_null(take(w, "python", FIT_INTERPRETER, &tier));
}

static void none_is_used_past_its_age(void **state)
{
	struct world *w = *state;
	enum tier tier;

	fill(w);
	w->now_ms += 59999;
	struct worker_conn *conn = take(w, "python", FIT_INTERPRETER, &tier);
	assert_non_null(conn);
	worker_conn_destroy(&conn);
	w->now_ms += 1;
	assert_null(take(w, "python", FIT_INTERPRETER, &tier));
	unsigned before = w->count;
	fill(w);
	assert_int_equal(total(w), 4);
	assert_int_equal(w->count, before + 4);
}

static void a_new_configuration_replaces_all_prepared_workers(void **state)
{
	struct world *w = *state;

	fill(w);
	pool_configure(&w->pool, &rows[1], 1, 1000);
	assert_int_equal(total(w), 0);
	fill(w);
	assert_int_equal(total(w), 1);
	assert_int_equal(w->tiers[w->count - 1], TIER_JAIL);
}

static void what_is_added_leaves_the_prepared_workers(void **state)
{
	struct world *w = *state;
	const struct pool_config more = { .profile = "node", .jails = 3, .repls = 1 };
	const struct pool_config other = { .profile = "shell", .jails = 2 };
	enum tier tier;

	fill(w);
	unsigned before = w->count;
	struct worker_conn *kept = w->spawned[0];
	pool_add(&w->pool, &more);
	pool_add(&w->pool, &more);
	pool_add(&w->pool, &other);
	assert_int_equal(total(w), before);
	fill(w);
	assert_int_equal(w->count, before + 3);
	assert_int_equal(pool_ready(&w->pool, TIER_REPL), 1);
	assert_int_equal(pool_ready(&w->pool, TIER_JAIL), 4);
	struct worker_conn *conn = take(w, "python", FIT_INTERPRETER, &tier);
	assert_ptr_equal(conn, kept);
	worker_conn_destroy(&conn);
}

static void a_full_pool_takes_no_more(void **state)
{
	struct world *w = *state;
	char name[16];

	for (unsigned i = 0; i < 2 * (TIER_COUNT - 1) * POOLS_MAX; i++) {
		(void)snprintf(name, sizeof(name), "p%u", i);
		pool_add(&w->pool, &(struct pool_config){ .profile = name, .jails = 1 });
	}
	assert_int_equal(w->pool.count, (TIER_COUNT - 1) * POOLS_MAX);
}

/* --- failing -------------------------------------------------------------------------- */

static void fail_one(struct world *w, const char *line)
{
	unsigned last = w->count - 1;

	say(w, last, line);
	w->spawned[last]->ended(w->spawned[last], "");
}

static void a_failed_worker_is_retried_after_growing_pauses(void **state)
{
	static const char line[] =
	    "{\"type\":\"unready\",\"stage\":\"root\",\"message\":\"no disk\"}";
	struct world *w = *state;
	uint64_t wait_ms = BACKOFF_MIN_MS;

	pool_configure(&w->pool, &rows[1], 1, 0);
	for (int i = 0; i < 8; i++) {
		(void)pool_tick(&w->pool);
		assert_int_equal(w->count, i + 1);
		fail_one(w, line);
		w->now_ms += wait_ms - 1;
		(void)pool_tick(&w->pool);
		assert_int_equal(w->count, i + 1);
		w->now_ms += 1;
		wait_ms = 2 * wait_ms < BACKOFF_MAX_MS ? 2 * wait_ms : BACKOFF_MAX_MS;
	}
	assert_int_equal(w->complaints, 1);
	assert_string_equal(w->why, "no disk");
	assert_string_equal(w->pool.buckets[0].backoff.problem, "no disk");
	fill(w);
	assert_string_equal(w->pool.buckets[0].backoff.problem, "");
}

static void a_spawn_that_fails_is_a_reason_too(void **state)
{
	struct world *w = *state;

	pool_configure(&w->pool, &rows[1], 1, 0);
	w->refuses = true;
	(void)pool_tick(&w->pool);
	assert_string_equal(w->why, "there is nobody");
	w->refuses = false;
	(void)pool_tick(&w->pool);
	assert_int_equal(w->count, 0);
	w->now_ms += BACKOFF_MIN_MS;
	(void)pool_tick(&w->pool);
	assert_int_equal(w->count, 1);
}

static void a_worker_that_can_not_be_spawned_yet_is_no_failure(void **state)
{
	struct world *w = *state;

	w->is_early = true;
	(void)pool_tick(&w->pool);
	assert_int_equal(w->count, 0);
	assert_int_equal(w->complaints, 0);
	w->is_early = false;
	(void)pool_tick(&w->pool);
	assert_int_equal(w->count, POOL_STARTING_MAX);
}

static void a_zygote_serves_a_request_that_finds_the_pool_empty(void **state)
{
	static const struct {
		const char *profile;
		enum request_fit fit;
		bool has_zygote;
		enum tier tier;
	} cases[] = {
		{ "python", FIT_INTERPRETER, true, TIER_INTERPRETER },
		{ "python", FIT_INTERPRETER, false, TIER_COLD },
		{ "python", FIT_JAIL, true, TIER_COLD },
		{ "python", FIT_COLD, true, TIER_COLD },
		{ "node", FIT_INTERPRETER, true, TIER_COLD },
	};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct worker_conn *conn = NULL;
		struct cj_error err = { 0 };
		enum tier tier;
		w->has_zygote = cases[i].has_zygote;
		assert_int_equal(pool_find(&w->pool, cases[i].profile, pool_best_tier(cases[i].fit),
					   &conn, &tier, &err),
				 0);
		assert_int_equal(tier, cases[i].tier);
		assert_int_equal(w->tiers[i], cases[i].tier);
		worker_conn_destroy(&conn);
	}
}

static void a_ready_worker_says_why_it_has_no_zygote(void **state)
{
	struct world *w = *state;

	(void)pool_tick(&w->pool);
	say(w, 0, "{\"type\":\"ready\",\"stage\":\"zygote\",\"message\":\"gone\"}");
	assert_string_equal(w->why_no_zygote, "gone");
	assert_int_equal(pool_ready(&w->pool, TIER_INTERPRETER), 1);
	be_ready(w, 1);
	assert_int_equal(w->children, 1);
	assert_int_equal(w->complaints, 0);
}

static void a_worker_that_dies_waiting_is_replaced(void **state)
{
	struct world *w = *state;

	fill(w);
	w->spawned[0]->ended(w->spawned[0], "");
	assert_int_equal(total(w), 3);
	assert_string_equal(w->why, "it ended by itself");
	w->now_ms += BACKOFF_MIN_MS;
	fill(w);
	assert_int_equal(total(w), 4);
}

static void an_unknown_line_makes_no_worker_ready(void **state)
{
	static const char *const lines[] = { "", "ready", "{\"type\":\"readyy\"}",
					     "{\"type\":\"start\"}", "{\"type\":\"ready" };
	struct world *w = *state;

	(void)pool_tick(&w->pool);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		say(w, 0, lines[i]);
	assert_int_equal(pool_ready(&w->pool, TIER_INTERPRETER), 0);
	be_ready(w, 0);
	be_ready(w, 0);
	assert_int_equal(pool_ready(&w->pool, TIER_INTERPRETER), 1);
}

static void a_run_that_no_pool_served_has_a_reason(void **state)
{
	struct world *w = *state;
	const struct pool *p = &w->pool;
	const struct pool_config two[] = { { "both", 1, 1 }, { "interpreters", 0, 1 } };

	pool_configure(&w->pool, two, 2, 0);
	assert_int_equal(pool_bypass_of(p, "both", FIT_COLD, BYPASS_CEILING, TIER_COLD),
			 BYPASS_CEILING);
	assert_int_equal(pool_bypass_of(p, "both", FIT_JAIL, BYPASS_REQUEST, TIER_COLD),
			 BYPASS_EMPTY);
	assert_int_equal(pool_bypass_of(p, "interpreters", FIT_JAIL, BYPASS_CEILING, TIER_COLD),
			 BYPASS_REQUEST);
	assert_int_equal(pool_bypass_of(p, "both", FIT_INTERPRETER, BYPASS_REQUEST, TIER_JAIL),
			 BYPASS_COUNT);
	assert_int_equal(pool_bypass_of(p, "none", FIT_COLD, BYPASS_REQUEST, TIER_COLD),
			 BYPASS_COUNT);
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		ROW(a_run_that_no_pool_served_has_a_reason),
		ROW(the_wanted_number_of_workers_is_prepared),
		ROW(a_half_full_bucket_is_filled_when_no_request_is_near),
		ROW(a_half_full_bucket_is_filled_sooner_from_a_zygote),
		ROW(an_emptier_bucket_is_filled_at_once),
		ROW(only_a_few_start_at_once),
		ROW(a_worker_that_is_not_ready_is_not_taken),
		ROW(a_request_gets_the_best_that_fits_it),
		ROW(a_session_with_an_interpreter_is_taken_by_its_own_kind_only),
		ROW(each_prepared_worker_is_taken_once_and_replaced),
		ROW(the_wanted_tier_is_known_when_no_worker_is_ready),
		ROW(a_profile_that_changed_makes_its_workers_stale),
		ROW(a_profile_that_changes_while_one_starts_makes_it_stale),
		ROW(none_is_used_past_its_age),
		ROW(a_new_configuration_replaces_all_prepared_workers),
		ROW(what_is_added_leaves_the_prepared_workers),
		ROW(a_full_pool_takes_no_more),
		ROW(a_failed_worker_is_retried_after_growing_pauses),
		ROW(a_spawn_that_fails_is_a_reason_too),
		ROW(a_worker_that_can_not_be_spawned_yet_is_no_failure),
		ROW(a_zygote_serves_a_request_that_finds_the_pool_empty),
		ROW(a_ready_worker_says_why_it_has_no_zygote),
		ROW(a_worker_that_dies_waiting_is_replaced),
		ROW(an_unknown_line_makes_no_worker_ready),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
