/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a program to its tools: what reaches the caller, and what only the program. */
/* WRAP: clock_ms recv send */
#include "runtime/jail/supervise/calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/jail/outcome.h"
#include "tests/forked.h"

static uint64_t now_ms;

uint64_t __wrap_clock_ms(void);
uint64_t __wrap_clock_ms(void)
{
	return now_ms;
}

static int nreceived, nsent; /* calls of recv(2) and send(2) */

ssize_t __real_recv(int fd, void *bytes, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags)
{
	nreceived++;
	return __real_recv(fd, bytes, size, flags);
}

ssize_t __real_send(int fd, const void *bytes, size_t size, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags)
{
	nsent++;
	return __real_send(fd, bytes, size, flags);
}

/* One run: its supervisor's side, and our two ends. */
struct side {
	int program_fd, caller_fd;
	struct tool_list tools;
	struct program program;
	struct jail_io io;
	struct calls *calls;
	struct outcome out;
	char log[4096]; /* what `called` was told */
	bool loses;     /* it has no memory for calls that begin */
	int caller_near_fd;
};

static const char *const names[] = { "search", "github.issues" };

static bool note_call(void *context, const struct jail_call *call)
{
	struct side *s = context;
	size_t used = strlen(s->log);
	if (s->loses && call->arguments)
		return false;
	if (call->id > 0 && call->arguments)
		(void)snprintf(s->log + used, sizeof(s->log) - used, "call %d %s %.*s;",
			       (int)call->id, call->name, (int)call->arguments_size,
			       call->arguments);
	else if (call->id > 0)
		(void)snprintf(s->log + used, sizeof(s->log) - used, "%s %d %d;",
			       call_end_names[call->end], (int)call->id, (int)call->ms);
	else
		(void)snprintf(s->log + used, sizeof(s->log) - used, "refused %s;",
			       call->name ? call->name : "-");
	return true;
}

static struct side *open_side(bool is_brief)
{
	struct side *s = calloc(1, sizeof(*s));
	int program[2], caller[2];
	struct cj_error err = { 0 };
	assert_non_null(s);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, program), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, caller), 0);
	now_ms = 1000000;
	s->program_fd = program[1];
	s->caller_fd = caller[1];
	s->caller_near_fd = caller[0];
	s->tools.names = (struct strings){ .items = (const char **)names, .count = 2 };
	s->program = (struct program){ .tools = &s->tools,
				       .limits = { .calls = 50,
						   .calls_outstanding = 10,
						   .calls_per_second = 100,
						   .call_ms = 60000 } };
	s->io = (struct jail_io){
		.calls_fd = caller[0], .calls_brief = is_brief, .called = note_call, .context = s
	};
	outcome_init(&s->out, "calls", 1);
	assert_int_equal(calls_create(program[0], &s->program, &s->io, &s->calls, &err), 0);
	return s;
}

static void close_side(struct side *s)
{
	calls_destroy(&s->calls);
	outcome_fini(&s->out);
	close(s->program_fd);
	close(s->caller_fd);
	close(s->caller_near_fd);
	free(s);
}

static void put(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* What has come; "": nothing. */
static char *get(int fd)
{
	static char text[1 << 21];
	ssize_t size = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);
	if (size < 0)
		assert_int_equal(errno, EAGAIN);
	text[size > 0 ? size : 0] = '\0';
	return text;
}

static void program_says(struct side *s, const char *text)
{
	put(s->program_fd, text);
	calls_serve(s->calls, NULL);
}

static void caller_says(struct side *s, const char *text)
{
	put(s->caller_fd, text);
	calls_serve(s->calls, NULL);
}

/* As the supervisor does it: with what poll(2) reports. */
static void turn(struct side *s)
{
	struct pollfd fds[CALLS_FDS];
	calls_watch(s->calls, fds);
	assert_true(poll(fds, CALLS_FDS, 0) >= 0);
	nreceived = nsent = 0;
	calls_serve(s->calls, fds);
}

#define CALL(id) "{\"id\":" id ",\"name\":\"search\",\"arguments\":{}}\n"

