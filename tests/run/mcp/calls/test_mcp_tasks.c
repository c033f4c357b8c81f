/* SPDX-License-Identifier: Apache-2.0 */
/* A task is found by its caller only, and results that nobody fetches are limited. */
#include "runtime/run/mcp/calls/mcp_tasks.h"
#include "runtime/run/report/result.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/run/mcp/calls/mcp_call.h"
#include "runtime/base/loop.h"

static const char answer[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"isError\":false}}";

static struct mcp_task *add(struct mcp_tasks *all, const char *caller, const char *id)
{
	static struct mcp_call call; /* nothing looks into it */
	struct mcp_task *t = mcp_tasks_add(all, caller, id, &call);

	assert_non_null(t);
	return t;
}

/* Does the answer to tasks/get of this caller have the text? */
static bool shows(struct mcp_tasks *all, const char *caller, const char *id, const char *wanted)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const struct mcp_asked asked = { .id = { MCP_ID_NUMBER, "1" },
					 .era = MCP_ERA_MODERN,
					 .task_method = MCP_TASK_GET,
					 .task = id };
	struct blob text = { 0 };
	struct cj_error err = { 0 };

	mcp_tasks_answer(all, caller, &asked, w);
	assert_int_equal(json_writer_take(w, &text, &err), 0);
	return strstr(text.bytes, wanted) != NULL;
}

static void a_task_is_shown_to_its_caller_only(void **state)
{
	struct mcp_tasks all = { 0 };
	struct mcp_task *t = add(&all, "one", "T");
	(void)state;

	assert_true(shows(&all, "one", "T", "\"status\":\"working\""));
	assert_true(shows(&all, "two", "T", "-32602"));
	mcp_task_end(&all, t, answer, sizeof(answer) - 1, false);
	assert_true(shows(&all, "one", "T", "\"status\":\"completed\""));
	assert_true(shows(&all, "one", "T", "\"result\":{\"isError\":false}"));
	assert_true(shows(&all, "two", "T", "-32602"));
	mcp_tasks_fini(&all);
}

static void a_call_without_an_answer_has_failed_or_was_cancelled(void **state)
{
	struct mcp_tasks all = { 0 };
	(void)state;

	mcp_task_end(&all, add(&all, "one", "F"), NULL, 0, false);
	mcp_task_end(&all, add(&all, "one", "C"), NULL, 0, true);
	assert_true(shows(&all, "one", "F", "\"status\":\"failed\""));
	assert_true(shows(&all, "one", "F", "\"error\":{\"code\":-32603"));
	assert_true(shows(&all, "one", "C", "\"status\":\"cancelled\""));
	mcp_tasks_fini(&all);
}

static void the_oldest_results_of_a_caller_are_discarded(void **state)
{
	struct mcp_tasks all = { 0 };
	char id[16];
	(void)state;

	mcp_task_end(&all, add(&all, "other", "O"), answer, sizeof(answer) - 1, false);
	(void)add(&all, "one", "working");
	for (int i = 0; i <= MCP_TASKS_MAX; i++) {
		(void)snprintf(id, sizeof(id), "T%d", i);
		mcp_task_end(&all, add(&all, "one", id), answer, sizeof(answer) - 1, false);
	}
	assert_true(shows(&all, "one", "T0", "-32602"));
	assert_true(shows(&all, "one", "T1", "completed"));
	assert_true(shows(&all, "one", "working", "working"));
	assert_true(shows(&all, "other", "O", "completed"));
	mcp_tasks_fini(&all);
}

static void large_results_are_discarded_but_the_last_one_is_kept(void **state)
{
	struct mcp_tasks all = { 0 };
	size_t size = KEPT_RESULTS_MAX / 2 + 1;
	auto_free char *large = malloc(size);
	(void)state;

	assert_non_null(large);
	memset(large, ' ', size);
	memcpy(large + size - sizeof(answer) + 1, answer, sizeof(answer) - 1);
	mcp_task_end(&all, add(&all, "one", "A"), large, size, false);
	mcp_task_end(&all, add(&all, "one", "B"), large, size, false);
	assert_true(shows(&all, "one", "A", "-32602"));
	assert_true(shows(&all, "one", "B", "completed"));
	mcp_tasks_fini(&all);
}

static void cancel(void *context, struct mcp_run *r)
{
	(void)r;
	++*(int *)context;
}

/* Ends at once, as a call that waits in the queue does. */
static void cancel_and_end(void *context, struct mcp_run *r)
{
	struct mcp_tasks *all = context;
	struct mcp_call *call = watch_owner(r, struct mcp_call, run);
	struct mcp_task *t;

	LIST_FOREACH(t, &all->list, link)
	if (t->call == call)
		break;
	mcp_task_end(all, t, NULL, 0, true);
}

