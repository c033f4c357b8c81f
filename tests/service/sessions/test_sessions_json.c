/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions and execs as callers read them. */
#include "runtime/service/sessions/sessions.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/base/scope.h"

static struct session_entry an_entry(void)
{
	return (struct session_entry){ .id = "s1",
				       .profile = "python",
				       .state = ENTRY_LIVE,
				       .lease_ms = 60000,
				       .idle_ms = 30000,
				       .memory_bytes = 1024,
				       .memory = { .bytes = 512 },
				       .lease_until_ms = 61000,
				       .idle_until_ms = 500,
				       .created_ms = 1700000000000 };
}

/* Lives as long as the writer. */
static const char *json_of(struct json_writer *w, const struct session_entry *e)
{
	const struct sessions_now now = { .mono_ms = 1000, .epoch_ms = 1700000001000 };
	struct cj_error err = { 0 };
	struct blob text = { 0 };

	assert_non_null(w);
	sessions_json_put(w, e, &now);
	assert_int_equal(json_writer_take(w, &text, &err), 0);
	return text.bytes;
}

static void assert_session(const struct session_entry *e, const char *expected)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);

	assert_string_equal(json_of(w, e), expected);
}

static void a_live_session_has_its_times_and_an_ended_one_its_reason(void **state)
{
	struct session_entry e = an_entry();
	struct session_network closed = { .rules.is_list = true };
	(void)state;

	e.network = &closed;
	assert_session(&e,
		       "{\"id\":\"s1\",\"profile\":\"python\",\"context\":\"none\","
		       "\"state\":\"live\",\"created_at\":\"2023-11-14T22:13:20.000Z\","
		       "\"lease_until\":\"2023-11-14T22:14:21.000Z\","
		       "\"idle_until\":\"2023-11-14T22:13:21.000Z\","
		       "\"lease_ms\":60000,\"idle_ms\":30000,\"memory_limit_bytes\":1024,"
		       "\"memory_reserved_bytes\":512,\"network\":{\"mode\":\"none\",\"allow\":[]},"
		       "\"execs\":0,\"isolated\":false}");
	e.state = ENTRY_ENDED;
	e.reason = SESSION_OOM;
	e.message = "why";
	e.ended_ms = 1700000002000;
	e.unfinished = 1;
	assert_session(&e, "{\"id\":\"s1\",\"profile\":\"python\",\"context\":\"none\","
			   "\"state\":\"ended\",\"reason\":\"oom\",\"message\":\"why\","
			   "\"ended_at\":\"2023-11-14T22:13:22.000Z\","
			   "\"created_at\":\"2023-11-14T22:13:20.000Z\","
			   "\"lease_ms\":60000,\"idle_ms\":30000,\"memory_limit_bytes\":1024,"
			   "\"execs\":1,\"isolated\":false}");
}

static void assert_network(const struct session_entry *e, const char *expected)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const char *text = json_of(w, e);

	if (!strstr(text, expected))
		fail_msg("%s has no %s", text, expected);
}

static void a_live_session_has_the_network_that_is_in_force(void **state)
{
	const char *first[] = { "a.example", "*.b.example:443" }, *second[] = { "8.8.8.8" };
	struct session_entry e = an_entry();
	struct session_network now = { 0 }, next = { .rules.is_list = true };
	(void)state;

	e.network = &now;
	assert_network(&e, "\"network\":{\"mode\":\"public\",\"allow\":[]}");
	now.rules.is_list = true;
	now.rules.allow = (struct strings){ .items = first, .count = 2 };
	assert_network(&e, "\"network\":{\"mode\":\"public\","
			   "\"allow\":[\"a.example\",\"*.b.example:443\"]}");
	now.rules.deny = (struct strings){ .items = second, .count = 1 };
	e.next_network = &next; /* its keeper has not loaded it */
	assert_network(&e, "\"*.b.example:443\"],\"deny\":[\"8.8.8.8\"]}");
	e.network = &next;
	assert_network(&e, "\"network\":{\"mode\":\"none\",\"allow\":[]}");
}

static void assert_exec(const struct exec_entry *x, const char *expected)
{
	size_t size = 0;
	auto_free char *text = sessions_json_exec(x, &size);

	assert_non_null(text);
	assert_int_equal(strlen(text), size);
	assert_string_equal(text, expected);
}

#define BEFORE                                                                                     \
	"{\"id\":\"x\",\"session\":\"s1\",\"state\":\"finished\",\"detached\":true,"               \
	"\"created_at\":\"2023-11-14T22:13:20.000Z\",\"ended_at\":\"2023-11-14T22:13:21.000Z\""

static void a_finished_exec_has_its_result_or_the_reason_why_there_is_none(void **state)
{
	struct session_entry e = an_entry();
	char result[] = "{\"a\":1}";
	struct exec_entry x = { .session = &e,
				.id = "x",
				.is_detached = true,
				.is_finished = true,
				.created_ms = 1700000000000,
				.ended_ms = 1700000001000,
				.has_summary = true,
				.status = STATUS_EXITED,
				.exit_code = 3,
				.error = API_OK,
				.result = result,
				.result_size = sizeof(result) - 1 };
	(void)state;

	assert_exec(&x, BEFORE ",\"status\":\"exited\",\"exit_code\":3,\"result\":{\"a\":1}}\n");
	x.result = NULL;
	x.result_size = 0;
	assert_exec(&x, BEFORE ",\"status\":\"exited\",\"exit_code\":3,\"result_dropped\":true}\n");
	x.has_summary = false;
	x.error = API_SESSION_ENDED;
	e.message = "it is over";
	assert_exec(&x, BEFORE ",\"error\":{\"code\":\"session_ended\","
			       "\"message\":\"it is over\"}}\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_live_session_has_its_times_and_an_ended_one_its_reason),
		cmocka_unit_test(a_live_session_has_the_network_that_is_in_force),
		cmocka_unit_test(a_finished_exec_has_its_result_or_the_reason_why_there_is_none),
	};
	return cmocka_run_group_tests_name("sessions_json", tests, NULL, NULL);
}