static void a_call_and_its_answer_pass_byte_for_byte(void **state)
{
	(void)state;
	struct side *s = open_side(false);
	program_says(s, " {\"arguments\": {\"a\" : 1.50,\t\"\\u00e9\":\"\xc3\xa9\"} ,"
			"\"name\":\"search\", \"id\":\"x\\n\"}\n");
	assert_string_equal(get(s->caller_fd),
			    "{\"id\":1,\"name\":\"search\","
			    "\"arguments\":{\"a\" : 1.50,\t\"\\u00e9\":\"\xc3\xa9\"}}\n");
	now_ms += 7;
	caller_says(s, "{\"result\" : [1e3, {\"b\":\"\\u0041\"}] , \"id\":1}\n");
	assert_string_equal(get(s->program_fd),
			    "{\"id\":\"x\\n\",\"result\":[1e3, {\"b\":\"\\u0041\"}]}\n");
	assert_string_equal(s->log, "call 1 search {\"a\" : 1.50,\t\"\\u00e9\":\"\xc3\xa9\"};"
				    "answered 1 7;");
	close_side(s);
}

/* A reader of text lines would take what stands between two of them for a line of cejail's. */
static void carriage_returns_become_spaces(void **state)
{
	(void)state;
	struct side *s = open_side(false);
	program_says(
	    s,
	    "{\"id\":1,\r\"name\":\"search\",\"arguments\":{\"a\":\r{\"id\":2}\r,\"b\":\"\\r\"}}\r\n");
	assert_string_equal(get(s->caller_fd),
			    "{\"id\":1,\"name\":\"search\","
			    "\"arguments\":{\"a\": {\"id\":2} ,\"b\":\"\\r\"}}\n");
	caller_says(s, "{\"id\":1,\"result\":[1,\r2]}\r\n");
	assert_string_equal(get(s->program_fd), "{\"id\":1,\"result\":[1, 2]}\n");
	close_side(s);
}

static void answers_may_come_in_any_order(void **state)
{
	(void)state;
	struct side *s = open_side(false);
	program_says(s, CALL("5") CALL("6") "{\"id\":7,\"name\":\"github.issues\"}\n");
	assert_non_null(
	    strstr(get(s->caller_fd), "{\"id\":3,\"name\":\"github.issues\",\"arguments\":{}}\n"));
	caller_says(
	    s, "{\"id\":3,\"result\":null}\n{\"id\":1,\"error\":{\"message\":\"\\\"no\\\"\"}}\n");
	assert_string_equal(get(s->program_fd),
			    "{\"id\":7,\"result\":null}\n"
			    "{\"id\":5,\"error\":{\"message\":\"\\\"no\\\"\"}}\n");
	caller_says(s,
		    "{\"id\":2,\"result\":0}\n{\"id\":2,\"result\":1}\n{\"id\":99,\"result\":1}\n");
	assert_string_equal(get(s->program_fd), "{\"id\":6,\"result\":0}\n");
	calls_end(s->calls, false, &s->out);
	assert_int_equal(s->out.ncalls, 2);
	assert_string_equal(s->out.calls[0].name, "search");
	assert_int_equal(s->out.calls[0].count, 2);
	assert_int_equal(s->out.calls[0].failed, 1);
	assert_int_equal(s->out.calls[1].count, 1);
	close_side(s);
}

