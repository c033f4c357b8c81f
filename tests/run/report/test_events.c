/* SPDX-License-Identifier: Apache-2.0 */
/* Events never wait for their reader, and what is left out is said. */
/* WRAP: poll clock_ms byte_queue_add_all */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "runtime/base/scope.h"
#include "runtime/run/report/events.h"
#include "runtime/jail/jail.h"
#include "runtime/jail/outcome.h"
#include "tests/forked.h"
#include "tests/patience.h"

#define auto_events __attribute__((cleanup(events_fini)))

struct reader {
	int read_fd, write_fd;
	char text[4u << 20];
	size_t size;
};

static struct reader reader;

static uint64_t now_ms = 5000; /* the clock of the events */

uint64_t __wrap_clock_ms(void);

uint64_t __wrap_clock_ms(void)
{
	return now_ms;
}

static bool has_no_memory; /* for a call */

int __real_byte_queue_add_all(struct byte_queue *q, const struct blob *parts, size_t count);
int __wrap_byte_queue_add_all(struct byte_queue *q, const struct blob *parts, size_t count);

int __wrap_byte_queue_add_all(struct byte_queue *q, const struct blob *parts, size_t count)
{
	return has_no_memory ? -ENOMEM : __real_byte_queue_add_all(q, parts, count);
}

static unsigned signals_left; /* so many waits end by a signal */

int __real_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	if (signals_left == 0)
		return __real_poll(fds, count, timeout_ms);
	signals_left--;
	errno = EINTR;
	return -1;
}

static int open_reader(void **state)
{
	(void)state;
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	reader.read_fd = ends[0];
	reader.write_fd = ends[1];
	reader.size = 0;
	return 0;
}

static int close_reader(void **state)
{
	(void)state;
	cj_close(&reader.read_fd);
	cj_close(&reader.write_fd);
	return 0;
}

/* What can be read now. */
static const char *read_now(void)
{
	(void)fcntl(reader.read_fd, F_SETFL, O_NONBLOCK);
	for (ssize_t got; (got = read(reader.read_fd, reader.text + reader.size,
				      sizeof(reader.text) - 1 - reader.size)) > 0;)
		reader.size += (size_t)got;
	reader.text[reader.size] = '\0';
	return reader.text;
}

static void a_json_line_is_added_or_counted_as_dropped(void **state)
{
	(void)state;
	static char line[EVENTS_QUEUE_MAX / 4];
	auto_events struct events e;
	events_init(&e, reader.write_fd);
	events_add_json(&e, "{\"type\":\"start\"}", 16);
	assert_string_equal(read_now(), "{\"type\":\"start\"}\n");

	memset(line, 'x', sizeof(line));
	for (size_t i = 0; i < 8; i++) /* nobody reads */
		events_add_json(&e, line, sizeof(line));
	assert_true(e.dropped > 0);
	assert_true(e.queue.end - e.queue.start <= EVENTS_QUEUE_MAX);
}

static void output_is_an_event_as_soon_as_it_arrives(void **state)
{
	(void)state;
	auto_events struct events e;
	events_init(&e, reader.write_fd);
	events_add_output(&e, 0, "one\n", 4);
	assert_string_equal(read_now(), "{\"type\":\"stdout\",\"at_ms\":0,\"text\":\"one\\n\"}\n");
	events_add_output(&e, 1, "two", 3);
	assert_non_null(strstr(read_now(), "{\"type\":\"stderr\",\"at_ms\":0,\"text\":\"two\"}\n"));
}

static void events_have_the_time_since_the_first_one(void **state)
{
	(void)state;
	auto_events struct events e;
	events_init(&e, reader.write_fd);
	events_add_start(&e, "id");
	assert_non_null(strstr(read_now(), "{\"type\":\"start\",\"at_ms\":0,"));
	now_ms += 70;
	events_add_denied(&e, &(struct jail_denied){ .syscall = "mount" });
	assert_non_null(
	    strstr(read_now(), "{\"type\":\"denied\",\"at_ms\":70,\"syscall\":\"mount\"}\n"));
}

static void bytes_that_are_no_text_come_as_base64(void **state)
{
	(void)state;
	auto_events struct events e;
	events_init(&e, reader.write_fd);
	events_add_output(&e, 0, "\xff\xfe", 2);
	assert_string_equal(read_now(), "{\"type\":\"stdout\",\"at_ms\":0,\"base64\":\"//4=\"}\n");
}

