/* SPDX-License-Identifier: Apache-2.0 */
/* Relays never block, lose nothing, and escape what a terminal would obey. */
#include "runtime/jail/relay.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/base/files/fd.h"

struct ends {
	int write_fd, read_fd; /* ours: what goes in, what comes out */
	struct relay *relay;
};

static struct ends open_relay(bool escape)
{
	int in[2], out[2];
	struct relay *r = malloc(sizeof(*r));
	assert_non_null(r);
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	relay_init(r);
	fd_set_nonblocking(in[0]);
	fd_set_nonblocking(out[0]);
	r->in_fd = in[0];
	r->out_fd = out[1];
	r->owns_in = r->owns_out = r->is_caller_out = true;
	r->escape = escape;
	return (struct ends){ in[1], out[0], r };
}

static void close_relay(struct ends *e)
{
	relay_fini(e->relay);
	free(e->relay);
	close(e->write_fd);
	close(e->read_fd);
}

static enum relay_result step(struct relay *r)
{
	const uint8_t *bytes;
	size_t size;
	enum relay_result result = relay_fill(r, &bytes, &size);
	if (result == RELAY_MOVED)
		relay_pass(r);
	(void)relay_flush(r);
	return result;
}

static const char *read_out(struct ends *e)
{
	static char text[256];
	ssize_t got = read(e->read_fd, text, sizeof(text) - 1);
	text[got > 0 ? got : 0] = '\0';
	return text;
}

static void put(struct ends *e, const char *text)
{
	assert_int_equal(write(e->write_fd, text, strlen(text)), strlen(text));
}

static void bytes_pass_through_unchanged(void **state)
{
	(void)state;
	struct ends e = open_relay(false);
	put(&e, "\x1b[31mred\xff\n");
	assert_int_equal(step(e.relay), RELAY_MOVED);
	assert_string_equal(read_out(&e), "\x1b[31mred\xff\n");
	close_relay(&e);
}

static void a_terminal_sees_escapes_instead_of_control_characters(void **state)
{
	(void)state;
	struct ends e = open_relay(true);
	put(&e, "\x1b]0;owned\a\n");
	(void)step(e.relay);
	assert_string_equal(read_out(&e), "\\x1b]0;owned\\x07\n");
	close_relay(&e);
}

static void a_character_cut_by_a_chunk_is_shown_whole(void **state)
{
	(void)state;
	struct ends e = open_relay(true);
	put(&e, "gr\xc3");
	(void)step(e.relay);
	assert_string_equal(read_out(&e), "gr");
	put(&e, "\xbc\xc3\x9f");
	(void)step(e.relay);
	assert_string_equal(read_out(&e), "\xc3\xbc\xc3\x9f");
	close_relay(&e);
}

static void a_line_end_cut_by_a_chunk_stays_one(void **state)
{
	(void)state;
	struct ends e = open_relay(true);
	put(&e, "a\r");
	(void)step(e.relay);
	assert_string_equal(read_out(&e), "a");
	put(&e, "\nb\r");
	(void)step(e.relay);
	assert_string_equal(read_out(&e), "\r\nb");
	put(&e, "c\r");
	(void)step(e.relay);
	assert_string_equal(read_out(&e), "\\x0dc");
	close(e.write_fd);
	e.write_fd = -1;
	assert_int_equal(step(e.relay), RELAY_END);
	assert_string_equal(read_out(&e), "\\x0d");
	close_relay(&e);
}

static void half_a_character_at_the_end_is_not_lost(void **state)
{
	(void)state;
	struct ends e = open_relay(true);
	put(&e, "x\xe2\x82");
	(void)step(e.relay);
	close(e.write_fd);
	e.write_fd = -1;
	assert_int_equal(step(e.relay), RELAY_END);
	assert_string_equal(read_out(&e), "x\\xe2\\x82");
	close_relay(&e);
}

static void a_reader_that_does_not_read_never_blocks_the_relay(void **state)
{
	(void)state;
	struct ends e = open_relay(false);
	char chunk[8192];
	memset(chunk, 'x', sizeof(chunk));
	for (int i = 0; i < 64 && !relay_has_pending(e.relay); i++) {
		assert_int_equal(write(e.write_fd, chunk, sizeof(chunk)), sizeof(chunk));
		(void)step(e.relay);
	}
	assert_true(relay_has_pending(e.relay));
	assert_int_equal(relay_flush(e.relay), RELAY_AGAIN);
	close_relay(&e);
}