/* Nothing of these reaches the caller. */
static void what_is_no_call_is_refused_at_once(void **state)
{
	(void)state;
	static const char *const rows[][2] = {
		{ "{\"id\":1,\"name\":\"rm\",\"arguments\":{}}", "{\"id\":1,\"error\"" },
		{ "{\"id\":1,\"name\":\"\",\"arguments\":{}}", "{\"id\":1,\"error\"" },
		{ "{\"id\":1,\"name\":\"search\",\"arguments\":[]}", "{\"id\":1,\"error\"" },
		{ "{\"id\":1,\"name\":\"search\",\"arguments\":null}", "{\"id\":1,\"error\"" },
		{ "{\"id\":1,\"name\":\"search\",\"result\":1}", "{\"id\":1,\"error\"" },
		{ "{\"id\":1,\"name\":[\"search\"]}", "{\"id\":1,\"error\"" },
		{ "{\"id\":1}", "{\"id\":1,\"error\"" },
		{ "{\"id\":-1,\"name\":\"search\"}", "{\"id\":null,\"error\"" },
		{ "{\"id\":1.0,\"name\":\"search\"}", "{\"id\":null,\"error\"" },
		{ "{\"id\":1e3,\"name\":\"search\"}", "{\"id\":null,\"error\"" },
		{ "{\"id\":9007199254740992,\"name\":\"search\"}", "{\"id\":null,\"error\"" },
		{ "{\"id\":null,\"name\":\"search\"}", "{\"id\":null,\"error\"" },
		{ "{\"id\":{},\"name\":\"search\"}", "{\"id\":null,\"error\"" },
		{ "{\"name\":\"search\"}", "{\"id\":null,\"error\"" },
		{ "{\"id\":1,\"id\":2,\"name\":\"search\"}", "{\"id\":null,\"error\"" },
		{ "[{\"id\":1,\"name\":\"search\"}]", "{\"id\":null,\"error\"" },
		{ "{\"id\":1,\"name\":\"search\"} {}", "{\"id\":null,\"error\"" },
		{ "", "{\"id\":null,\"error\"" },
		{ "\xff", "{\"id\":null,\"error\"" },
		{ "{\"id\":1,\"name\":\"search\",\"arguments\":{\"a\":\"\\u0000\"}}",
		  "{\"id\":null,\"error\"" },
		{ "{\"id\":\"0123456789012345678901234567890123456789012345678901234567890123x\","
		  "\"name\":\"search\"}",
		  "{\"id\":null,\"error\"" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct side *s = open_side(false);
		put(s->program_fd, rows[i][0]);
		program_says(s, "\n");
		const char *answer = get(s->program_fd);
		if (strncmp(answer, rows[i][1], strlen(rows[i][1])) != 0)
			fail_msg("'%s': '%s'", rows[i][0], answer);
		assert_string_equal(get(s->caller_fd), "");
		assert_memory_equal(s->log, "refused ", 8);
		calls_end(s->calls, false, &s->out);
		assert_int_equal(s->out.ncalls, 1);
		assert_int_equal(s->out.calls[0].count, 0);
		assert_int_equal(s->out.calls[0].refused, 1);
		close_side(s);
	}
}

static void two_calls_with_one_id_are_refused(void **state)
{
	(void)state;
	struct side *s = open_side(false);
	program_says(s, CALL("1") CALL("1"));
	assert_non_null(strstr(get(s->program_fd), "{\"id\":null,\"error\""));
	caller_says(s, "{\"id\":1,\"result\":1}\n");
	assert_string_equal(get(s->program_fd), "{\"id\":1,\"result\":1}\n");
	program_says(s, CALL("1")); /* the first has its answer */
	assert_string_equal(get(s->program_fd), "");
	close_side(s);
}

static void calls_above_the_limit_are_refused(void **state)
{
	(void)state;
	struct side *s = open_side(false);
	s->program.limits.calls = 2;
	program_says(s, CALL("1") CALL("2") CALL("3"));
	assert_string_equal(
	    get(s->program_fd),
	    "{\"id\":3,\"error\":{\"message\":\"the run has made its 2 calls\"}}\n");
	close_side(s);
}

static bool is_watched(struct side *s)
{
	struct pollfd fds[CALLS_FDS];
	calls_watch(s->calls, fds);
	return fds[0].fd >= 0 && (fds[0].events & POLLIN);
}

static void a_call_waits_for_an_answer_to_another(void **state)
{
	(void)state;
	struct side *s = open_side(false);
	s->program.limits.calls_outstanding = 2;
	program_says(s, CALL("1") CALL("2") CALL("3"));
	assert_null(strstr(get(s->caller_fd), "\"id\":3"));
	assert_false(is_watched(s));
	caller_says(s, "{\"id\":2,\"result\":1}\n");
	assert_non_null(strstr(get(s->caller_fd), "\"id\":3"));
	close_side(s);
}

static void a_call_waits_for_the_next_second(void **state)
{
	(void)state;
	struct side *s = open_side(false);
	s->program.limits.calls_per_second = 2;
	program_says(s, CALL("1") CALL("2") CALL("3"));
	assert_null(strstr(get(s->caller_fd), "\"id\":3"));
	assert_false(is_watched(s));
	assert_int_equal(calls_at_ms(s->calls), now_ms + 1000);
	now_ms += 999;
	calls_look_at_clock(s->calls, now_ms);
	assert_string_equal(get(s->caller_fd), "");
	now_ms += 1;
	calls_look_at_clock(s->calls, now_ms);
	assert_non_null(strstr(get(s->caller_fd), "\"id\":3"));
	close_side(s);
}

static void a_call_without_an_answer_fails(void **state)
{
	(void)state;
	struct side *s = open_side(false);
	s->program.limits.call_ms = 500;
	program_says(s, CALL("1"));
	(void)get(s->caller_fd);
	assert_int_equal(calls_at_ms(s->calls), now_ms + 500);
	now_ms += 500;
	calls_look_at_clock(s->calls, now_ms);
	assert_string_equal(get(s->program_fd),
			    "{\"id\":1,\"error\":{\"message\":\"the call was not answered within "
			    "500ms\"}}\n");
	assert_string_equal(get(s->caller_fd), "{\"id\":1,\"ended\":\"timeout\",\"ms\":500}\n");
	caller_says(s, "{\"id\":1,\"result\":\"late\"}\n");
	assert_string_equal(get(s->program_fd), "");
	assert_int_equal(calls_at_ms(s->calls), 0);
	close_side(s);
}

static void a_caller_that_goes_fails_every_call(void **state)
{
	(void)state;
	struct side *s = open_side(false);
	program_says(s, CALL("1"));
	(void)shutdown(s->caller_fd, SHUT_RDWR);
	calls_serve(s->calls, NULL);
	assert_non_null(strstr(get(s->program_fd), "answers no more calls"));
	program_says(s, CALL("2"));
	assert_non_null(strstr(get(s->program_fd), "{\"id\":2,\"error\""));
	close_side(s);
}

static void an_answer_that_cannot_be_read_fails_every_call(void **state)
{
	(void)state;
	static const char *const lines[] = { "{\n", "[]\n", "{\"id\":\"1\",\"result\":1}\n", "\n",
					     "{\"result\":1}\n" };
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct side *s = open_side(false);
		program_says(s, CALL("1"));
		caller_says(s, lines[i]);
		assert_non_null(strstr(get(s->program_fd), "can't be read"));
		close_side(s);
	}
}

