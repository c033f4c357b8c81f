/* SPDX-License-Identifier: Apache-2.0 */
/* Every run the service has taken, and whose turn it is. */
#include "runtime/service/queue/runs.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define MANY 1000

struct world {
	struct runs runs;
	struct rights rights;
	struct account a, b, c;
	struct trace trace;
	unsigned minted;
};

static int set_up(void **state)
{
	static struct world w;

	w = (struct world){ .rights = { .concurrent = 4, .queued = 8 },
			    .trace = { .request_id = "r", .traceparent = "t" } };
	runs_init(&w.runs);
	w.a = (struct account){ .name = "uid:1", .rights = &w.rights };
	w.b = (struct account){ .name = "uid:2", .rights = &w.rights };
	w.c = (struct account){ .name = "token:ci", .rights = &w.rights };
	*state = &w;
	return 0;
}

static int tear_down(void **state)
{
	runs_fini(&((struct world *)*state)->runs);
	return 0;
}

static struct run *add_at(struct world *w, struct account *a, const char *id, uint64_t now_ms)
{
	struct run_order order = { .job.trace = w->trace, .profile = "python", .account = a };

	(void)snprintf(order.job.id, sizeof(order.job.id), "%s", id);
	(void)snprintf(order.caller, sizeof(order.caller), "%s", a->name);
	struct run *run = runs_add(&w->runs, &order, now_ms + 500, 1000000 + now_ms);

	assert_non_null(run);
	return run;
}

static struct run *add(struct world *w, struct account *a)
{
	char id[PLAN_ID_MAX];

	(void)snprintf(id, sizeof(id), "run-%u", w->minted++);
	return add_at(w, a, id, 0);
}

static struct account *start_next(struct world *w, unsigned concurrency)
{
	struct run *run = runs_next(&w->runs, concurrency);

	if (!run)
		return NULL;
	struct account *account = run->order.account;
	runs_start(&w->runs, run, 2000000);
	return account;
}

/* --- states --------------------------------------------------------------------- */

static void a_run_is_counted_with_its_caller_while_it_lives(void **state)
{
	struct world *w = *state;
	struct run *run = add(w, &w->a);

	assert_int_equal(w->a.queued, 1);
	assert_int_equal(run->state, RUN_QUEUED);
	runs_start(&w->runs, run, 2000000);
	assert_int_equal(w->a.queued, 0);
	assert_int_equal(w->a.running, 1);
	runs_finish(&w->runs, run, 3000000);
	assert_int_equal(w->a.running, 0);
	assert_null(run->order.account);
	assert_int_equal(run->created_ms, 1000000);
	assert_int_equal(run->started_ms, 2000000);
	assert_int_equal(run->ended_ms, 3000000);
	assert_int_equal(w->runs.counts[RUN_FINISHED], 1);
}

static void a_queued_run_can_finish_and_can_be_dropped(void **state)
{
	struct world *w = *state;
	struct run *first = add(w, &w->a), *second = add(w, &w->a);

	runs_finish(&w->runs, first, 1);
	assert_int_equal(w->a.queued, 1);
	runs_drop(&w->runs, second);
	assert_int_equal(w->a.queued, 0);
	assert_int_equal(w->runs.counts[RUN_QUEUED], 0);
	assert_int_equal(w->runs.counts[RUN_FINISHED], 1);
}

static void an_id_is_in_use_while_its_callers_run_lives(void **state)
{
	struct world *w = *state;
	struct run *run = add_at(w, &w->a, "mine", 0);

	assert_true(runs_has_live(&w->runs, "uid:1", "mine"));
	runs_start(&w->runs, run, 1);
	assert_true(runs_has_live(&w->runs, "uid:1", "mine"));
	assert_false(runs_has_live(&w->runs, "uid:1", "other"));
	assert_false(runs_has_live(&w->runs, "uid:2", "mine"));
	runs_finish(&w->runs, run, 2);
	assert_false(runs_has_live(&w->runs, "uid:1", "mine"));
	(void)add_at(w, &w->a, "mine", 3); /* beside the finished one */
	assert_true(runs_has_live(&w->runs, "uid:1", "mine"));
}