static void a_character_in_two_pieces_is_joined(void **state)
{
	(void)state;
	auto_events struct events e;
	events_init(&e, reader.write_fd);
	events_add_output(&e, 0, "a\xe2\x82", 3);
	events_add_output(&e, 1, "\xf0", 1); /* each stream carries its own */
	assert_string_equal(read_now(), "{\"type\":\"stdout\",\"at_ms\":0,\"text\":\"a\"}\n");
	events_add_output(&e, 0, "\xac", 1);
	assert_non_null(
	    strstr(read_now(), "{\"type\":\"stdout\",\"at_ms\":0,\"text\":\"\xe2\x82\xac\"}\n"));
}

static void half_a_character_at_the_end_is_not_lost(void **state)
{
	(void)state;
	auto_events struct events e;
	struct cj_error err = { 0 };
	events_init(&e, reader.write_fd);
	events_add_output(&e, 0, "\xe2\x82", 2);
	assert_int_equal(events_finish(&e, "{}", 2, &err), 0);
	assert_string_equal(read_now(), "{\"type\":\"stdout\",\"at_ms\":0,\"base64\":\"4oI=\"}\n"
					"{\"type\":\"result\",\"result\":{}}\n");
}

static void an_added_line_follows_all_events_and_precedes_the_result(void **state)
{
	(void)state;
	auto_events struct events e;
	auto_json_writer struct json_writer *line = json_writer_create(false);
	struct cj_error err = { 0 };
	json_open_object(line);
	json_close_object(line);
	events_init(&e, reader.write_fd);
	events_add_output(&e, 0, "a\xe2\x82", 3);
	assert_int_equal(events_add_line(&e, line, &err), 0);
	assert_int_equal(events_finish(&e, "[]", 2, &err), 0);
	assert_string_equal(read_now(), "{\"type\":\"stdout\",\"at_ms\":0,\"text\":\"a\"}\n"
					"{\"type\":\"stdout\",\"at_ms\":0,\"base64\":\"4oI=\"}\n"
					"{}\n"
					"{\"type\":\"result\",\"result\":[]}\n");
}

static void a_signal_while_the_result_is_written_does_not_truncate_it(void **state)
{
	(void)state;
	auto_events struct events e;
	struct cj_error err = { 0 };
	events_init(&e, reader.write_fd);
	signals_left = 2;
	assert_int_equal(events_finish(&e, "[]", 2, &err), 0);
	assert_int_equal(signals_left, 0);
	assert_string_equal(read_now(), "{\"type\":\"result\",\"result\":[]}\n");
}

static void start_and_denied_events_have_their_own_members(void **state)
{
	(void)state;
	auto_events struct events e;
	events_init(&e, reader.write_fd);
	events_add_start(&e, "ID-1");
	e.timeout_ms = 1500;
	events_add_start(&e, "ID-2");
	events_add_denied(&e, &(struct jail_denied){ .syscall = "mount" });
	const char *text = read_now();
	assert_memory_equal(text, "{\"type\":\"start\",\"at_ms\":0,\"id\":\"ID-1\",\"time\":\"20",
			    48);
	assert_non_null(strstr(
	    text, "Z\",\"timeout_ms\":null}\n{\"type\":\"start\",\"at_ms\":0,\"id\":\"ID-2\""));
	assert_non_null(strstr(text, "Z\",\"timeout_ms\":1500}\n"));
	assert_non_null(strstr(text, "{\"type\":\"denied\",\"at_ms\":0,\"syscall\":\"mount\"}\n"));
}

static void a_denied_packet_is_an_event_with_its_row(void **state)
{
	(void)state;
	auto_events struct events e;
	const struct denial d = { NET_METADATA, 6, { 4, { 169, 254, 169, 254 } }, 80, 2 };
	events_init(&e, reader.write_fd);
	events_add_denied(&e, &(struct jail_denied){ .packet = &d });
	assert_string_equal(read_now(),
			    "{\"type\":\"denied\",\"at_ms\":0,\"network\":{\"class\":\"metadata\","
			    "\"protocol\":\"tcp\",\"address\":\"169.254.169.254\",\"port\":80,"
			    "\"count\":2}}\n");
}

