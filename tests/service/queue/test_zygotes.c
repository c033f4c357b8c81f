/* SPDX-License-Identifier: Apache-2.0 */
/* Zygotes: when they start, serve, and are replaced. */
/* WRAP: spawner_ask worker_conn_create job_receive slog clock_ms metrics_count_zygote */
/* WRAP: profile_cache_get profile_cache_stamp plan_wants_zygote */
#include "runtime/service/queue/zygotes.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>

#include "profiles/plan/plan.h"
#include "runtime/service/config/profile_cache.h"
#include "runtime/service/log/slog.h"
#include "runtime/service/worker/zygote_keeper.h"

#define SPAWNED_MAX 32
#define CHECKED_MS  1000 /* after so long a changed profile is noticed without a request */

/* Keepers: conns without a process at their end. */
static struct world {
	struct zygotes zygotes;
	uint64_t now_ms, stamp;
	bool refuses, is_unwanted, has_no_socket;
	struct worker_conn *spawned[SPAWNED_MAX];
	unsigned count, complaints, events[ZYGOTE_EVENT_COUNT];
	char why[512];
	const char *expected; /* the profile of a zygote */
} world;

int __wrap_spawner_ask(struct spawner *s, const struct worker_order *wanted, struct worker *out,
		       struct cj_error *err);
int __wrap_spawner_ask(struct spawner *s, const struct worker_order *wanted, struct worker *out,
		       struct cj_error *err)
{
	(void)s, (void)out;
	assert_true(wanted->is_zygote);
	assert_int_equal(wanted->zygote_fd, -1);
	assert_string_equal(wanted->profile, world.expected);
	return world.refuses ? cj_reject(err, "there is nobody") : 0;
}

struct worker_conn *__wrap_worker_conn_create(struct loop *loop, struct worker *worker,
					      struct cj_error *err);
struct worker_conn *__wrap_worker_conn_create(struct loop *loop, struct worker *worker,
					      struct cj_error *err)
{
	struct worker_conn *conn = calloc(1, sizeof(*conn));

	(void)loop, (void)worker, (void)err;
	assert_non_null(conn);
	*conn = (struct worker_conn){ .worker = WORKER_NULL, .watch = WATCH_NULL };
	assert_true(world.count < SPAWNED_MAX);
	world.spawned[world.count++] = conn;
	return conn;
}

