/* SPDX-License-Identifier: Apache-2.0 */
/* Which calls of a run are open, as its worker tells them, and what of an answer reaches it. */
#include "runtime/service/queue/run_calls.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "runtime/base/scope.h"
#include "runtime/jail/supervise/calls.h"
#include "runtime/service/config/service_config.h"

#define HASH      "9f782d87078b2bd141fa0bf1dc57a9953c610099850172ab7a92d4b4d710e750"
#define BEGIN(id) "{\"id\":" #id ",\"name\":\"search\",\"bytes\":8,\"sha256\":\"" HASH "\"}\n"

enum { ENDS = 64 };

struct world {
	struct loop loop;
	struct pending_calls *calls;
	int worker_fd;
	struct call_record ended[ENDS];
	size_t sizes[ENDS]; /* of their arguments, which are gone */
	size_t count;
};

static void on_ended(void *context, const struct call_record *call)
{
	struct world *w = context;

	assert_true(w->count < ENDS);
	w->sizes[w->count] = call->arguments ? strlen(call->arguments) : 0;
	w->ended[w->count++] = *call;
}

static int set_up(void **state)
{
	static struct world w;
	struct cj_error err = { 0 };
	int ends[2];

	w = (struct world){ 0 };
	assert_int_equal(loop_open(&w.loop, &err), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	w.worker_fd = ends[1];
	const struct run_calls_ops ops = { on_ended, &w };
	assert_int_equal(run_calls_begin(&w.loop, ends[0], &ops, &w.calls, &err), 0);
	*state = &w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;
	uint64_t last;

	run_calls_end(&w->calls, &last);
	cj_close(&w->worker_fd);
	loop_close(&w->loop);
	return 0;
}

static void tell(struct world *w, const char *lines)
{
	assert_int_equal(write(w->worker_fd, lines, strlen(lines)), strlen(lines));
}

static void turn(struct world *w)
{
	struct cj_error err = { 0 };
	assert_int_equal(loop_turn(&w->loop, 0, &err), 0);
}

static enum api_code answer(struct world *w, uint64_t id, const char *value)
{
	return run_calls_answer(w->calls, id, "result", (struct blob){ value, strlen(value) });
}

static void assert_heard(struct world *w, const char *wanted)
{
	char text[256] = "";
	assert_true(read(w->worker_fd, text, sizeof(text) - 1) > 0);
	assert_string_equal(text, wanted);
}

static void an_answer_is_known_before_the_loop_has_read_the_call(void **state)
{
	struct world *w = *state;

	tell(w, BEGIN(1));
	assert_int_equal(answer(w, 1, "{\n\"a\":\r\n1}"), API_OK);
	assert_heard(w, "{\"id\":1,\"result\":{ \"a\":  1}}\n");
}

static void a_call_has_one_answer(void **state)
{
	struct world *w = *state;

	tell(w, BEGIN(1) BEGIN(2));
	assert_int_equal(answer(w, 0, "1"), API_NOT_FOUND);
	assert_int_equal(answer(w, 3, "1"), API_NOT_FOUND);
	assert_int_equal(answer(w, 1, "1"), API_OK);
	assert_int_equal(answer(w, 1, "2"), API_CALL_ENDED);
	tell(w, "{\"id\":2,\"ended\":\"timeout\",\"ms\":9}\n");
	assert_int_equal(answer(w, 2, "1"), API_CALL_ENDED);
	assert_heard(w, "{\"id\":1,\"result\":1}\n");
}

static void each_call_is_reported_once_when_it_has_ended(void **state)
{
	struct world *w = *state;
	uint64_t last = 0;

	tell(w, BEGIN(1) BEGIN(2) "{\"id\":1,\"ended\":\"answered\",\"ms\":3}\n"
				  "{\"id\":0,\"name\":null,\"ended\":\"refused\"}\n");
	turn(w);
	assert_int_equal(w->count, 2);
	assert_true(w->ended[0].id == 1 && w->ended[0].end == CALL_ANSWERED &&
		    w->ended[0].ms == 3 && w->ended[0].bytes == 8);
	assert_string_equal(w->ended[0].name, "search");
	assert_string_equal(w->ended[0].sha256, HASH);
	assert_true(w->ended[1].id == 0 && w->ended[1].end == CALL_REFUSED);
	assert_string_equal(w->ended[1].name, "");
	tell(w, BEGIN(3)); /* and nobody reads it before the end */
	run_calls_end(&w->calls, &last);
	assert_int_equal(w->count, 4);
	assert_int_equal(w->ended[2].end, CALL_CANCELLED);
	assert_int_equal(w->ended[3].end, CALL_CANCELLED);
	assert_int_equal(last, 3);
}

static void arguments_that_are_told_are_in_the_report(void **state)
{
	struct world *w = *state;
	char *line = NULL;
	const char *head = "{\"id\":1,\"name\":\"search\",\"bytes\":4096,\"sha256\":\"" HASH
			   "\",\"arguments\":";

	assert_true(asprintf(&line, "%s{\"q\":\"%*s\"}}\n", head, AUDIT_ARGUMENTS_MAX - 8, "") > 0);
	tell(w, line);
	tell(w, "{\"id\":1,\"ended\":\"answered\",\"ms\":3}\n" BEGIN(2));
	free(line);
	turn(w);
	assert_int_equal(w->count, 1);
	assert_int_equal(w->sizes[0], AUDIT_ARGUMENTS_MAX);
	uint64_t last;
	run_calls_end(&w->calls, &last);
	assert_int_equal(w->count, 2);
	assert_int_equal(w->sizes[1], 0);
}

/* The service was busy until the run had ended. */
static void what_waits_at_the_end_is_read_whole(void **state)
{
	enum { CALLS = 48, BYTES = 3600 }; /* more than one turn of the loop reads */
	struct world *w = *state;
	uint64_t last;

	for (int i = 1; i <= CALLS; i++) {
		char line[BYTES + 512];
		(void)snprintf(line, sizeof(line),
			       "{\"id\":%d,\"name\":\"search\",\"bytes\":8,\"sha256\":\"" HASH
			       "\",\"arguments\":{\"q\":\"%*s\"}}\n"
			       "{\"id\":%d,\"ended\":\"answered\",\"ms\":3}\n",
			       i, BYTES, "", i);
		tell(w, line);
	}
	run_calls_end(&w->calls, &last);
	assert_int_equal(last, CALLS);
	assert_int_equal(w->count, CALLS);
	assert_int_equal(w->ended[CALLS - 1].end, CALL_ANSWERED);
}

/* The worker knows a call before it has told of it. */
static void a_call_that_fails_here_has_an_error_at_once(void **state)
{
	struct world *w = *state;

	run_calls_fail(w->calls, 1, "no room");
	assert_heard(w, "{\"id\":1,\"error\":{\"message\":\"no room\"}}\n");
	tell(w, BEGIN(1) "{\"id\":1,\"ended\":\"failed\",\"ms\":0}\n");
	turn(w);
	assert_true(w->count == 1 && w->ended[0].end == CALL_FAILED);
	cj_close(&w->worker_fd);
	turn(w);
	run_calls_fail(w->calls, 2, "no room");
}

static void a_worker_that_has_gone_gets_no_answer(void **state)
{
	struct world *w = *state;

	tell(w, BEGIN(1));
	cj_close(&w->worker_fd);
	assert_int_equal(answer(w, 1, "1"), API_CALL_ENDED);
}

static void a_line_that_the_protocol_does_not_have_ends_it(void **state)
{
	static const char *const lines[] = {
		"x\n",
		"{}\n",
		"{\"id\":2}\n",
		BEGIN(1), /* again */
		"{\"id\":7,\"ended\":\"answered\",\"ms\":1}\n",
		"{\"id\":1,\"ended\":\"lost\",\"ms\":1}\n",
		"{\"id\":1,\"ended\":\"answered\"}\n",
	};
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct world *w = *state;
		tell(w, BEGIN(1));
		turn(w);
		tell(w, lines[i]);
		turn(w);
		if (answer(w, 1, "1") != API_CALL_ENDED)
			fail_msg("taken: %s", lines[i]);
		(void)tear_down(state);
		(void)set_up(state);
	}
}