static void a_network_that_is_ready_or_failed_is_an_event(void **state)
{
	(void)state;
	auto_events struct events e;
	const struct network_outcome ready = { .state = NETWORK_READY, .uplink = UPLINK_PASTA };
	const struct network_outcome failed = { .state = NETWORK_FAILED, .why = "no \"tun\"" };
	events_init(&e, reader.write_fd);
	events_add_network(&e, &ready);
	events_add_network(&e, &failed);
	assert_string_equal(
	    read_now(),
	    "{\"type\":\"network\",\"at_ms\":0,\"state\":\"ready\",\"reason\":null,"
	    "\"uplink\":\"pasta\"}\n"
	    "{\"type\":\"network\",\"at_ms\":0,\"state\":\"failed\",\"reason\":\"no \\\"tun\\\"\","
	    "\"uplink\":null}\n");
	events_fini(&e);
	events_add_network(&e, &ready); /* nobody listens */
	assert_null(e.queue.bytes);
}

static void denied_packets_do_not_wait_for_the_reader(void **state)
{
	(void)state;
	auto_events struct events e;
	const struct denial d = { NET_PRIVATE, 17, { 4, { 10, 0, 0, 5 } }, 53, 1 };
	events_init(&e, reader.write_fd);
	(void)alarm(patience_s(120)); /* only a test that hangs meets it */
	for (unsigned i = 0; i < 20000; i++)
		events_add_denied(&e, &(struct jail_denied){ .packet = &d });
	(void)alarm(0);
	assert_true(e.dropped > 0);
	assert_true(e.queue.room <= EVENTS_QUEUE_MAX);
	events_fini(&e);
	events_add_denied(&e, &(struct jail_denied){ .packet = &d }); /* nobody listens */
	assert_null(e.queue.bytes);
}

/* Nobody reads: were it to wait, the alarm would end the test. */
static void a_reader_that_stops_costs_no_time_and_bounded_memory(void **state)
{
	(void)state;
	static char chunk[10000];
	auto_events struct events e;
	memset(chunk, 'x', sizeof(chunk));
	events_init(&e, reader.write_fd);
	(void)alarm(patience_s(120)); /* only a test that hangs meets it */
	for (unsigned i = 0; i < 1000; i++)
		events_add_output(&e, 0, chunk, sizeof(chunk));
	(void)alarm(0);
	assert_true(e.dropped > 800);
	assert_true(e.queue.room <= EVENTS_QUEUE_MAX);
}

static void waiting_for_room_loses_no_event(void **state)
{
	(void)state;
	static char chunk[60000];
	auto_events struct events e;
	size_t told = 0;
	memset(chunk, 'x', sizeof(chunk));
	events_init(&e, reader.write_fd);
	for (; told < 100 && events_has_room(&e); told++)
		events_add_output(&e, 0, chunk, sizeof(chunk));
	assert_in_range(told, 2, 50);
	while (!events_has_room(&e))
		(void)read_now();
	events_add_output(&e, 1, "again", 5);
	assert_int_equal(e.dropped, 0);

	cj_close(&reader.read_fd);
	assert_true(events_has_room(&e)); /* nobody is waited for */
}

static void dropped_events_are_counted_in_the_stream(void **state)
{
	(void)state;
	static char chunk[60000];
	auto_events struct events e;
	memset(chunk, 'x', sizeof(chunk));
	events_init(&e, reader.write_fd);
	for (unsigned i = 0; i < 40; i++)
		events_add_output(&e, 0, chunk, sizeof(chunk));
	assert_true(e.dropped > 0);
	for (unsigned i = 0; i < 40; i++) { /* the reader is back */
		(void)read_now();
		events_add_output(&e, 1, "again", 5);
	}

	const char *dropped = strstr(read_now(), "{\"type\":\"dropped\",\"at_ms\":0,\"events\":");
	unsigned long left_out = 0;
	assert_non_null(dropped);
	assert_int_equal(
	    sscanf(dropped, "{\"type\":\"dropped\",\"at_ms\":0,\"events\":%lu}", &left_out), 1);
	assert_null(strstr(strchr(dropped, '\n'), "dropped")); /* said once */
	assert_null(strstr(dropped, "stdout"));
	assert_non_null(strstr(dropped, "again"));

	size_t lines = 0;
	for (const char *at = reader.text; (at = strstr(at, "\"type\":\"std")); at++)
		lines++;
	assert_int_equal(lines + left_out, 80);
}

