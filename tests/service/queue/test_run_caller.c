/* SPDX-License-Identifier: Apache-2.0 */
/* What the caller of a run gets of its events, and what becomes of a call that it cannot get. */
/* WRAP: slog */
#include "runtime/service/queue/run_caller.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <sys/socket.h>

#include "runtime/base/scope.h"
#include "runtime/service/http/http_parts.h"
#include "runtime/service/log/slog.h"
#include "runtime/service/queue/run_calls.h"
#include "runtime/service/queue/runs.h"
#include "runtime/service/worker/worker_conn.h"

#define FULL      ((size_t)HTTP_BYTES_MAX) /* held elsewhere: no room for more than HTTP_SMALL */
#define CALL_SIZE ((size_t)HTTP_SMALL + 100)

struct world {
	struct loop loop;
	struct http http;
	struct exchange stream, other;
	struct worker_conn conn;
	struct run run;
	int worker_fd;
	unsigned warnings;
	char warning[512];
};
static struct world w;

void __wrap_slog(enum slog_level level, const char *request_id, const char *fmt, ...);
__attribute__((format(printf, 3, 4))) void __wrap_slog(enum slog_level level,
						       const char *request_id, const char *fmt, ...)
{
	va_list args;

	(void)request_id;
	assert_int_equal(level, SLOG_WARNING);
	va_start(args, fmt);
	(void)vsnprintf(w.warning, sizeof(w.warning), fmt, args);
	va_end(args);
	w.warnings++;
}

static void ignore_end(void *context, const struct call_record *call)
{
	(void)context, (void)call;
}

static int set_up(void **state)
{
	struct cj_error err = { 0 };
	int ends[2];

	(void)state;
	w = (struct world){ .http.body_max = 1u << 20 };
	LIST_INSERT_HEAD(&w.http.exchanges, &w.other, link);
	LIST_INSERT_HEAD(&w.http.exchanges, &w.stream, link);
	w.stream = (struct exchange){ .http = &w.http, .link = w.stream.link };
	w.stream.stream.is_on = true;
	w.conn = (struct worker_conn){ .loop = &w.loop, .watch = WATCH_NULL };
	w.run = (struct run){ .conn = &w.conn, .ops.exchange = &w.stream };
	w.run.order.job.wants_events = true;
	(void)snprintf(w.run.order.job.id, sizeof(w.run.order.job.id), "mine");
	assert_int_equal(loop_open(&w.loop, &err), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	w.worker_fd = ends[1];
	const struct run_calls_ops ops = { ignore_end, NULL };
	assert_int_equal(run_calls_begin(&w.loop, ends[0], &ops, &w.run.calls, &err), 0);
	return 0;
}

static int tear_down(void **state)
{
	uint64_t last;

	(void)state;
	run_calls_end(&w.run.calls, &last);
	cj_close(&w.worker_fd);
	loop_close(&w.loop);
	byte_queue_fini(&w.stream.stream.queue);
	return 0;
}

/* Its worker tells of the call, and then comes its event, which is so large. */
static void call(unsigned id, size_t size)
{
	char begin[256];
	auto_free char *line = malloc(size + 1);

	assert_non_null(line);
	(void)snprintf(begin, sizeof(begin),
		       "{\"id\":%u,\"name\":\"a\",\"bytes\":8,\"sha256\":\"0\"}\n", id);
	assert_int_equal(write(w.worker_fd, begin, strlen(begin)), strlen(begin));
	memset(line, 'x', size);
	line[size] = '\0';
	int head = snprintf(line, size,
			    "{\"type\":\"call\",\"at_ms\":5,\"call\":%u,\"name\":\"a\","
			    "\"arguments\":{\"call\":9,\"x\":\"",
			    id);
	assert_in_range(head, 1, size - 4);
	line[head] = 'x';
	memcpy(line + size - 3, "\"}}", 3);
	run_caller_tell(&w.run, line, size);
}

static const char *heard(void)
{
	static char text[1024];
	ssize_t size = recv(w.worker_fd, text, sizeof(text) - 1, MSG_DONTWAIT);

	text[size > 0 ? size : 0] = '\0';
	return text;
}

static size_t unread(void)
{
	return byte_queue_size(&w.stream.stream.queue);
}

static void a_call_goes_to_a_slow_caller_beyond_the_limit_of_its_stream(void **state)
{
	static const char output[] = "{\"type\":\"stdout\",\"text\":\"x\"}";

	(void)state;
	unsigned id = 0;
	while (unread() <= HTTP_STREAM_MAX)
		call(++id, CALL_SIZE);
	assert_true(w.conn.is_paused);
	size_t before = unread();
	run_caller_tell(&w.run, output, sizeof(output) - 1);
	assert_true(unread() == before && w.run.dropped == 1);
	call(++id, 200);
	assert_true(unread() > before);
	assert_string_equal(heard(), "");
	assert_int_equal(w.warnings, 0);
}

static void a_call_without_room_fails_at_once(void **state)
{
	(void)state;
	w.other.body_held = FULL;
	call(7, CALL_SIZE);
	assert_int_equal(unread(), 0);
	assert_string_equal(
	    heard(),
	    "{\"id\":7,\"error\":{\"message\":\"the service has no room for this call\"}}\n");
	assert_non_null(strstr(w.warning, "run mine: call 7 fails"));
	assert_int_equal(run_calls_answer(w.run.calls, 7, "result", (struct blob){ "1", 1 }),
			 API_CALL_ENDED);
	assert_int_equal(w.run.dropped, 1);
}

static void the_next_call_is_told_when_there_is_room(void **state)
{
	(void)state;
	w.other.body_held = FULL;
	call(1, CALL_SIZE);
	call(2, CALL_SIZE);
	assert_non_null(strstr(heard(), "{\"id\":2,\"error\""));
	assert_int_equal(w.warnings, 1);
	w.other.body_held = 0;
	call(3, CALL_SIZE);
	assert_string_equal(heard(), "");
	assert_true(unread() > CALL_SIZE);
	assert_int_equal(run_calls_answer(w.run.calls, 3, "result", (struct blob){ "1", 1 }),
			 API_OK);
}

static void a_call_of_a_caller_that_has_gone_fails_at_once(void **state)
{
	(void)state;
	w.run.ops.exchange = NULL;
	call(1, 200);
	assert_string_equal(heard(),
			    "{\"id\":1,\"error\":{\"message\":\"the caller has gone\"}}\n");
	assert_int_equal(w.warnings, 0);
}

static void other_events_without_room_are_counted(void **state)
{
	static char line[CALL_SIZE + HTTP_STREAM_MAX] = "{\"type\":\"stdout\",\"call\":1";

	(void)state;
	memset(line + strlen(line), ' ', sizeof(line) - strlen(line) - 1);
	run_caller_tell(&w.run, line, sizeof(line) - 1);
	assert_int_equal(w.run.dropped, 1);
	assert_string_equal(heard(), "");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_call_goes_to_a_slow_caller_beyond_the_limit_of_its_stream),
		TEST(a_call_without_room_fails_at_once),
		TEST(the_next_call_is_told_when_there_is_room),
		TEST(a_call_of_a_caller_that_has_gone_fails_at_once),
		TEST(other_events_without_room_are_counted),
	};
	return cmocka_run_group_tests_name("run_caller", tests, NULL, NULL);
}