/* epoll(7) watches no file. */
static void a_descriptor_that_cannot_be_watched_is_refused_and_closed(void **state)
{
	struct world *w = *state;
	const struct run_calls_ops ops = { on_ended, w };
	struct pending_calls *calls = NULL;
	struct cj_error err = { 0 };
	int fd = memfd_create("calls", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(run_calls_begin(&w->loop, fd, &ops, &calls, &err), -EPERM);
	assert_null(calls);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_int_equal(errno, EBADF);
}

static void answers_that_nobody_reads_are_limited(void **state)
{
	struct world *w = *state;
	auto_free char *large = malloc(CALL_ANSWER_MAX + 1);

	assert_non_null(large);
	memset(large, '1', CALL_ANSWER_MAX);
	large[CALL_ANSWER_MAX] = '\0';
	tell(w, BEGIN(1) BEGIN(2) BEGIN(3));
	assert_int_equal(answer(w, 1, large), API_OK);
	assert_int_equal(answer(w, 2, large), API_TOO_MANY_WAITING);
	run_calls_fail(w->calls, 3, "no room"); /* what says so is not limited */
	assert_int_equal(answer(w, 3, "1"), API_CALL_ENDED);
	do
		turn(w);
	while (recv(w->worker_fd, large, CALL_ANSWER_MAX, MSG_DONTWAIT) > 0);
	assert_int_equal(answer(w, 2, "1"), API_OK); /* it was not taken for the answer */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(an_answer_is_known_before_the_loop_has_read_the_call),
		TEST(a_call_has_one_answer),
		TEST(each_call_is_reported_once_when_it_has_ended),
		TEST(arguments_that_are_told_are_in_the_report),
		TEST(what_waits_at_the_end_is_read_whole),
		TEST(a_call_that_fails_here_has_an_error_at_once),
		TEST(a_worker_that_has_gone_gets_no_answer),
		TEST(a_line_that_the_protocol_does_not_have_ends_it),
		TEST(a_descriptor_that_cannot_be_watched_is_refused_and_closed),
		TEST(answers_that_nobody_reads_are_limited),
	};
	return cmocka_run_group_tests_name("run_calls", tests, NULL, NULL);
}