int __wrap_job_receive(int sock_fd, int *out_calls_fd, struct cj_error *err);
int __wrap_job_receive(int sock_fd, int *out_calls_fd, struct cj_error *err)
{
	(void)sock_fd, (void)out_calls_fd;
	if (world.has_no_socket)
		return cj_reject(err, "no socket came");
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int __wrap_profile_cache_get(struct profile_cache *k, const char *name, const struct config **out,
			     struct cj_error *err);
int __wrap_profile_cache_get(struct profile_cache *k, const char *name, const struct config **out,
			     struct cj_error *err)
{
	static const struct config none;

	(void)k, (void)name, (void)err;
	*out = &none;
	return 0;
}

bool __wrap_plan_wants_zygote(const struct config *c);
bool __wrap_plan_wants_zygote(const struct config *c)
{
	(void)c;
	return !world.is_unwanted;
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

void __wrap_metrics_count_zygote(struct metrics *m, const char *profile, enum zygote_event event);
void __wrap_metrics_count_zygote(struct metrics *m, const char *profile, enum zygote_event event)
{
	(void)m, (void)profile;
	world.events[event]++;
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
	{ .profile = "base", .jails = 2 },
	{ .profile = "python", .jails = 1, .interpreters = 2 },
};
static const struct zygotes_limits limits = { .children = 3, .age_ms = 5000 };

static int set_up(void **state)
{
	world = (struct world){ .now_ms = 1000, .stamp = 7, .expected = "python" };
	zygotes_configure(&world.zygotes, rows, 2, &limits);
	*state = &world;
	return 0;
}

static int tear_down(void **state)
{
	zygotes_configure(&((struct world *)*state)->zygotes, NULL, 0, &limits);
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

static void have_one(struct world *w)
{
	zygotes_tick(&w->zygotes);
	be_ready(w, w->count - 1);
}

static enum zygote_answer ask(struct world *w)
{
	int fd = -1;
	enum zygote_answer answer = zygotes_ask(&w->zygotes, "python", &fd);
	assert_int_equal(fd >= 0, answer == ZYGOTE_READY);
	return answer;
}

/* --- life ------------------------------------------------------------------------- */

static void a_profile_with_interpreters_has_one_zygote(void **state)
{
	struct world *w = *state;
	int fd = -1;

	assert_int_equal(ask(w), ZYGOTE_SOON);
	zygotes_tick(&w->zygotes);
	zygotes_tick(&w->zygotes);
	assert_int_equal(w->count, 1);
	assert_int_equal(ask(w), ZYGOTE_SOON);
	assert_int_equal(zygotes_alive(&w->zygotes), 0);
	be_ready(w, 0);
	assert_int_equal(ask(w), ZYGOTE_READY);
	assert_int_equal(zygotes_alive(&w->zygotes), 1);
	assert_int_equal(w->events[ZYGOTE_STARTED], 1);
	assert_int_equal(zygotes_ask(&w->zygotes, "base", &fd), ZYGOTE_NONE);
	assert_int_equal(w->complaints, 0);
}

static void a_profile_is_added_beside_the_zygotes_that_serve(void **state)
{
	struct world *w = *state;
	const struct pool_config added = { .profile = "node", .interpreters = 1 };

	have_one(w);
	zygotes_add(&w->zygotes, &added);
	zygotes_add(&w->zygotes, &added);
	zygotes_add(&w->zygotes, &(struct pool_config){ .profile = "shell", .jails = 1 });
	assert_int_equal(ask(w), ZYGOTE_READY);
	w->expected = "node";
	zygotes_tick(&w->zygotes);
	assert_int_equal(w->count, 2);
	be_ready(w, 1);
	assert_int_equal(zygotes_alive(&w->zygotes), 2);
}

static void a_profile_that_wants_none_has_none(void **state)
{
	struct world *w = *state;

	w->is_unwanted = true;
	zygotes_tick(&w->zygotes);
	assert_int_equal(w->count, 0);
	assert_int_equal(ask(w), ZYGOTE_NONE);
	for (size_t i = 0; i < ZYGOTE_EVENT_COUNT; i++)
		assert_int_equal(w->events[i], 0);
}

static void one_whose_loaded_files_changed_is_replaced_at_once(void **state)
{
	struct world *w = *state;

	have_one(w);
	say(w, 0, "{\"type\":\"stale\"}");
	assert_int_equal(ask(w), ZYGOTE_SOON);
	have_one(w);
	assert_int_equal(w->count, 2);
	assert_int_equal(ask(w), ZYGOTE_READY);
	zygotes_tick(&w->zygotes);
	assert_int_equal(w->count, 2);
	assert_int_equal(w->complaints, 0);
}

static void one_that_is_not_ready_can_not_be_stale(void **state)
{
	struct world *w = *state;

	zygotes_tick(&w->zygotes);
	say(w, 0, "{\"type\":\"stale\"}");
	zygotes_tick(&w->zygotes);
	assert_int_equal(w->count, 1);
	be_ready(w, 0);
	assert_int_equal(ask(w), ZYGOTE_READY);
}

static void after_its_children_the_next_one_takes_over_when_it_is_ready(void **state)
{
	struct world *w = *state;

	have_one(w);
	for (unsigned i = 0; i < limits.children; i++)
		assert_int_equal(ask(w), ZYGOTE_READY);
	zygotes_tick(&w->zygotes);
	assert_int_equal(w->count, 2);
	assert_int_equal(ask(w), ZYGOTE_READY);
	be_ready(w, 1);
	zygotes_tick(&w->zygotes);
	assert_int_equal(w->count, 2);
	assert_int_equal(zygotes_alive(&w->zygotes), 1);
}

static void past_its_age_the_next_one_takes_over(void **state)
{
	struct world *w = *state;

	have_one(w);
	w->now_ms += limits.age_ms - 1;
	zygotes_tick(&w->zygotes);
	assert_int_equal(w->count, 1);
	w->now_ms++;
	have_one(w);
	assert_int_equal(w->count, 2);
	assert_int_equal(w->events[ZYGOTE_STARTED], 2);
}

static void without_a_successor_it_ends_at_twice_its_limits(void **state)
{
	struct world *w = *state;

	have_one(w);
	w->refuses = true;
	for (unsigned i = 0; i < 2 * limits.children; i++) {
		zygotes_tick(&w->zygotes);
		assert_int_equal(ask(w), ZYGOTE_READY);
	}
	assert_int_equal(ask(w), ZYGOTE_NONE);
	assert_int_equal(w->events[ZYGOTE_MISSING], 1);
	assert_int_equal(w->complaints, 1);
}

static void one_whose_files_changed_serves_no_more(void **state)
{
	struct world *w = *state;

	have_one(w);
	w->stamp = 8;
	assert_int_equal(ask(w), ZYGOTE_SOON);
	assert_int_equal(zygotes_alive(&w->zygotes), 0);
	zygotes_tick(&w->zygotes);
	w->stamp = 9; /* and while one starts */
	w->now_ms += CHECKED_MS;
	zygotes_tick(&w->zygotes);
	assert_int_equal(w->count, 3);
	be_ready(w, 2);
	assert_int_equal(ask(w), ZYGOTE_READY);
}

/* --- failures ----------------------------------------------------------------------- */

static void fail_one(struct world *w, const char *line)
{
	unsigned last = w->count - 1;

	say(w, last, line);
	w->spawned[last]->ended(w->spawned[last], "");
}

static void one_that_fails_is_retried_after_growing_pauses(void **state)
{
	static const char line[] = "{\"type\":\"unready\",\"stage\":\"zygote\",\"message\":\"no\"}";
	struct world *w = *state;
	uint64_t wait_ms = BACKOFF_MIN_MS;

	for (unsigned i = 0; i < 8; i++) {
		zygotes_tick(&w->zygotes);
		assert_int_equal(w->count, i + 1);
		fail_one(w, line);
		assert_int_equal(ask(w), ZYGOTE_NONE);
		w->now_ms += wait_ms - 1;
		zygotes_tick(&w->zygotes);
		assert_int_equal(w->count, i + 1);
		w->now_ms++;
		wait_ms = 2 * wait_ms < BACKOFF_MAX_MS ? 2 * wait_ms : BACKOFF_MAX_MS;
	}
	assert_int_equal(w->complaints, 1);
	assert_string_equal(w->why, "no");
	assert_int_equal(w->events[ZYGOTE_MISSING], 8);
}

static void one_that_dies_is_replaced_after_a_pause(void **state)
{
	struct world *w = *state;

	have_one(w);
	w->spawned[0]->ended(w->spawned[0], "");
	assert_string_equal(w->why, "it ended by itself");
	assert_int_equal(ask(w), ZYGOTE_NONE);
	w->now_ms += BACKOFF_MIN_MS;
	assert_int_equal(ask(w), ZYGOTE_SOON);
	have_one(w);
	assert_int_equal(ask(w), ZYGOTE_READY);
}

static void an_unsuitable_profile_is_tried_again_when_it_has_changed(void **state)
{
	static const char line[] = "{\"type\":\"unready\",\"stage\":\"" ZYGOTE_STAGE_UNSUITABLE
				   "\",\"message\":\"an image\"}";
	struct world *w = *state;

	zygotes_tick(&w->zygotes);
	fail_one(w, line);
	w->now_ms += 10ull * BACKOFF_MAX_MS;
	zygotes_tick(&w->zygotes);
	assert_int_equal(ask(w), ZYGOTE_NONE);
	assert_int_equal(w->count, 1);
	assert_int_equal(w->complaints, 1);
	assert_int_equal(w->events[ZYGOTE_UNSUITABLE], 1);
	w->stamp = 8;
	w->now_ms += CHECKED_MS;
	have_one(w);
	assert_int_equal(ask(w), ZYGOTE_READY);
}

static void one_whose_children_fail_is_ended(void **state)
{
	struct world *w = *state;

	zygotes_configure(&w->zygotes, rows, 2, &(struct zygotes_limits){ 100, 5000 });
	have_one(w);
	zygotes_child_ready(&w->zygotes, "python", "broken");
	zygotes_child_ready(&w->zygotes, "python", "broken");
	zygotes_child_ready(&w->zygotes, "python", "");
	zygotes_child_ready(&w->zygotes, "python", "broken");
	zygotes_child_ready(&w->zygotes, "python", "broken");
	assert_int_equal(ask(w), ZYGOTE_READY);
	zygotes_child_ready(&w->zygotes, "python", "broken");
	assert_int_equal(ask(w), ZYGOTE_NONE);
	assert_int_equal(w->complaints, 1);
	assert_int_equal(w->events[ZYGOTE_FAILED], 5);
	assert_int_equal(w->events[ZYGOTE_CHILD], 1);
	zygotes_child_ready(&w->zygotes, "base", "broken"); /* has none */
}

static void one_without_a_socket_does_not_serve(void **state)
{
	struct world *w = *state;

	w->has_no_socket = true;
	have_one(w);
	assert_string_equal(w->why, "no socket came");
	assert_int_equal(zygotes_alive(&w->zygotes), 0);
	w->has_no_socket = false;
	w->now_ms += BACKOFF_MIN_MS;
	have_one(w);
	assert_int_equal(ask(w), ZYGOTE_READY);
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		ROW(a_profile_with_interpreters_has_one_zygote),
		ROW(a_profile_is_added_beside_the_zygotes_that_serve),
		ROW(a_profile_that_wants_none_has_none),
		ROW(after_its_children_the_next_one_takes_over_when_it_is_ready),
		ROW(past_its_age_the_next_one_takes_over),
		ROW(without_a_successor_it_ends_at_twice_its_limits),
		ROW(one_whose_files_changed_serves_no_more),
		ROW(one_whose_loaded_files_changed_is_replaced_at_once),
		ROW(one_that_is_not_ready_can_not_be_stale),
		ROW(one_that_fails_is_retried_after_growing_pauses),
		ROW(one_that_dies_is_replaced_after_a_pause),
		ROW(an_unsuitable_profile_is_tried_again_when_it_has_changed),
		ROW(one_whose_children_fail_is_ended),
		ROW(one_without_a_socket_does_not_serve),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