static void a_closed_reader_ends_only_the_events(void **state)
{
	(void)state;
	auto_events struct events e;
	struct cj_error err = { 0 };
	events_init(&e, reader.write_fd);
	cj_close(&reader.read_fd);
	events_add_output(&e, 0, "lost", 4);
	assert_true(e.is_gone);
	events_add_output(&e, 0, "lost", 4);
	assert_int_equal(events_finish(&e, "{}", 2, &err), -EPIPE);
}

static void a_result_larger_than_the_pipe_is_waited_for(void **state)
{
	(void)state;
	static char result[2u << 20];
	auto_events struct events e;
	struct cj_error err = { 0 };
	memset(result, '1', sizeof(result));
	events_init(&e, reader.write_fd);

	pid_t pid = test_fork();
	assert_true(pid >= 0);
	if (pid == 0) { /* a reader that takes its time */
		static char sink[65536];
		size_t size = 0;
		(void)close(reader.write_fd);
		for (ssize_t got; (got = read(reader.read_fd, sink, sizeof(sink))) > 0;)
			size += (size_t)got;
		_exit(size == sizeof(result) + strlen("{\"type\":\"result\",\"result\":}\n") ? 0
											     : 1);
	}
	assert_int_equal(events_finish(&e, result, sizeof(result), &err), 0);
	cj_close(&reader.write_fd);
	int status = -1;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void without_a_destination_nothing_is_written(void **state)
{
	(void)state;
	auto_events struct events e;
	struct cj_error err = { 0 };
	events_init(&e, -1);
	events_add_output(&e, 0, "x", 1);
	assert_int_equal(events_finish(&e, "{}", 2, &err), 0);
	assert_null(e.queue.bytes);
}

static void a_call_with_its_arguments_is_told_or_said_to_be_lost(void **state)
{
	(void)state;
	static const struct jail_call call = {
		.id = 7, .name = "a", .arguments = "{ }", .arguments_size = 3
	};
	auto_events struct events e;
	events_init(&e, reader.write_fd);
	assert_true(events_add_call(&e, &call, true));
	assert_string_equal(read_now(), "{\"type\":\"call\",\"at_ms\":0,\"call\":7,\"name\":\"a\","
					"\"arguments\":{ }}\n");
	has_no_memory = true;
	assert_false(events_add_call(&e, &call, true));
	has_no_memory = false;
	assert_int_equal(e.dropped, 1);
	e.is_gone = true;
	assert_false(events_add_call(&e, &call, true));
	assert_true(events_add_call(&e, &call, false)); /* its caller gets it another way */
}

#define WITH_READER(test) cmocka_unit_test_setup_teardown(test, open_reader, close_reader)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_READER(a_json_line_is_added_or_counted_as_dropped),
		WITH_READER(output_is_an_event_as_soon_as_it_arrives),
		WITH_READER(events_have_the_time_since_the_first_one),
		WITH_READER(bytes_that_are_no_text_come_as_base64),
		WITH_READER(a_character_in_two_pieces_is_joined),
		WITH_READER(half_a_character_at_the_end_is_not_lost),
		WITH_READER(an_added_line_follows_all_events_and_precedes_the_result),
		WITH_READER(a_signal_while_the_result_is_written_does_not_truncate_it),
		WITH_READER(start_and_denied_events_have_their_own_members),
		WITH_READER(a_denied_packet_is_an_event_with_its_row),
		WITH_READER(a_network_that_is_ready_or_failed_is_an_event),
		WITH_READER(denied_packets_do_not_wait_for_the_reader),
		WITH_READER(a_reader_that_stops_costs_no_time_and_bounded_memory),
		WITH_READER(waiting_for_room_loses_no_event),
		WITH_READER(dropped_events_are_counted_in_the_stream),
		WITH_READER(a_closed_reader_ends_only_the_events),
		WITH_READER(a_result_larger_than_the_pipe_is_waited_for),
		WITH_READER(a_call_with_its_arguments_is_told_or_said_to_be_lost),
		WITH_READER(without_a_destination_nothing_is_written),
	};
	(void)signal(SIGPIPE, SIG_IGN); /* as main() does */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
