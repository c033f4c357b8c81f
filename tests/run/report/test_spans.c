/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: getrandom */
/* The spans of a run: their ids, times, status and attributes, and how many there are. */
#include "runtime/run/report/spans.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/base/arena.h"
#include "runtime/base/clock.h"
#include "tests/json_file.h"
#include "tests/temp_dir.h"

#define TRACE_ID  "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN_ID   "00f067aa0ba902b7"
#define PARENT_ID "b7ad6b7169203331"

static bool has_no_random;
ssize_t __real_getrandom(void *to, size_t size, unsigned flags);
ssize_t __wrap_getrandom(void *to, size_t size, unsigned flags);
ssize_t __wrap_getrandom(void *to, size_t size, unsigned flags)
{
	if (!has_no_random)
		return __real_getrandom(to, size, flags);
	errno = ENOSYS;
	return -1;
}

static struct run_span a_run(void)
{
	return (struct run_span){
		.kind = "run",
		.traceparent = "00-" TRACE_ID "-" SPAN_ID "-01",
		.parent = PARENT_ID,
		.id = "the-run",
		.profile = "python",
		.session = "",
		.error_stage = "",
		.totals.status = STATUS_EXITED,
		.totals.usage = { .wall_ms = 7, .has_pids_peak = true, .pids_peak = 3 },
		.totals.stdout_bytes = UINT64_MAX,
		.totals.denied_syscalls = 2,
	};
}

/* --- the line that was written ------------------------------------------------------ */

/* Appends the line to a new file, and reads it. */
static const struct json_node *line_of(const struct spans *s, const struct run_span *run,
				       struct arena *a)
{
	struct line_file f = LINE_FILE_NULL;
	struct cj_error err = { 0 };
	const struct json_node *root = NULL;
	char path[128], *text = NULL;
	size_t size = 0;

	(void)snprintf(path, sizeof(path), "%s/spans", temp_dir);
	(void)remove(path);
	assert_int_equal(line_file_open(path, SPANS_FILE_MODE, &f, &err), 0);
	if (spans_write(s, run, &f, &err) < 0)
		fail_msg("%s", err.msg);
	line_file_close(&f);
	assert_int_equal(fd_read_file(AT_FDCWD, path, 1 << 20, a, &text, &size, &err), 0);
	assert_true(size > 0 && memchr(text, '\n', size) == text + size - 1);
	if (json_parse(path, text, size, a, &root, &err) < 0)
		fail_msg("%s", err.msg);
	return root;
}

/* The only member of an array that is a member. */
static const struct json_node *only(const struct json_node *object, const char *key)
{
	const struct json_node *list = json_get_typed(object, key, JSON_ARRAY);

	assert_non_null(list);
	assert_int_equal(list->count, 1);
	return list->child;
}

static const struct json_node *spans_of(const struct json_node *line)
{
	const struct json_node *scope = only(only(line, "resourceSpans"), "scopeSpans");

	assert_string_equal(json_get_text(json_get(scope, "scope"), "name"), "cejail");
	return json_get_typed(scope, "spans", JSON_ARRAY);
}

/* The value of an attribute, or NULL. */
static const struct json_node *attribute(const struct json_node *span, const char *name)
{
	const struct json_node *list = json_get_typed(span, "attributes", JSON_ARRAY);

	for (const struct json_node *m = list->child; m; m = m->next)
		if (strcmp(json_get_text(m, "key"), name) == 0)
			return json_get(m, "value")->child;
	return NULL;
}

static void assert_attribute(const struct json_node *span, const char *name, const char *type,
			     const char *value)
{
	const struct json_node *found = attribute(span, name);

	if (!found)
		fail_msg("there is no %s", name);
	assert_string_equal(found->key, type);
	assert_int_equal(found->type, JSON_STRING); /* 64-bit integers, too */
	assert_string_equal(found->text, value);
}

static void assert_status(const struct json_node *span, const char *code, const char *message)
{
	const struct json_node *status = json_get_typed(span, "status", JSON_OBJECT);

	assert_string_equal(json_get_typed(status, "code", JSON_NUMBER)->text, code);
	if (message)
		assert_string_equal(json_get_text(status, "message"), message);
	else
		assert_null(json_get(status, "message"));
}

