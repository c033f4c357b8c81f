/* SPDX-License-Identifier: Apache-2.0 */
/* Lines out of a worker's socket, however they are cut. */
#include "runtime/service/worker/worker_conn.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "runtime/base/scope.h"

#define LINES_MAX 16

/* A conn, the worker's end of its socket, and what was heard. */
struct world {
	struct loop loop;
	struct worker_conn *conn;
	int worker_fd;
	char *lines[LINES_MAX];
	size_t count, ends;
	char why[128];
};

static void on_line(struct worker_conn *w, const char *text, size_t size)
{
	struct world *world = w->owner;

	assert_true(world->count < LINES_MAX);
	assert_int_equal(strlen(text), size);
	world->lines[world->count++] = strdup(text);
}

static void on_ended(struct worker_conn *w, const char *why)
{
	struct world *world = w->owner;

	world->ends++;
	(void)snprintf(world->why, sizeof(world->why), "%s", why);
	worker_conn_destroy(&world->conn);
}

static int set_up(void **state)
{
	static struct world w;
	struct cj_error err = { 0 };
	int ends[2];

	w = (struct world){ 0 };
	assert_int_equal(loop_open(&w.loop, &err), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends),
			 0);
	struct worker worker = { .sock_fd = ends[0], .control_fd = -1 };
	w.worker_fd = ends[1];
	w.conn = worker_conn_create(&w.loop, &worker, &err);
	assert_non_null(w.conn);
	assert_int_equal(worker.sock_fd, -1);
	w.conn->owner = &w;
	w.conn->line = on_line;
	w.conn->ended = on_ended;
	*state = &w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	worker_conn_destroy(&w->conn);
	cj_close(&w->worker_fd);
	loop_close(&w->loop);
	for (size_t i = 0; i < w->count; i++)
		free(w->lines[i]);
	return 0;
}

static void turn(struct world *w)
{
	struct cj_error err = { 0 };

	for (int i = 0; i < 3; i++)
		assert_int_equal(loop_turn(&w->loop, 0, &err), 0);
}

static void say(struct world *w, const char *text)
{
	assert_int_equal(write(w->worker_fd, text, strlen(text)), strlen(text));
	turn(w);
}

static void lines_come_whole_however_they_were_cut(void **state)
{
	struct world *w = *state;

	say(w, "one\ntw");
	assert_int_equal(w->count, 1);
	say(w, "o\n\nth");
	say(w, "ree");
	assert_int_equal(w->count, 3);
	say(w, "\n");
	static const char *const wanted[] = { "one", "two", "", "three" };
	assert_int_equal(w->count, 4);
	for (size_t i = 0; i < 4; i++)
		assert_string_equal(w->lines[i], wanted[i]);
}

static void a_line_in_many_pieces_is_joined(void **state)
{
	struct world *w = *state;
	char piece[1001];

	w->conn->line_max = 1u << 20;
	memset(piece, 'x', 1000);
	piece[1000] = '\0';
	for (int i = 0; i < 300; i++)
		say(w, piece);
	assert_int_equal(w->count, 0);
	say(w, "\n");
	assert_int_equal(w->count, 1);
	assert_int_equal(strlen(w->lines[0]), 300000);
}

static void a_line_that_is_too_long_ends_the_connection(void **state)
{
	struct world *w = *state;

	w->conn->line_max = 10;
	say(w, "0123456789");
	assert_int_equal(w->ends, 0);
	say(w, "0");
	assert_int_equal(w->ends, 1);
	assert_string_equal(w->why, "its line is too long");
}

static void the_end_is_reported_once_after_the_last_line(void **state)
{
	struct world *w = *state;

	assert_int_equal(write(w->worker_fd, "last\nhalf", 9), 9);
	cj_close(&w->worker_fd);
	turn(w);
	assert_int_equal(w->count, 1);
	assert_string_equal(w->lines[0], "last");
	assert_int_equal(w->ends, 1);
	assert_string_equal(w->why, "");
}

static void lines_still_arrive_after_the_control_pipe_is_closed(void **state)
{
	struct world *w = *state;
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	w->conn->worker.control_fd = ends[1];
	worker_conn_close_control(w->conn);
	char byte;
	assert_int_equal(read(ends[0], &byte, 1), 0);
	cj_close(&ends[0]);
	say(w, "still\n");
	assert_int_equal(w->count, 1);
}