/* Its line discipline makes two bytes of each: room for one is room for none. */
static void a_terminal_that_is_not_read_never_blocks_the_relay(void **state)
{
	(void)state;
	if (access("/dev/ptmx", F_OK) < 0)
		skip(); /* a small /dev has no terminals */
	struct ends e = open_relay(false);
	int master_fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(master_fd >= 0);
	assert_int_equal(grantpt(master_fd) | unlockpt(master_fd), 0);
	int shared_fd = open(ptsname(master_fd), O_WRONLY | O_NOCTTY | O_CLOEXEC);
	assert_true(shared_fd >= 0);
	close(e.relay->out_fd);
	e.relay->out_fd = shared_fd;
	e.relay->owns_out = false;
	relay_own_output(e.relay);
	assert_int_not_equal(e.relay->out_fd, shared_fd);

	char lines[8192];
	memset(lines, '\n', sizeof(lines));
	for (int i = 0; i < 64 && !relay_has_pending(e.relay); i++) {
		assert_int_equal(write(e.write_fd, lines, sizeof(lines)), sizeof(lines));
		(void)step(e.relay);
	}
	assert_true(relay_has_pending(e.relay));
	assert_int_equal(fcntl(shared_fd, F_GETFL) & O_NONBLOCK, 0); /* the caller's is as it was */
	close_relay(&e);
	close(shared_fd);
	close(master_fd);
}

static void a_paused_relay_reads_nothing(void **state)
{
	(void)state;
	struct ends e = open_relay(false);
	put(&e, "later");
	e.relay->is_paused = true;
	assert_false(relay_wants_more(e.relay));
	assert_int_equal(step(e.relay), RELAY_AGAIN);
	assert_string_equal(read_out(&e), "");
	e.relay->is_paused = false;
	assert_true(relay_wants_more(e.relay));
	assert_int_equal(step(e.relay), RELAY_MOVED);
	assert_string_equal(read_out(&e), "later");
	close_relay(&e);
}

static void a_reader_that_goes_away_is_noticed(void **state)
{
	(void)state;
	struct ends e = open_relay(false);
	put(&e, "x");
	close(e.read_fd);
	e.read_fd = -1;
	const uint8_t *bytes;
	size_t size;
	assert_int_equal(relay_fill(e.relay, &bytes, &size), RELAY_MOVED);
	relay_pass(e.relay);
	assert_int_equal(relay_flush(e.relay), RELAY_END);
	relay_end_out(e.relay);
	assert_false(relay_has_pending(e.relay));
	close_relay(&e);
}

static void the_end_of_input_closes_our_out_side_once_all_is_written(void **state)
{
	(void)state;
	struct ends e = open_relay(false);
	put(&e, "last");
	close(e.write_fd);
	e.write_fd = -1;
	(void)step(e.relay);
	assert_int_equal(step(e.relay), RELAY_END);
	relay_end_in(e.relay);
	assert_string_equal(read_out(&e), "last");
	char byte;
	assert_int_equal(read(e.read_fd, &byte, 1), 0);
	close_relay(&e);
}

static void what_is_complete_ends_when_it_is_empty_though_somebody_holds_the_pipe(void **state)
{
	(void)state;
	struct ends e = open_relay(false);
	assert_int_equal(step(e.relay), RELAY_AGAIN);
	put(&e, "last words");
	relay_complete(e.relay);
	assert_int_equal(step(e.relay), RELAY_MOVED);
	assert_string_equal(read_out(&e), "last words");
	assert_int_equal(step(e.relay), RELAY_END);
	close_relay(&e);
}

static void a_completed_relay_ends_while_another_process_still_writes(void **state)
{
	(void)state;
	struct ends e = open_relay(false);
	int size = fcntl(e.write_fd, F_SETPIPE_SZ, 4096), taken = 0;
	assert_true(size > 0);
	relay_complete(e.relay);
	while (taken < 10 * size) {
		put(&e, "and another word\n");
		if (step(e.relay) == RELAY_END)
			break;
		taken += (int)strlen(read_out(&e));
	}
	assert_int_equal(taken, size);
	close_relay(&e);
}

static void the_farewell_follows_the_last_byte(void **state)
{
	(void)state;
	struct ends e = open_relay(false);
	e.relay->farewell = "\x04";
	put(&e, "exit");
	(void)step(e.relay);
	close(e.write_fd);
	e.write_fd = -1;
	assert_int_equal(step(e.relay), RELAY_END);
	assert_string_equal(read_out(&e), "exit\x04");
	close_relay(&e);
}

int main(void)
{
	(void)signal(SIGPIPE, SIG_IGN);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_pass_through_unchanged),
		cmocka_unit_test(a_terminal_sees_escapes_instead_of_control_characters),
		cmocka_unit_test(a_character_cut_by_a_chunk_is_shown_whole),
		cmocka_unit_test(a_line_end_cut_by_a_chunk_stays_one),
		cmocka_unit_test(half_a_character_at_the_end_is_not_lost),
		cmocka_unit_test(a_reader_that_does_not_read_never_blocks_the_relay),
		cmocka_unit_test(a_terminal_that_is_not_read_never_blocks_the_relay),
		cmocka_unit_test(a_paused_relay_reads_nothing),
		cmocka_unit_test(a_reader_that_goes_away_is_noticed),
		cmocka_unit_test(
		    what_is_complete_ends_when_it_is_empty_though_somebody_holds_the_pipe),
		cmocka_unit_test(a_completed_relay_ends_while_another_process_still_writes),
		cmocka_unit_test(the_farewell_follows_the_last_byte),
		cmocka_unit_test(the_end_of_input_closes_our_out_side_once_all_is_written),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