static uint64_t time_of(const struct json_node *span, const char *key)
{
	const char *text = json_get_text(span, key);
	unsigned long long ns = 0;

	assert_non_null(text);
	assert_int_equal(sscanf(text, "%llu", &ns), 1);
	return ns;
}

/* --- what it has -------------------------------------------------------------------- */

static void a_run_is_a_span_below_that_of_its_caller(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct spans s;
	struct run_span run = a_run();
	const uint64_t before_ns = clock_epoch_ms() * 1000000;

	spans_begin(&s, clock_us());
	const struct json_node *line = line_of(&s, &run, &a);
	const struct json_node *span =
	    only(only(only(line, "resourceSpans"), "scopeSpans"), "spans");
	assert_attribute(json_get(only(line, "resourceSpans"), "resource"), "service.name",
			 "stringValue", "cejail");
	assert_string_equal(json_get_text(span, "traceId"), TRACE_ID);
	assert_string_equal(json_get_text(span, "spanId"), SPAN_ID);
	assert_string_equal(json_get_text(span, "parentSpanId"), PARENT_ID);
	assert_string_equal(json_get_text(span, "name"), "run python");
	assert_string_equal(json_get_typed(span, "kind", JSON_NUMBER)->text, "1");
	/* the clock of the wall may be set back, but not by years */
	assert_true(time_of(span, "startTimeUnixNano") > before_ns / 2);
	assert_true(time_of(span, "startTimeUnixNano") <= time_of(span, "endTimeUnixNano"));
	assert_attribute(span, "cejail.id", "stringValue", "the-run");
	assert_attribute(span, "cejail.status", "stringValue", "exited");
	assert_attribute(span, "cejail.exit_code", "intValue", "0");
	assert_attribute(span, "cejail.wall_ms", "intValue", "7");
	assert_attribute(span, "cejail.pids_peak", "intValue", "3");
	assert_attribute(span, "cejail.stdout_bytes", "intValue", "18446744073709551615");
	assert_attribute(span, "cejail.denied_syscalls", "intValue", "2");
	assert_attribute(span, "cejail.calls", "intValue", "0");
	static const char *const absent[] = { "cejail.signal", "cejail.session",
					      "cejail.error_stage", "cejail.memory_peak_bytes",
					      "cejail.calls_left_out" };
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
		assert_null(attribute(span, absent[i]));
	assert_int_equal(json_get(attribute(span, "cejail.limits_hit"), "values")->count, 0);
	assert_status(span, "1", NULL);
	spans_fini(&s);
}

static void a_run_without_a_caller_is_the_root_of_its_trace(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct spans s;
	struct run_span run = a_run();

	run.parent = "";
	spans_begin(&s, clock_us());
	assert_null(json_get(spans_of(line_of(&s, &run, &a))->child, "parentSpanId"));
}

static void a_run_that_reached_limits_names_them(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct spans s;
	struct run_span run = a_run();

	run.kind = "exec";
	run.session = "the-session";
	run.totals.status = STATUS_TIMEOUT;
	run.totals.exit_code = -1;
	run.totals.signal = 9;
	run.totals.limits_hit = 1 << LIMIT_WALL | 1 << LIMIT_OUTPUT;
	spans_begin(&s, clock_us());
	const struct json_node *span = spans_of(line_of(&s, &run, &a))->child;
	const struct json_node *hit = json_get(attribute(span, "cejail.limits_hit"), "values");
	assert_string_equal(json_get_text(span, "name"), "exec python");
	assert_attribute(span, "cejail.session", "stringValue", "the-session");
	assert_attribute(span, "cejail.signal", "intValue", "9");
	assert_null(attribute(span, "cejail.exit_code"));
	assert_int_equal(hit->count, 2);
	assert_string_equal(json_get_text(hit->child, "stringValue"), limit_names[LIMIT_WALL]);
	assert_string_equal(json_get_text(hit->child->next, "stringValue"),
			    limit_names[LIMIT_OUTPUT]);
	assert_status(span, "2", "timeout");
}

