/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a program at a service: hostile events, and how the service takes the answers. */
#include "runtime/front/mcp/mcp_remote.c"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <sys/socket.h>

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "tests/temp_dir.h"

/* The service is a socket that this test reads; the broker has no tools. */
struct fixture {
	char socket[sizeof(temp_dir) + 8];
	int listen_fd;
	struct loop loop;
	struct broker broker;
	struct mcp_request request;
	struct mcp_run run;
	struct far_calls calls;
	struct cj_error err;
};

static int open_fixture(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct sockaddr_un address;

	assert_non_null(f);
	assert_int_equal(temp_dir_make(state), 0);
	(void)snprintf(f->socket, sizeof(f->socket), "%s/s", temp_dir);
	assert_int_equal(remote_link_address(f->socket, &address, &f->err), 0);
	f->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(f->listen_fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(f->listen_fd, 4), 0);
	f->loop = LOOP_NULL;
	assert_int_equal(loop_open(&f->loop, &f->err), 0);
	f->broker.loop = &f->loop;
	(void)snprintf(f->run.id, sizeof(f->run.id), "RUN");
	f->run.request = &f->request;
	far_calls_open(&f->calls, &f->loop, f->socket, &f->broker, &f->run);
	*state = f;
	return 0;
}

static int close_fixture(void **state)
{
	struct fixture *f = *state;

	far_calls_close(&f->calls);
	loop_close(&f->loop);
	cj_close(&f->listen_fd);
	free(f);
	return temp_dir_remove(state);
}

static int take(struct fixture *f, const char *event)
{
	char line[512];
	const int size = snprintf(line, sizeof(line), "%s", event);

	f->err = (struct cj_error){ 0 };
	return far_calls_take(&f->calls, line, (size_t)size, &f->err);
}

/* Receives one request, and replies to it. */
static void reply(struct fixture *f, const char *target, const char *body, const char *status)
{
	char text[4096];
	auto_fd int fd = accept(f->listen_fd, NULL, NULL);
	const ssize_t got = read(fd, text, sizeof(text) - 1);

	assert_true(got > 0);
	text[got] = '\0';
	assert_int_equal(strncmp(text, target, strlen(target)), 0);
	assert_non_null(strstr(text, body));
	const int size =
	    snprintf(text, sizeof(text), "HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n", status);
	assert_int_equal(write(fd, text, (size_t)size), size);
	assert_int_equal(loop_turn(&f->loop, -1, &f->err), 0);
}

#define CALL(id) "{\"type\":\"call\",\"call\":" id ",\"name\":\"a.b\",\"arguments\":{}}"
#define FIRST    "POST /v1/runs/RUN/calls/1 HTTP/1.1\r\n"
#define NO_TOOL  "\r\n\r\n{\"error\":{\"message\":\"there is no such tool; "

static void an_answer_is_posted_and_the_next_one_waits_for_it(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(take(f, CALL("1")), 0);
	assert_int_equal(take(f, CALL("2")), 0);
	reply(f, FIRST, NO_TOOL, "204 No Content");
	reply(f, "POST /v1/runs/RUN/calls/2 ", NO_TOOL, "409 Conflict");
	assert_true(TAILQ_EMPTY(&f->calls.answers.list));
	assert_int_equal(call_answers_tick(&f->calls.answers, clock_ms()), -1);
}

static void an_answer_of_an_exec_goes_to_the_exec(void **state)
{
	struct fixture *f = *state;

	far_calls_close(&f->calls);
	(void)snprintf(f->request.session, sizeof(f->request.session), "S");
	far_calls_open(&f->calls, &f->loop, f->socket, &f->broker, &f->run);
	assert_int_equal(take(f, CALL("7")), 0);
	reply(f, "POST /v1/sessions/S/execs/RUN/calls/7 ", NO_TOOL, "404 Not Found");
	assert_true(TAILQ_EMPTY(&f->calls.answers.list));
}

static void a_service_without_room_is_asked_again_when_it_says(void **state)
{
	struct fixture *f = *state;
	const uint64_t now_ms = clock_ms();

	assert_int_equal(take(f, CALL("1")), 0);
	reply(f, FIRST, NO_TOOL, "503 Service Unavailable\r\nRetry-After: 9999");
	const int wait_ms = call_answers_tick(&f->calls.answers, now_ms);
	assert_true(wait_ms >= 60000 && wait_ms < 9999000);
	assert_int_equal(call_answers_tick(&f->calls.answers, f->calls.answers.retry_at_ms), -1);
	reply(f, FIRST, NO_TOOL, "204 No Content");
	assert_true(TAILQ_EMPTY(&f->calls.answers.list));
}

static void an_answer_that_is_refused_becomes_an_error_once(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(take(f, CALL("1")), 0);
	reply(f, FIRST, NO_TOOL, "413 Content Too Large");
	reply(f, FIRST, "the service does not take the answer of ", "400 Bad Request");
	assert_true(TAILQ_EMPTY(&f->calls.answers.list));
}

/* A service that never takes an answer. */
static void calls_without_end_are_refused(void **state)
{
	struct fixture *f = *state;
	char line[128];
	uint64_t id = 0;

	do
		(void)snprintf(line, sizeof(line),
			       "{\"type\":\"call\",\"call\":%u,\"name\":\"a.b\",\"arguments\":{}}",
			       (unsigned)++id);
	while (id < 1000 && take(f, line) == 0);
	assert_int_equal(id, CALLS_OUTSTANDING_MAX + 2);
	assert_non_null(strstr(f->err.msg, "too many calls"));
	/* the answer of a call that has ended makes room; the first one is under way */
	assert_int_equal(take(f, "{\"type\":\"answer\",\"call\":1,\"outcome\":\"timeout\"}"), 0);
	assert_true(take(f, line) < 0);
	assert_int_equal(take(f, "{\"type\":\"answer\",\"call\":2,\"outcome\":\"timeout\"}"), 0);
	assert_int_equal(take(f, line), 0);
}

static void an_event_that_no_service_sends_is_refused(void **state)
{
	static const char *const wrong[] = {
		CALL("0"),
		CALL("-1"),
		CALL("\"1\""),
		"{\"type\":\"call\",\"call\":1,\"name\":\"a.b\",\"arguments\":[]}",
		"{\"type\":\"call\",\"call\":1,\"name\":\"a.b\",\"arguments\":{}",
		"{\"type\":\"call\",\"call\":1,\"name\":\"a.b\",\"arguments\":{},\"more\":1}",
		"{\"type\":\"call\",\"call\":1,\"name\":5,\"arguments\":{}}",
		"{\"type\":\"call\",\"call\":1,\"arguments\":{}}",
		"{\"type\":\"answer\",\"call\":1",
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_true(take(f, wrong[i]) < 0);
	assert_true(TAILQ_EMPTY(&f->calls.answers.list));
	assert_int_equal(take(f, CALL("5")), 0);
	assert_true(take(f, CALL("5")) < 0);
	assert_true(take(f, CALL("4")) < 0);
	/* of a call that was never made, or has its answer */
	assert_int_equal(take(f, "{\"type\":\"answer\",\"call\":9,\"outcome\":\"timeout\"}"), 0);
	assert_int_equal(take(f, "{\"type\":\"answer\"}"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_answer_is_posted_and_the_next_one_waits_for_it),
		TEST(an_answer_of_an_exec_goes_to_the_exec),
		TEST(a_service_without_room_is_asked_again_when_it_says),
		TEST(an_answer_that_is_refused_becomes_an_error_once),
		TEST(calls_without_end_are_refused),
		TEST(an_event_that_no_service_sends_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