/* --- whose turn ------------------------------------------------------------------- */

static void callers_take_turns_regardless_of_their_queue_length(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 6; i++)
		(void)add(w, &w->a);
	(void)add(w, &w->b);
	(void)add(w, &w->c);
	(void)add(w, &w->b);
	w->rights.concurrent = 0;
	struct account *const order[] = { &w->a, &w->b, &w->c, &w->a, &w->b, &w->a, &w->a };
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		assert_ptr_equal(start_next(w, 100), order[i]);
}

static void the_caller_whose_last_start_is_longest_ago_is_next(void **state)
{
	struct world *w = *state;

	(void)add(w, &w->a);
	(void)add(w, &w->b);
	assert_ptr_equal(start_next(w, 100), &w->a);
	assert_ptr_equal(start_next(w, 100), &w->b);
	(void)add(w, &w->b);
	(void)add(w, &w->a); /* later, but its turn is earlier */
	(void)add(w, &w->c); /* the first one of this caller */
	struct account *const order[] = { &w->c, &w->a, &w->b };
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		assert_ptr_equal(start_next(w, 100), order[i]);
}

static void a_callers_runs_start_in_the_order_they_came(void **state)
{
	struct world *w = *state;
	struct run *first = add(w, &w->a);

	(void)add(w, &w->a);
	assert_ptr_equal(runs_next(&w->runs, 1), first);
}

static void no_more_run_at_once_than_may(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 6; i++)
		(void)add(w, &w->a);
	assert_non_null(start_next(w, 2));
	assert_non_null(start_next(w, 2));
	assert_null(start_next(w, 2));
	assert_non_null(start_next(w, 3));
}

static void a_caller_at_its_limit_does_not_delay_others(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 6; i++)
		(void)add(w, &w->a);
	for (int i = 0; i < 4; i++)
		assert_ptr_equal(start_next(w, 100), &w->a);
	assert_null(start_next(w, 100));
	(void)add(w, &w->b);
	assert_ptr_equal(start_next(w, 100), &w->b);
}

static void more_than_a_caller_may_have_waiting_are_refused(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 8; i++) {
		assert_int_equal(runs_admit(&w->runs, &w->a, 100), API_OK);
		(void)add(w, &w->a);
	}
	assert_int_equal(runs_admit(&w->runs, &w->a, 100), API_TOO_MANY_WAITING);
	assert_int_equal(runs_admit(&w->runs, &w->b, 100), API_OK);
	assert_int_equal(runs_admit(&w->runs, &w->b, 8), API_QUEUE_FULL);
}

static void no_run_waits_longer_than_the_limit(void **state)
{
	struct world *w = *state;
	uint64_t wait_ms = 0;

	assert_null(runs_overdue(&w->runs, 0, &wait_ms));
	assert_int_equal(wait_ms, UINT64_MAX);
	struct run *first = add_at(w, &w->a, "first", 100),
		   *second = add_at(w, &w->b, "second", 300);
	assert_null(runs_overdue(&w->runs, 350, &wait_ms));
	assert_int_equal(wait_ms, 250);
	assert_ptr_equal(runs_overdue(&w->runs, 600, &wait_ms), first);
	runs_drop(&w->runs, first);
	assert_null(runs_overdue(&w->runs, 600, &wait_ms));
	assert_int_equal(wait_ms, 200);
	/* a new configuration lets later ones wait for less */
	second->queued_until_ms = 900;
	struct run *third = add_at(w, &w->a, "third", 200);
	assert_ptr_equal(runs_overdue(&w->runs, 700, &wait_ms), third);
}

/* --- what is remembered ------------------------------------------------------------ */

