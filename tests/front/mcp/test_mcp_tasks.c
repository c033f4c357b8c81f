/* SPDX-License-Identifier: Apache-2.0 */
/* A task is found by its caller only, and results that nobody fetches are limited. */
#include "runtime/front/mcp/calls/mcp_tasks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/scope.h"
#include "runtime/front/mcp/calls/mcp_call.h"

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
	const char *text = NULL;
	struct cj_error err = { 0 };
	size_t size = 0;

	mcp_tasks_answer(all, caller, &asked, w);
	assert_int_equal(json_writer_take(w, &text, &size, &err), 0);
	return strstr(text, wanted) != NULL;
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
	size_t size = MCP_TASKS_BYTES / 2 + 1;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_task_is_shown_to_its_caller_only),
		cmocka_unit_test(a_call_without_an_answer_has_failed_or_was_cancelled),
		cmocka_unit_test(the_oldest_results_of_a_caller_are_discarded),
		cmocka_unit_test(large_results_are_discarded_but_the_last_one_is_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