static void a_paused_connection_is_not_read_until_it_is_resumed_or_ends(void **state)
{
	struct world *w = *state;

	worker_conn_pause(w->conn, true);
	say(w, "first\n");
	assert_int_equal(w->count, 0);
	worker_conn_pause(w->conn, false);
	turn(w);
	assert_int_equal(w->count, 1);

	worker_conn_pause(w->conn, true);
	say(w, "last\n");
	assert_int_equal(w->count, 1);
	cj_close(&w->worker_fd);
	turn(w);
	assert_int_equal(w->count, 2);
	assert_int_equal(w->ends, 1);
}

static void break_at_the_first(struct worker_conn *w, const char *text, size_t size)
{
	on_line(w, text, size);
	worker_conn_break(w, "it sent something else");
}

static void no_line_is_read_behind_one_that_breaks_the_protocol(void **state)
{
	struct world *w = *state;

	w->conn->line = break_at_the_first;
	say(w, "one\ntwo\n");
	assert_int_equal(w->count, 1);
	assert_int_equal(w->ends, 1);
	assert_string_equal(w->why, "it sent something else");
}

static void a_line_is_known_by_its_type(void **state)
{
	(void)state;

	assert_int_equal(worker_conn_line("{\"type\":\"ready\",\"zygote\":true}"), WORKER_READY);
	assert_int_equal(worker_conn_line("{\"type\":\"result\",\"result\":{}}"), WORKER_RESULT);
	assert_int_equal(worker_conn_line("{\"type\":\"stdout\"}"), WORKER_EVENT);
	assert_int_equal(worker_conn_line("{\"type\":\"readyy\"}"), WORKER_OTHER);
	assert_int_equal(worker_conn_line(""), WORKER_OTHER);
}

static void the_type_of_a_line_is_its_first_member(void **state)
{
	static const struct {
		const char *line, *type;
	} cases[] = {
		{ "{\"type\":\"result\",\"result\":{}}", "result" },
		{ "{\"type\":\"start\"}", "start" },
		{ "{\"type\":\"a-type-of-16-byt\"}", "" },
		{ "{\"type\":\"open", "" },
		{ "{\"type\": \"start\"}", "" },
		{ "{\"kind\":\"start\"}", "" },
		{ "", "" },
	};
	char type[16];
	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		worker_conn_line_type(cases[i].line, type);
		assert_string_equal(type, cases[i].type);
	}
}

/* --- the loop underneath ---------------------------------------------------------- */

static struct watch first, second;
static struct loop *shared;
static int heard;

static void take_both_away(struct watch *w, uint32_t events)
{
	(void)w, (void)events;
	heard++;
	loop_unwatch(shared, &first);
	loop_unwatch(shared, &second);
}

static void an_unwatched_descriptor_gets_no_callback(void **state)
{
	struct world *w = *state;
	struct cj_error err = { 0 };
	int a[2], b[2];

	assert_int_equal(pipe2(a, O_CLOEXEC), 0);
	assert_int_equal(pipe2(b, O_CLOEXEC), 0);
	assert_int_equal(write(a[1], "x", 1) + write(b[1], "x", 1), 2);
	shared = &w->loop;
	assert_int_equal(loop_watch(shared, &first, a[0], take_both_away, &err), 0);
	assert_int_equal(loop_watch(shared, &second, b[0], take_both_away, &err), 0);
	turn(w);
	assert_int_equal(heard, 1);
	for (int i = 0; i < 2; i++) {
		cj_close(&a[i]);
		cj_close(&b[i]);
	}
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		ROW(lines_come_whole_however_they_were_cut),
		ROW(a_line_in_many_pieces_is_joined),
		ROW(a_line_that_is_too_long_ends_the_connection),
		ROW(the_end_is_reported_once_after_the_last_line),
		ROW(lines_still_arrive_after_the_control_pipe_is_closed),
		ROW(a_paused_connection_is_not_read_until_it_is_resumed_or_ends),
		ROW(no_line_is_read_behind_one_that_breaks_the_protocol),
		ROW(a_line_is_known_by_its_type),
		ROW(the_type_of_a_line_is_its_first_member),
		ROW(an_unwatched_descriptor_gets_no_callback),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
