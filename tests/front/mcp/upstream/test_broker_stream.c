/* SPDX-License-Identifier: Apache-2.0 */
/* The socket of a run's calls at the broker: what happens if it cannot be watched. */
#include "runtime/front/mcp/upstream/broker.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "runtime/base/scope.h"

/* epoll(7) watches no file. */
static void a_file_is_refused_and_closed(void **state)
{
	static struct broker b;
	struct loop loop = LOOP_NULL;
	struct broker_stream s = { 0 };
	struct cj_error err = { 0 };
	int fd = memfd_create("calls", MFD_CLOEXEC);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(loop_open(&loop, &err), 0);
	b.loop = &loop;
	assert_int_equal(broker_stream_open(&s, &b, fd, &err), -EPERM);
	assert_non_null(strstr(err.msg, "watch"));
	assert_null(strstr(err.msg, "standard input"));
	broker_stream_close(&s);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_int_equal(errno, EBADF);
	loop_close(&loop);
}

/* So the engine fails the program's calls at once. */
static void a_socket_that_cannot_be_watched_is_closed_in_both_directions(void **state)
{
	static struct broker b;
	struct loop none = LOOP_NULL;
	struct broker_stream s = { 0 };
	struct cj_error err = { 0 };
	int ends[2];
	char byte;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	b.loop = &none;
	assert_true(broker_stream_open(&s, &b, ends[0], &err) < 0);
	broker_stream_close(&s);
	assert_int_equal(recv(ends[1], &byte, 1, MSG_DONTWAIT), 0);
	assert_int_equal(send(ends[1], "x", 1, MSG_NOSIGNAL), -1);
	assert_int_equal(errno, EPIPE);
	cj_close(&ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_refused_and_closed),
		cmocka_unit_test(a_socket_that_cannot_be_watched_is_closed_in_both_directions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