static void a_task_that_its_client_has_not_asked_for_is_cancelled(void **state)
{
	int count = 0;
	const struct mcp_place place = { .context = &count, .cancel = cancel };
	struct mcp_call calls[] = { { .place = &place }, { .place = &place } };
	struct mcp_tasks all = { 0 };
	struct mcp_task *quiet = mcp_tasks_add(&all, "one", "Q", &calls[0]);
	struct mcp_task *asked = mcp_tasks_add(&all, "one", "A", &calls[1]);
	(void)state;

	assert_int_equal(mcp_tasks_tick(&all, quiet->asked_ms), MCP_TASK_ABANDONED_MS);
	quiet->asked_ms = asked->asked_ms = 0;
	assert_true(shows(&all, "one", "A", "working"));
	assert_true(shows(&all, "two", "Q", "-32602")); /* of no use to the task */
	assert_int_equal(mcp_tasks_tick(&all, MCP_TASK_ABANDONED_MS - 1), 1);
	assert_int_equal(count, 0);
	assert_true(mcp_tasks_tick(&all, MCP_TASK_ABANDONED_MS) > 0);
	assert_true(calls[0].is_cancelled && !calls[1].is_cancelled);
	(void)mcp_tasks_tick(&all, MCP_TASK_ABANDONED_MS);
	assert_int_equal(count, 1); /* not again while it ends */
	mcp_tasks_fini(&all);
}

static void the_end_of_an_abandoned_task_may_discard_others(void **state)
{
	struct mcp_tasks all = { 0 };
	const struct mcp_place place = { .context = &all, .cancel = cancel_and_end };
	struct mcp_call calls[MCP_TASKS_MAX + 2];
	struct mcp_task *t;
	char id[16];
	(void)state;

	for (size_t i = 0; i < MCP_TASKS_MAX + 2; i++) {
		calls[i] = (struct mcp_call){ .place = &place };
		(void)snprintf(id, sizeof(id), "T%zu", i);
		assert_non_null(mcp_tasks_add(&all, "one", id, &calls[i]));
	}
	(void)mcp_tasks_tick(&all, clock_ms() + MCP_TASK_ABANDONED_MS);
	LIST_FOREACH(t, &all.list, link)
	assert_null(t->call);
	assert_true(shows(&all, "one", "T1", "-32602"));
	assert_true(shows(&all, "one", "T2", "cancelled"));
	mcp_tasks_fini(&all);
}

static void a_result_is_awaited_for_two_polls_unless_it_is_fetched(void **state)
{
	struct mcp_tasks all = { 0 };
	struct mcp_task *t = add(&all, "one", "T");
	(void)state;

	assert_false(mcp_tasks_are_awaited(&all, t->begun_ms));
	mcp_task_end(&all, add(&all, "one", "C"), NULL, 0, true); /* its client knows */
	assert_false(mcp_tasks_are_awaited(&all, t->begun_ms));
	assert_true(shows(&all, "one", "T", "working"));
	mcp_task_end(&all, t, answer, sizeof(answer) - 1, false);
	assert_true(mcp_tasks_are_awaited(&all, t->ended_ms + 2 * MCP_TASK_POLL_MS - 1));
	assert_false(mcp_tasks_are_awaited(&all, t->ended_ms + 2 * MCP_TASK_POLL_MS));
	assert_true(shows(&all, "one", "T", "completed"));
	assert_false(mcp_tasks_are_awaited(&all, t->ended_ms));
	mcp_tasks_fini(&all);
}

static void an_old_result_is_discarded_though_nobody_asks(void **state)
{
	struct mcp_tasks all = { 0 };
	struct mcp_task *t = add(&all, "one", "T");
	uint64_t ended_ms;
	(void)state;

	mcp_task_end(&all, t, answer, sizeof(answer) - 1, false);
	ended_ms = t->ended_ms;
	assert_int_equal(mcp_tasks_tick(&all, ended_ms + MCP_TASK_KEEP_MS - 1), 1);
	assert_false(LIST_EMPTY(&all.list));
	assert_int_equal(mcp_tasks_tick(&all, ended_ms + MCP_TASK_KEEP_MS), -1);
	assert_true(LIST_EMPTY(&all.list));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_task_is_shown_to_its_caller_only),
		cmocka_unit_test(a_call_without_an_answer_has_failed_or_was_cancelled),
		cmocka_unit_test(the_oldest_results_of_a_caller_are_discarded),
		cmocka_unit_test(large_results_are_discarded_but_the_last_one_is_kept),
		cmocka_unit_test(a_task_that_its_client_has_not_asked_for_is_cancelled),
		cmocka_unit_test(the_end_of_an_abandoned_task_may_discard_others),
		cmocka_unit_test(a_result_is_awaited_for_two_polls_unless_it_is_fetched),
		cmocka_unit_test(an_old_result_is_discarded_though_nobody_asks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