static void an_answer_without_result_fails_its_call(void **state)
{
	(void)state;
	struct side *s = open_side(false);
	program_says(s, CALL("1") CALL("2") CALL("3"));
	caller_says(s, "{\"id\":1}\n{\"id\":2,\"error\":\"x\"}\n"
		       "{\"id\":3,\"result\":1,\"error\":{\"message\":\"m\"}}\n");
	assert_int_equal(strncmp(get(s->program_fd), "{\"id\":1,\"error\"", 15), 0);
	calls_end(s->calls, false, &s->out);
	assert_int_equal(s->out.calls[0].failed, 3);
	close_side(s);
}

/* More than the sockets hold: the calls are served while they are written. */
static void put_much(struct side *s, int fd, const char *text, size_t size)
{
	for (size_t sent = 0; sent < size;) {
		ssize_t put = send(fd, text + sent, size - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (put < 0)
			assert_int_equal(errno, EAGAIN);
		sent += put > 0 ? (size_t)put : 0;
		calls_serve(s->calls, NULL);
	}
	for (int i = 0; i < 100; i++)
		calls_serve(s->calls, NULL);
}

static void a_line_that_is_too_long_is_refused_once_and_skipped(void **state)
{
	(void)state;
	struct side *s = open_side(false);
	auto_free char *line = malloc(CALL_LINE_MAX + 100000);
	assert_non_null(line);
	memset(line, 'x', CALL_LINE_MAX + 100000);
	put_much(s, s->program_fd, line, CALL_LINE_MAX + 100000);
	put_much(s, s->program_fd, line, 5000);
	assert_string_equal(get(s->program_fd),
			    "{\"id\":null,\"error\":{\"message\":\"a call has more than 1048576 "
			    "bytes\"}}\n");
	program_says(s, "\n" CALL("1"));
	assert_string_equal(get(s->program_fd), "");
	assert_string_equal(s->log, "refused -;call 1 search {};");
	close_side(s);
}

static void the_longest_line_passes(void **state)
{
	(void)state;
	static const char head[] = "{\"id\":1,\"name\":\"search\",\"arguments\":{\"a\":\"";
	auto_free char *line = malloc(CALL_LINE_MAX + 2);
	assert_non_null(line);
	for (size_t more = 0; more < 2; more++) {
		struct side *s = open_side(true);
		size_t size = CALL_LINE_MAX + more;
		memset(line, 'x', size);
		memcpy(line, head, sizeof(head) - 1);
		memcpy(line + size - 4, "\"}}\n", 4);
		s->io.called = NULL;
		put_much(s, s->program_fd, line, size);
		assert_int_equal(strncmp(get(s->caller_fd), "{\"id\":1,", 8) == 0, more == 0);
		close_side(s);
	}
}

static void a_program_that_reads_nothing_waits(void **state)
{
	(void)state;
	struct side *s = open_side(false);
	const size_t size = 1u << 20;
	auto_free char *answer = malloc(size);
	assert_non_null(answer);
	int calls = 0;
	while (calls < 40 && is_watched(s)) {
		char call[100];
		calls++;
		(void)snprintf(call, sizeof(call), CALL("%d"), calls);
		program_says(s, call);
		(void)get(s->caller_fd);
		int head = snprintf(answer, size, "{\"id\":%d,\"result\":\"", calls);
		memset(answer + head, 'x', size - (size_t)head);
		memcpy(answer + size - 3, "\"}\n", 3);
		put_much(s, s->caller_fd, answer, size);
	}
	assert_in_range(calls, 15, 20); /* 16 MiB of answers, and what the socket holds */
	assert_false(is_watched(s));
	close_side(s);
}

static void a_caller_that_reads_nothing_stops_the_program(void **state)
{
	(void)state;
	struct side *s = open_side(false);
	s->program.limits.calls_outstanding = CALLS_OUTSTANDING_MAX;
	auto_free char *line = malloc(600000);
	assert_non_null(line);
	for (int i = 0; i < 4 && is_watched(s); i++) {
		int head = snprintf(line, 600000,
				    "{\"id\":%d,\"name\":\"search\",\"arguments\":{\"a\":\"", i);
		memset(line + head, 'x', (size_t)(599999 - head));
		memcpy(line + 599995, "\"}}\n", 4);
		put_much(s, s->program_fd, line, 599999);
	}
	assert_false(is_watched(s));
	close_side(s);
}

static void a_program_that_closes_its_socket_cancels_its_calls(void **state)
{
	(void)state;
	struct side *s = open_side(false);
	program_says(s, CALL("1"));
	(void)get(s->caller_fd);
	(void)shutdown(s->program_fd, SHUT_RDWR);
	calls_serve(s->calls, NULL);
	assert_string_equal(get(s->caller_fd), "{\"id\":1,\"ended\":\"cancelled\",\"ms\":0}\n");
	close_side(s);
}

static void the_end_cancels_what_has_no_answer(void **state)
{
	(void)state;
	struct side *s = open_side(false);
	struct pollfd fds[CALLS_FDS];
	program_says(s, CALL("1"));
	(void)get(s->caller_fd);
	calls_end(s->calls, false, &s->out);
	assert_string_equal(get(s->caller_fd), "{\"id\":1,\"ended\":\"cancelled\",\"ms\":0}\n");
	assert_string_equal(get(s->program_fd),
			    "{\"id\":1,\"error\":{\"message\":\"the run has ended\"}}\n");
	assert_int_equal(recv(s->program_fd, (char[1]){ 0 }, 1, 0), 0);
	calls_watch(s->calls, fds);
	assert_true(fds[0].fd < 0 && fds[1].fd < 0);
	assert_int_equal(s->out.calls[0].failed, 1);
	close_side(s);
}

/* The next cell begins at the beginning of a line. */
static void the_socket_of_an_interpreter_stays_unless_a_line_is_cut(void **state)
{
	(void)state;
	for (int is_cut = 0; is_cut < 2; is_cut++) {
		struct side *s = open_side(false);
		program_says(s, is_cut ? CALL("1") "{\"id\":" : CALL("1"));
		calls_end(s->calls, true, &s->out);
		(void)get(s->program_fd);
		ssize_t got = recv(s->program_fd, (char[1]){ 0 }, 1, MSG_DONTWAIT);
		assert_int_equal(got, is_cut ? 0 : -1);
		assert_int_equal(calls_are_cut(s->calls), is_cut);
		assert_int_equal(s->out.warnings.count, is_cut);
		close_side(s);
	}
}

static void calls_that_a_cell_left_unread_are_not_the_next_ones(void **state)
{
	(void)state;
	struct side *s = open_side(false);
	s->program.limits.calls_outstanding = 1;
	program_says(s, CALL("1") CALL("2") CALL("3"));
	calls_end(s->calls, true, &s->out);
	const char *text = get(s->program_fd);
	assert_non_null(strstr(text, "{\"id\":1,\"error\""));
	assert_non_null(strstr(text, "{\"id\":2,\"error\":{\"message\":\"the cell has ended\"}}"));
	assert_non_null(strstr(text, "{\"id\":3,\"error\""));
	assert_int_equal(s->out.calls[0].refused, 2);
	assert_false(calls_are_cut(s->calls));
	close_side(s);
}

static void the_largest_number_is_an_id(void **state)
{
	(void)state;
	struct side *s = open_side(false);
	program_says(s, CALL("9007199254740991"));
	caller_says(s, "{\"id\":1,\"result\":1}\n");
	assert_string_equal(get(s->program_fd), "{\"id\":9007199254740991,\"result\":1}\n");
	close_side(s);
}

/* poll(2) does not report what has been received. */
static void lines_that_came_together_are_all_read(void **state)
{
	(void)state;
	struct side *s = open_side(false);
	size_t lines = 0;
	for (int i = 0; i < 60; i++)
		put(s->program_fd, "x\n");
	calls_serve(s->calls, NULL);
	for (int i = 0; i < 10; i++)
		calls_look_at_clock(s->calls, now_ms);
	for (const char *at = get(s->program_fd); (at = strchr(at, '\n')); at++)
		lines++;
	assert_int_equal(lines, 60);
	assert_int_equal(calls_at_ms(s->calls), 0);
	close_side(s);
}

/* A read that finds nothing costs as much as one that does. */
static void a_call_is_read_once_and_written_once_and_so_is_its_answer(void **state)
{
	(void)state;
	struct side *s = open_side(false);
	s->program.limits.calls_outstanding = 1;
	put(s->program_fd, CALL("1") CALL("2"));
	turn(s);
	assert_int_equal(nreceived, 1);
	assert_int_equal(nsent, 1);
	put(s->caller_fd, "{\"id\":1,\"result\":1}\n");
	turn(s); /* the second call waits in our buffer */
	assert_int_equal(nreceived, 1);
	assert_int_equal(nsent, 2);
	put(s->caller_fd, "{\"id\":2,\"result\":2}\n");
	turn(s);
	turn(s);
	assert_int_equal(nreceived + nsent, 0);
	assert_string_equal(get(s->program_fd),
			    "{\"id\":1,\"result\":1}\n{\"id\":2,\"result\":2}\n");
	close_side(s);
}

static void an_answer_that_came_before_the_caller_went_arrives(void **state)
{
	(void)state;
	struct side *s = open_side(false);
	program_says(s, CALL("1"));
	put(s->caller_fd, "{\"id\":1,\"result\":1}\n");
	(void)shutdown(s->caller_fd, SHUT_RDWR);
	put(s->program_fd, CALL("2"));
	/* poll(2) has looked before */
	calls_serve(s->calls, (struct pollfd[CALLS_FDS]){ { .revents = POLLIN }, { .fd = 0 } });
	const char *answers = get(s->program_fd);
	assert_non_null(strstr(answers, "{\"id\":1,\"result\":1}\n"));
	assert_non_null(strstr(answers, "{\"id\":2,\"error\""));
	close_side(s);
}

static void a_waiting_call_takes_the_place_of_one_that_is_late(void **state)
{
	(void)state;
	struct side *s = open_side(false);
	s->program.limits.calls_outstanding = 1;
	program_says(s, CALL("1") CALL("2"));
	(void)get(s->caller_fd);
	now_ms += 60000;
	calls_look_at_clock(s->calls, now_ms);
	assert_non_null(strstr(get(s->caller_fd), "{\"id\":2,\"name\""));
	close_side(s);
}

/* The supervisor would wake at once, again and again. */
static void no_second_begins_for_a_program_that_has_gone(void **state)
{
	(void)state;
	struct side *s = open_side(false);
	s->program.limits.calls_per_second = 1;
	program_says(s, CALL("1"));
	(void)shutdown(s->program_fd, SHUT_RDWR);
	caller_says(s, "{\"id\":1,\"result\":1}\n");
	assert_int_equal(calls_at_ms(s->calls), 0);
	close_side(s);
}

/* One that still writes, too: it would never learn of the call. */
static void a_caller_that_reads_no_more_fails_every_call(void **state)
{
	(void)state;
	for (int is_brief = 0; is_brief < 2; is_brief++) {
		struct side *s = open_side(is_brief);
		program_says(s, CALL("1") CALL("2"));
		(void)get(s->caller_fd);
		(void)shutdown(s->caller_fd, SHUT_RD);
		caller_says(s, "{\"id\":1,\"result\":1}\n");
		program_says(s, CALL("3"));
		const char *answers = get(s->program_fd);
		assert_non_null(strstr(answers, "{\"id\":1,\"result\":1}\n"));
		assert_non_null(strstr(answers, "{\"id\":2,\"error\""));
		assert_non_null(strstr(answers, "{\"id\":3,\"error\""));
		calls_end(s->calls, false, &s->out);
		assert_int_equal(s->out.calls[0].failed, is_brief ? 1 : 2);
		close_side(s);
	}
}

static void in_brief_the_caller_gets_the_hash_and_each_end(void **state)
{
	(void)state;
	struct side *s = open_side(true);
	program_says(s, CALL("1"));
	assert_string_equal(get(s->caller_fd),
			    "{\"id\":1,\"name\":\"search\",\"bytes\":2,\"sha256\":"
			    "\"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a\"}"
			    "\n");
	caller_says(s, "{\"id\":1,\"result\":1}\n");
	assert_string_equal(get(s->caller_fd), "{\"id\":1,\"ended\":\"answered\",\"ms\":0}\n");
	close_side(s);
}

/* A service that is busy reads late; its socket holds some 280 lines of one send(2) each. */
static void in_brief_no_line_is_lost_at_the_end(void **state)
{
	(void)state;
	enum { REFUSED = 600 };
	struct side *s = open_side(true);
	for (int i = 0; i < REFUSED; i++) {
		now_ms += 1000;
		program_says(s, "{\"id\":1,\"name\":\"other\"}\n");
		(void)get(s->program_fd);
	}
	pid_t service = test_fork();
	assert_true(service >= 0);
	if (service == 0) {
		static char text[1 << 16];
		ssize_t size;
		int lines = 0;
		usleep(100000);
		while ((size = recv(s->caller_fd, text, sizeof(text), 0)) > 0)
			for (ssize_t i = 0; i < size; i++)
				lines += text[i] == '\n';
		_exit(lines == REFUSED ? 0 : 1);
	}
	calls_end(s->calls, false, &s->out);
	(void)shutdown(s->caller_near_fd, SHUT_WR);
	int status = -1;
	assert_int_equal(waitpid(service, &status, 0), service);
	assert_int_equal(status, 0);
	close_side(s);
}

static void in_brief_the_caller_gets_arguments_that_are_asked_for_and_short(void **state)
{
	(void)state;
	struct side *s = open_side(true);
	s->io.calls_quoted = 7;
	program_says(s, "{\"id\":1,\"name\":\"search\",\"arguments\":{\"q\":1}}\n");
	assert_non_null(strstr(get(s->caller_fd), "\",\"arguments\":{\"q\":1}}\n"));
	program_says(s, "{\"id\":2,\"name\":\"search\",\"arguments\":{\"q\":12}}\n");
	const char *line = get(s->caller_fd);
	assert_non_null(strstr(line, "\"bytes\":8,"));
	assert_null(strstr(line, "arguments"));
	close_side(s);
}

static void a_call_that_its_receiver_loses_fails_at_once(void **state)
{
	(void)state;
	struct side *s = open_side(true);
	s->loses = true;
	program_says(s, CALL("1"));
	assert_string_equal(get(s->program_fd), "{\"id\":1,\"error\":{\"message\":"
						"\"cejail has no memory for this call\"}}\n");
	assert_non_null(strstr(get(s->caller_fd), "{\"id\":1,\"ended\":\"failed\",\"ms\":0}\n"));
	s->loses = false;
	program_says(s, CALL("2"));
	caller_says(s, "{\"id\":2,\"result\":1}\n");
	assert_string_equal(get(s->program_fd), "{\"id\":2,\"result\":1}\n");
	calls_end(s->calls, false, &s->out);
	assert_true(s->out.calls[0].count == 2 && s->out.calls[0].failed == 1);
	close_side(s);
}

static void unknown_names_have_a_bounded_number_of_rows(void **state)
{
	(void)state;
	struct side *s = open_side(false);
	char line[400];
	for (int i = 0; i < 40; i++) {
		(void)snprintf(line, sizeof(line), "{\"id\":1,\"name\":\"no%d\"}\n", i);
		program_says(s, line);
	}
	(void)snprintf(line, sizeof(line), "{\"id\":1,\"name\":\"%0300d\"}\n", 7);
	program_says(s, line);
	calls_end(s->calls, false, &s->out);
	assert_int_equal(s->out.ncalls, 17);
	assert_string_equal(s->out.calls[0].name, "no0");
	assert_null(s->out.calls[16].name);
	assert_int_equal(s->out.calls[16].refused, 40 - 16 + 1);
	close_side(s);
}

static void a_program_without_tools_is_refused_each_call(void **state)
{
	(void)state;
	struct side *s = open_side(false);
	struct cj_error err = { 0 };
	struct calls *calls;
	int ends[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	s->program.tools = NULL;
	assert_int_equal(calls_create(ends[0], &s->program, &s->io, &calls, &err), 0);
	put(ends[1], CALL("1"));
	calls_serve(calls, NULL);
	assert_non_null(strstr(get(ends[1]), "no tool 'search'"));
	calls_destroy(&calls);
	close(ends[1]);
	close_side(s);
}

static void without_calls_nothing_is_watched(void **state)
{
	(void)state;
	struct pollfd fds[CALLS_FDS];
	struct calls *none = NULL;
	calls_watch(NULL, fds);
	assert_true(fds[0].fd < 0 && fds[1].fd < 0);
	assert_int_equal(calls_at_ms(NULL), 0);
	calls_look_at_clock(NULL, 1);
	calls_end(NULL, false, NULL);
	calls_destroy(&none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_and_its_answer_pass_byte_for_byte),
		cmocka_unit_test(carriage_returns_become_spaces),
		cmocka_unit_test(answers_may_come_in_any_order),
		cmocka_unit_test(what_is_no_call_is_refused_at_once),
		cmocka_unit_test(two_calls_with_one_id_are_refused),
		cmocka_unit_test(calls_above_the_limit_are_refused),
		cmocka_unit_test(a_call_waits_for_an_answer_to_another),
		cmocka_unit_test(a_call_waits_for_the_next_second),
		cmocka_unit_test(a_call_without_an_answer_fails),
		cmocka_unit_test(a_caller_that_goes_fails_every_call),
		cmocka_unit_test(an_answer_that_cannot_be_read_fails_every_call),
		cmocka_unit_test(an_answer_without_result_fails_its_call),
		cmocka_unit_test(a_line_that_is_too_long_is_refused_once_and_skipped),
		cmocka_unit_test(the_longest_line_passes),
		cmocka_unit_test(a_program_that_reads_nothing_waits),
		cmocka_unit_test(a_caller_that_reads_nothing_stops_the_program),
		cmocka_unit_test(a_program_that_closes_its_socket_cancels_its_calls),
		cmocka_unit_test(the_end_cancels_what_has_no_answer),
		cmocka_unit_test(the_socket_of_an_interpreter_stays_unless_a_line_is_cut),
		cmocka_unit_test(calls_that_a_cell_left_unread_are_not_the_next_ones),
		cmocka_unit_test(the_largest_number_is_an_id),
		cmocka_unit_test(lines_that_came_together_are_all_read),
		cmocka_unit_test(a_call_is_read_once_and_written_once_and_so_is_its_answer),
		cmocka_unit_test(an_answer_that_came_before_the_caller_went_arrives),
		cmocka_unit_test(a_waiting_call_takes_the_place_of_one_that_is_late),
		cmocka_unit_test(no_second_begins_for_a_program_that_has_gone),
		cmocka_unit_test(a_caller_that_reads_no_more_fails_every_call),
		cmocka_unit_test(in_brief_the_caller_gets_the_hash_and_each_end),
		cmocka_unit_test(in_brief_no_line_is_lost_at_the_end),
		cmocka_unit_test(in_brief_the_caller_gets_arguments_that_are_asked_for_and_short),
		cmocka_unit_test(a_call_that_its_receiver_loses_fails_at_once),
		cmocka_unit_test(unknown_names_have_a_bounded_number_of_rows),
		cmocka_unit_test(a_program_without_tools_is_refused_each_call),
		cmocka_unit_test(without_calls_nothing_is_watched),
	};
	return cmocka_run_group_tests_name("calls", tests, NULL, NULL);
}
