/* SPDX-License-Identifier: Apache-2.0 */
/* Messages with descriptors: what a receiver holds afterwards is what it has asked for. */
#include "runtime/base/unix.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "runtime/base/error.h"
#include "runtime/base/scope.h"
#include "tests/forked.h"

struct pair {
	int fds[2];
};

static struct pair open_pair(int type)
{
	struct pair pair;
	assert_int_equal(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair.fds), 0);
	return pair;
}

static void close_pair(struct pair *pair)
{
	cj_close(&pair->fds[0]);
	cj_close(&pair->fds[1]);
}

static int count_descriptors(void)
{
	int count = 0;
	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* Sends "word" with so many descriptors of /dev/null. */
static void send_word(int sock_fd, size_t nfds)
{
	char text[] = "word";
	int fds[UNIX_FDS_MAX];
	struct iovec part = { text, 4 };
	const struct unix_message m = { .parts = &part, .nparts = 1, .fds = fds, .nfds = nfds };
	for (size_t i = 0; i < nfds; i++)
		assert_true((fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0);
	assert_int_equal(unix_send_message(sock_fd, &m), 4);
	for (size_t i = 0; i < nfds; i++)
		cj_close(&fds[i]);
}

struct received {
	char text[8];
	int fds[UNIX_FDS_MAX];
	struct iovec part;
	struct unix_message m;
};

static ssize_t receive(int sock_fd, size_t size, size_t room, struct received *r)
{
	memset(r, 0, sizeof(*r));
	r->part = (struct iovec){ r->text, size };
	r->m = (struct unix_message){ .parts = &r->part, .nparts = 1, .fds = r->fds, .nfds = room };
	return unix_receive_message(sock_fd, &r->m);
}

static void close_received(struct received *r)
{
	for (size_t i = 0; i < r->m.nfds; i++)
		cj_close(&r->fds[i]);
}

static void descriptors_arrive_and_close_at_exec(void **state)
{
	(void)state;
	struct pair pair = open_pair(SOCK_SEQPACKET);
	struct received r;
	send_word(pair.fds[0], UNIX_FDS_MAX);
	assert_int_equal(receive(pair.fds[1], 4, UNIX_FDS_MAX, &r), 4);
	assert_memory_equal(r.text, "word", 4);
	assert_int_equal(r.m.nfds, UNIX_FDS_MAX);
	assert_false(r.m.is_cut);
	for (size_t i = 0; i < r.m.nfds; i++)
		assert_int_equal(fcntl(r.fds[i], F_GETFD), FD_CLOEXEC);
	close_received(&r);
	close_pair(&pair);
}

static void descriptors_without_room_are_closed(void **state)
{
	(void)state;
	struct pair pair = open_pair(SOCK_SEQPACKET);
	/* The space for a sender's name in the control message has room for some of them: the
	 * kernel installs those, although fds[] has none. */
	for (size_t room = 0; room < 6; room++) {
		struct received r;
		const int before = count_descriptors();
		send_word(pair.fds[0], 12);
		assert_int_equal(receive(pair.fds[1], 4, room, &r), 4);
		assert_int_equal(r.m.nfds, room);
		assert_true(r.m.is_cut);
		assert_int_equal(count_descriptors(), before + (int)room);
		close_received(&r);
		assert_int_equal(count_descriptors(), before);
	}
	close_pair(&pair);
}

static void a_message_longer_than_its_parts_is_cut(void **state)
{
	(void)state;
	struct pair pair = open_pair(SOCK_SEQPACKET);
	struct received r;
	send_word(pair.fds[0], 0);
	assert_int_equal(receive(pair.fds[1], 3, 0, &r), 3);
	assert_true(r.m.is_cut);
	close_pair(&pair);
}

static void a_sender_has_its_name_where_it_is_asked_for(void **state)
{
	(void)state;
	const int on = 1;
	struct pair pair = open_pair(SOCK_SEQPACKET);
	struct received r;
	send_word(pair.fds[0], 1);
	assert_int_equal(receive(pair.fds[1], 4, 1, &r), 4);
	assert_int_equal(r.m.pid, 0);
	close_received(&r);

	assert_int_equal(setsockopt(pair.fds[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)), 0);
	send_word(pair.fds[0], 1);
	assert_int_equal(receive(pair.fds[1], 4, 1, &r), 4);
	assert_int_equal(r.m.pid, getpid());
	assert_int_equal(r.m.uid, getuid());
	assert_int_equal(r.m.nfds, 1);
	close_received(&r);
	close_pair(&pair);
}

static void the_end_of_a_connection_is_no_message_and_no_signal(void **state)
{
	(void)state;
	struct pair pair = open_pair(SOCK_STREAM);
	struct received r;
	char text[] = "word";
	cj_close(&pair.fds[0]);
	assert_int_equal(receive(pair.fds[1], 4, 0, &r), 0);
	assert_int_equal(unix_send(pair.fds[1], text, 4, STDIN_FILENO), EPIPE);
	close_pair(&pair);
}

static void bytes_that_do_not_fit_at_once_follow_their_descriptor(void **state)
{
	(void)state;
	static char large[1 << 20];
	struct pair pair = open_pair(SOCK_STREAM);
	size_t got = 0, fds = 0;
	pid_t child = test_fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(unix_send(pair.fds[0], large, sizeof(large), STDERR_FILENO));
	cj_close(&pair.fds[0]);
	for (;;) {
		char bytes[4096];
		int fd;
		struct iovec part = { bytes, sizeof(bytes) };
		struct unix_message m = { .parts = &part, .nparts = 1, .fds = &fd, .nfds = 1 };
		ssize_t n = unix_receive_message(pair.fds[1], &m);
		assert_true(n >= 0);
		if (n == 0)
			break;
		got += (size_t)n;
		fds += m.nfds;
		if (m.nfds > 0)
			cj_close(&fd);
	}
	assert_int_equal(got, sizeof(large));
	assert_int_equal(fds, 1);
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close_pair(&pair);
}

static void what_is_no_address_of_a_datagram_socket_is_refused(void **state)
{
	(void)state;
	static const char *const words[] = { "", "@", "/", "relative", "vsock:2:1" };
	char longer[128];
	struct cj_error err;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		assert_int_equal(unix_connect_datagram(words[i], &err), -EINVAL);
	memset(longer, 'a', sizeof(longer) - 1);
	longer[0] = '/';
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(unix_connect_datagram(longer, &err), -EINVAL);
	assert_int_equal(unix_connect_datagram("@cejail-nobody-has-this-name", &err),
			 -ECONNREFUSED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(descriptors_arrive_and_close_at_exec),
		cmocka_unit_test(descriptors_without_room_are_closed),
		cmocka_unit_test(a_message_longer_than_its_parts_is_cut),
		cmocka_unit_test(a_sender_has_its_name_where_it_is_asked_for),
		cmocka_unit_test(the_end_of_a_connection_is_no_message_and_no_signal),
		cmocka_unit_test(bytes_that_do_not_fit_at_once_follow_their_descriptor),
		cmocka_unit_test(what_is_no_address_of_a_datagram_socket_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