static void an_exit_code_and_a_failed_set_up_are_errors(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct spans s;
	struct run_span run = a_run();

	spans_begin(&s, clock_us());
	run.totals.exit_code = 3;
	assert_status(spans_of(line_of(&s, &run, &a))->child, "2", "exited");
	run.totals.exit_code = -1;
	run.totals.status = STATUS_SETUP_ERROR;
	run.error_stage = "cgroup";
	const struct json_node *span = spans_of(line_of(&s, &run, &a))->child;
	assert_status(span, "2", "setup_error");
	assert_attribute(span, "cejail.error_stage", "stringValue", "cgroup");
}

static void a_call_is_a_span_below_its_run(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct spans s;
	struct run_span run = a_run();

	/* the second would begin before its run */
	spans_begin(&s, clock_us() - 5000000);
	spans_add_call(&s, "github.search", CALL_ANSWERED, 2000);
	spans_add_call(&s, "add", CALL_TIMED_OUT, 3600000);
	spans_add_call(&s, "MARKED", CALL_REFUSED, 0);
	const struct json_node *list = spans_of(line_of(&s, &run, &a)), *span = list->child;
	assert_int_equal(list->count, 3);
	assert_attribute(span, "cejail.calls", "intValue", "2");
	assert_attribute(span, "cejail.calls_refused", "intValue", "1");
	const struct json_node *good = span->next, *late = good->next;
	assert_string_equal(json_get_text(good, "traceId"), TRACE_ID);
	assert_string_equal(json_get_text(good, "parentSpanId"), SPAN_ID);
	assert_string_equal(json_get_text(good, "name"), "call github.search");
	assert_attribute(good, "cejail.tool", "stringValue", "github.search");
	assert_attribute(good, "cejail.outcome", "stringValue", "answered");
	assert_true(time_of(good, "endTimeUnixNano") - time_of(good, "startTimeUnixNano") ==
		    2000000000);
	assert_status(good, "1", NULL);
	assert_string_not_equal(json_get_text(good, "spanId"), json_get_text(late, "spanId"));
	assert_int_equal(strlen(json_get_text(late, "spanId")), 16);
	assert_int_equal(strspn(json_get_text(late, "spanId"), "0123456789abcdef"), 16);
	assert_true(time_of(late, "startTimeUnixNano") == time_of(span, "startTimeUnixNano"));
	assert_true(time_of(late, "endTimeUnixNano") <= time_of(span, "endTimeUnixNano"));
	assert_status(late, "2", "timeout");
	spans_fini(&s);
}

static void more_calls_than_a_line_has_are_counted(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct spans s;
	struct run_span run = a_run();

	spans_begin(&s, clock_us());
	for (int i = 0; i < SPANS_CALLS_MAX + 5; i++)
		spans_add_call(&s, "add", CALL_ANSWERED, 0);
	const struct json_node *list = spans_of(line_of(&s, &run, &a));
	assert_int_equal(list->count, 1 + SPANS_CALLS_MAX);
	assert_attribute(list->child, "cejail.calls", "intValue", "261");
	assert_attribute(list->child, "cejail.calls_left_out", "intValue", "5");
	spans_fini(&s);
}

static void a_call_without_an_id_is_left_out(void **state)
{
	(void)state;
	struct spans s;

	spans_begin(&s, clock_us());
	has_no_random = true;
	spans_add_call(&s, "add", CALL_ANSWERED, 0);
	has_no_random = false;
	assert_int_equal(s.count, 0);
	assert_true(s.left_out == 1);
	spans_fini(&s);
}

static void before_the_beginning_nothing_is_recorded(void **state)
{
	(void)state;
	struct spans s = { 0 };

	spans_add_call(&s, "add", CALL_ANSWERED, 0);
	spans_add_call(&s, "add", CALL_REFUSED, 0);
	assert_true(s.count + s.left_out + s.refused == 0 && !s.calls);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_is_a_span_below_that_of_its_caller),
		cmocka_unit_test(a_run_without_a_caller_is_the_root_of_its_trace),
		cmocka_unit_test(a_run_that_reached_limits_names_them),
		cmocka_unit_test(an_exit_code_and_a_failed_set_up_are_errors),
		cmocka_unit_test(a_call_is_a_span_below_its_run),
		cmocka_unit_test(more_calls_than_a_line_has_are_counted),
		cmocka_unit_test(a_call_without_an_id_is_left_out),
		cmocka_unit_test(before_the_beginning_nothing_is_recorded),
	};
	return cmocka_run_group_tests(tests, temp_dir_make, temp_dir_remove);
}