static void a_caller_does_not_find_the_runs_of_others(void **state)
{
	struct world *w = *state;
	struct run *run = add_at(w, &w->a, "same", 0);

	assert_ptr_equal(runs_find(&w->runs, "uid:1", "same"), run);
	assert_null(runs_find(&w->runs, "uid:2", "same"));
	runs_finish(&w->runs, run, 1);
	assert_ptr_equal(runs_find(&w->runs, "uid:1", "same"), run);
}

static void of_two_with_one_id_the_newer_is_found(void **state)
{
	struct world *w = *state;

	runs_finish(&w->runs, add_at(w, &w->a, "again", 0), 1);
	struct run *newer = add_at(w, &w->a, "again", 1);
	assert_ptr_equal(runs_find(&w->runs, "uid:1", "again"), newer);
	runs_finish(&w->runs, newer, 2);
	assert_ptr_equal(runs_find(&w->runs, "uid:1", "again"), newer);
}

static void a_caller_with_many_runs_evicts_only_its_own(void **state)
{
	struct world *w = *state;

	runs_finish(&w->runs, add_at(w, &w->b, "precious", 0), 1);
	for (int i = 0; i < MANY; i++)
		runs_finish(&w->runs, add(w, &w->a), 1);
	assert_non_null(runs_find(&w->runs, "uid:2", "precious"));
	assert_int_equal(w->runs.counts[RUN_FINISHED], RUNS_OF_A_CALLER_MAX + 1);
	assert_null(runs_find(&w->runs, "uid:1", "run-0"));
	assert_non_null(runs_find(&w->runs, "uid:1", "run-999"));
}

static void many_callers_together_are_bounded(void **state)
{
	struct world *w = *state;
	struct account account = { .rights = &w->rights };

	for (int i = 0; i < 2 * RUNS_REMEMBERED_MAX; i++) {
		(void)snprintf(account.name, sizeof(account.name), "uid:%d", i % 40);
		runs_finish(&w->runs, add(w, &account), 1);
	}
	assert_int_equal(w->runs.counts[RUN_FINISHED], RUNS_REMEMBERED_MAX);
}

static void runs_that_share_a_gate_start_as_it_allows(void **state)
{
	struct world *w = *state;
	struct run_gate gate = { .most = 1 };
	struct run_order order = {
		.job.id = "first", .profile = "python", .account = &w->a, .gate = &gate
	};
	struct run *first = runs_add(&w->runs, &order, 500, 0);
	(void)snprintf(order.job.id, sizeof(order.job.id), "second");
	struct run *second = runs_add(&w->runs, &order, 500, 0);
	struct run *other = add(w, &w->a);

	runs_start(&w->runs, runs_next(&w->runs, 10), 1);
	assert_int_equal(first->state, RUN_RUNNING);
	assert_ptr_equal(runs_next(&w->runs, 10), other); /* it waits for nobody */
	runs_start(&w->runs, other, 1);
	assert_null(runs_next(&w->runs, 10));
	runs_finish(&w->runs, first, 2);
	assert_int_equal(gate.running, 0);
	assert_ptr_equal(runs_next(&w->runs, 10), second);
	runs_finish(&w->runs, second, 3);
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		ROW(a_run_is_counted_with_its_caller_while_it_lives),
		ROW(a_queued_run_can_finish_and_can_be_dropped),
		ROW(an_id_is_in_use_while_its_callers_run_lives),
		ROW(callers_take_turns_regardless_of_their_queue_length),
		ROW(the_caller_whose_last_start_is_longest_ago_is_next),
		ROW(a_callers_runs_start_in_the_order_they_came),
		ROW(no_more_run_at_once_than_may),
		ROW(a_caller_at_its_limit_does_not_delay_others),
		ROW(more_than_a_caller_may_have_waiting_are_refused),
		ROW(no_run_waits_longer_than_the_limit),
		ROW(a_caller_does_not_find_the_runs_of_others),
		ROW(of_two_with_one_id_the_newer_is_found),
		ROW(a_caller_with_many_runs_evicts_only_its_own),
		ROW(many_callers_together_are_bounded),
		ROW(runs_that_share_a_gate_start_as_it_allows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
