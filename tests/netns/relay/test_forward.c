/* SPDX-License-Identifier: Apache-2.0 */
/* forward: one host port inside, both ways, for patient and hostile peers. */
/* WRAP: accept4 malloc epoll_ctl socket connect getsockopt getpeername recv send */
#include "netns/relay/forward.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "netns/rtnetlink/links.h"
#include "runtime/base/scope.h"
#include "tests/failing.h"
#include "tests/netns/turns.h"
#include "tests/patience.h"

#define PORT   80 /* below 1024: init has CAP_NET_BIND_SERVICE over its namespace */
#define CLOSED 7001
#define MIB    (1u << 20)

int __real_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags);

static int accept_error; /* what accept4(2) says; 0: the truth */
static unsigned accepts;

/* Calls of the forward's own while it serves. */
FAILS(void *, malloc, (size_t size), (size), NULL, ENOMEM)
FAILS(int, epoll_ctl, (int fd, int op, int other, struct epoll_event *event),
      (fd, op, other, event), -1, ENOSPC)
FAILS(int, socket, (int family, int type, int protocol), (family, type, protocol), -1, EMFILE)
FAILS(int, connect, (int fd, const struct sockaddr *to, socklen_t size), (fd, to, size), -1, EAGAIN)
FAILS(int, getsockopt, (int fd, int level, int name, void *out, socklen_t *size),
      (fd, level, name, out, size), -1, ENOBUFS)
FAILS(int, getpeername, (int fd, struct sockaddr *out, socklen_t *size), (fd, out, size), -1,
      ENOTCONN)
FAILS(ssize_t, recv, (int fd, void *bytes, size_t size, int flags), (fd, bytes, size, flags), -1,
      ECONNRESET)
FAILS(ssize_t, send, (int fd, const void *bytes, size_t size, int flags), (fd, bytes, size, flags),
      -1, EPIPE)

int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
	accepts++;
	if (accept_error == 0)
		return __real_accept4(fd, address, size, flags);
	errno = accept_error;
	return -1;
}

/* --- two namespaces in one process ---------------------------------------------- */

static int host_fd = -1, jail_fd = -1; /* network namespaces; -1: refused here */

static int new_namespace(int flags)
{
	struct cj_error err = { 0 };
	if (unshare(flags) < 0 || links_raise_loopback(&err) < 0)
		return -1;
	return open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
}

static void enter(int ns_fd)
{
	assert_int_equal(setns(ns_fd, CLONE_NEWNET), 0);
}

static void make_namespaces(void)
{
	host_fd = new_namespace(CLONE_NEWUSER | CLONE_NEWNET);
	if (host_fd >= 0)
		jail_fd = new_namespace(CLONE_NEWNET);
	if (jail_fd >= 0)
		enter(host_fd);
}

static size_t open_descriptors(void)
{
	size_t count = 0;
	auto_dir DIR *dir = opendir("/proc/self/fd");
	assert_non_null(dir);
	while (readdir(dir))
		count++;
	return count;
}

/* --- the world of a test --------------------------------------------------------- */

struct world {
	struct forward *forward;
	int server_fd; /* listens on the host */
	size_t descriptors;
};

static int listen_on_host(uint16_t port)
{
	struct cj_error err = { 0 };
	int fd = forward_listen(INADDR_LOOPBACK, port, &err);
	if (fd < 0)
		fail_msg("%s", err.msg);
	return fd;
}

static int set_up(void **state)
{
	static struct world world;
	static const uint16_t ports[] = { PORT, CLOSED };
	struct cj_error err = { 0 };

	*state = NULL;
	if (jail_fd < 0)
		return 0;
	accept_error = 0;
	world.descriptors = open_descriptors();
	world.server_fd = listen_on_host(PORT);
	enter(jail_fd);
	int fds[] = { forward_listen(INADDR_LOOPBACK, ports[0], &err),
		      forward_listen(INADDR_LOOPBACK, ports[1], &err) };
	enter(host_fd);
	if (fds[0] < 0 || fds[1] < 0 || forward_create(fds, ports, 2, &world.forward, &err) < 0)
		fail_msg("%s", err.msg);
	*state = &world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;
	if (w) {
		forward_destroy(&w->forward);
		forward_destroy(&w->forward); /* of nothing: no harm */
		cj_close(&w->server_fd);
		assert_int_equal(open_descriptors(), w->descriptors);
	}
	return 0;
}

static int serve(void *world, struct cj_error *err)
{
	is_armed = true;
	int rc = forward_serve(((struct world *)world)->forward, err);
	is_armed = false;
	return rc;
}

/* One turn of the supervisor's loop. */
static bool turn(struct world *w)
{
	return turn_once(forward_fd(w->forward), patience_ms(10), serve, w);
}

/* Until there is nothing left to do. */
static void settle(struct world *w)
{
	for (int i = 0; i < 5000; i++)
		if (!turn(w))
			return;
	fail_msg("the forward never rests");
}

static int connect_inside(uint16_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	enter(jail_fd);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	enter(host_fd);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

/* The host's end of the next connection. */
static int accept_outside(struct world *w)
{
	int fd = -1;
	for (int i = 0; i < 2000 && fd < 0; i++) {
		(void)turn(w);
		fd = __real_accept4(w->server_fd, NULL, NULL, SOCK_CLOEXEC);
	}
	assert_true(fd >= 0);
	return fd;
}

static void expect_text(struct world *w, int fd, const char *text)
{
	char buffer[64] = { 0 };
	size_t size = 0, wanted = strlen(text);
	for (int i = 0; i < 2000 && size < wanted; i++) {
		(void)turn(w);
		ssize_t n = recv(fd, buffer + size, wanted - size, MSG_DONTWAIT);
		size += n > 0 ? (size_t)n : 0;
	}
	assert_string_equal(buffer, text);
}

/* What recv(2) says in the end: 0 for an end, or a negative errno. */
static int ending(struct world *w, int fd)
{
	char buffer[4096];
	for (int i = 0; i < 5000; i++) {
		ssize_t n = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
		if (n == 0)
			return 0;
		if (n < 0 && errno != EAGAIN)
			return -errno;
		if (n < 0)
			(void)turn(w);
	}
	return -EAGAIN;
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void reset(int *fd)
{
	struct linger now = { .l_onoff = 1 };
	assert_int_equal(setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	cj_close(fd);
}

/* Sends until nothing more goes; the number of bytes is bounded by the sockets' buffers and ours.
 */
static void stuff(struct world *w, int fd)
{
	static const char bytes[65536];
	size_t sent = 0;
	for (int idle = 0; idle < 5;) {
		ssize_t n = send(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL);
		sent += n > 0 ? (size_t)n : 0;
		idle = n > 0 || turn(w) ? 0 : idle + 1;
		assert_true(sent < 256u * MIB);
	}
}

/* Sends 16 KiB; false once they are not read at once. */
static bool send_more(struct world *w, int fd)
{
	static const char bytes[16384];
	assert_int_equal(send(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL),
			 sizeof(bytes));
	if (!turn(w))
		return false;
	settle(w);
	return true;
}

/* --- tests ----------------------------------------------------------------------- */

static void bytes_go_both_ways(void **state)
{
	struct world *w = world_of(state);
	auto_fd int client = connect_inside(PORT);
	auto_fd int server = accept_outside(w);
	say(client, "question");
	expect_text(w, server, "question");
	say(server, "answer");
	expect_text(w, client, "answer");
}

static void each_direction_ends_by_itself(void **state)
{
	struct world *w = world_of(state);
	auto_fd int client = connect_inside(PORT);
	auto_fd int server = accept_outside(w);
	say(client, "all");
	assert_int_equal(shutdown(client, SHUT_WR), 0);
	expect_text(w, server, "all");
	assert_int_equal(ending(w, server), 0);
	say(server, "late");
	expect_text(w, client, "late");
	assert_int_equal(shutdown(server, SHUT_WR), 0);
	assert_int_equal(ending(w, client), 0);
	settle(w);
}

static void a_port_without_a_listener_is_a_reset(void **state)
{
	struct world *w = world_of(state);
	auto_fd int client = connect_inside(CLOSED);
	assert_int_equal(ending(w, client), -ECONNRESET);
}

static void a_reset_is_passed_on_from_either_side(void **state)
{
	struct world *w = world_of(state);
	int client = connect_inside(PORT);
	auto_fd int server = accept_outside(w);
	settle(w);
	reset(&client);
	assert_int_equal(ending(w, server), -ECONNRESET);

	auto_fd int other_client = connect_inside(PORT);
	int other_server = accept_outside(w);
	settle(w);
	reset(&other_server);
	assert_int_equal(ending(w, other_client), -ECONNRESET);
}

static void a_reset_is_noticed_while_the_other_side_can_not_take_more(void **state)
{
	struct world *w = world_of(state);
	int client = connect_inside(PORT);
	auto_fd int server = accept_outside(w);
	stuff(w, client);
	reset(&client);
	settle(w);
	assert_int_equal(ending(w, server), -ECONNRESET);
	settle(w);
}

static void the_end_of_one_side_causes_no_busy_loop(void **state)
{
	struct world *w = world_of(state);
	auto_fd int client = connect_inside(PORT);
	int server = accept_outside(w);
	assert_int_equal(shutdown(client, SHUT_WR), 0);
	assert_int_equal(ending(w, server), 0);
	while (send_more(w, server))
		;
	cj_close(&server); /* its end is told at once: what it sent has left it */
	settle(w);
	assert_int_equal(ending(w, client), 0);
	settle(w);
}

static void a_client_that_never_reads_blocks_no_other(void **state)
{
	struct world *w = world_of(state);
	auto_fd int lazy_client = connect_inside(PORT);
	auto_fd int lazy_server = accept_outside(w);
	stuff(w, lazy_server);
	stuff(w, lazy_client);
	settle(w);

	auto_fd int client = connect_inside(PORT);
	auto_fd int server = accept_outside(w);
	say(client, "question");
	expect_text(w, server, "question");
	say(server, "answer");
	expect_text(w, client, "answer");
}

static void a_mebibyte_each_way_at_once_arrives_unchanged(void **state)
{
	struct world *w = world_of(state);
	auto_fd int client = connect_inside(PORT);
	auto_fd int server = accept_outside(w);
	uint8_t *sent = malloc(MIB), *got[2] = { malloc(MIB), malloc(MIB) };
	int fds[2] = { client, server };
	size_t out[2] = { 0 }, in[2] = { 0 };
	for (size_t i = 0; i < MIB; i++)
		sent[i] = (uint8_t)(i * 2654435761u >> 13);

	for (int i = 0; i < 100000 && in[0] + in[1] < 2 * MIB; i++) {
		for (int side = 0; side < 2; side++) {
			ssize_t n = send(fds[side], sent + out[side], MIB - out[side],
					 MSG_DONTWAIT | MSG_NOSIGNAL);
			out[side] += n > 0 ? (size_t)n : 0;
			n = recv(fds[side], got[side] + in[side], MIB - in[side], MSG_DONTWAIT);
			in[side] += n > 0 ? (size_t)n : 0;
		}
		(void)turn(w);
	}
	assert_memory_equal(got[0], sent, MIB);
	assert_memory_equal(got[1], sent, MIB);
	free(sent);
	free(got[0]);
	free(got[1]);
}

static void an_excess_connection_waits_until_one_ends(void **state)
{
	struct world *w = world_of(state);
	int clients[FORWARD_CONNECTIONS_MAX + 1], servers[FORWARD_CONNECTIONS_MAX];
	for (size_t i = 0; i < FORWARD_CONNECTIONS_MAX; i++) {
		clients[i] = connect_inside(PORT);
		servers[i] = accept_outside(w);
	}
	int *last = &clients[FORWARD_CONNECTIONS_MAX];
	*last = connect_inside(PORT);
	say(*last, "patience");
	settle(w);
	assert_int_equal(__real_accept4(w->server_fd, NULL, NULL, SOCK_CLOEXEC), -1);

	reset(&clients[7]);
	auto_fd int server = accept_outside(w);
	expect_text(w, server, "patience");
	for (size_t i = 0; i <= FORWARD_CONNECTIONS_MAX; i++)
		cj_close(&clients[i]);
	for (size_t i = 0; i < FORWARD_CONNECTIONS_MAX; i++)
		cj_close(&servers[i]);
}

static void without_descriptors_it_pauses_instead_of_a_busy_loop(void **state)
{
	struct world *w = world_of(state);
	auto_fd int client = connect_inside(PORT);
	accepts = 0;
	accept_error = EMFILE;
	for (int i = 0; i < 20; i++)
		(void)turn(w);
	assert_in_range(accepts, 1, 10); /* a spinning one asks in each turn */

	accept_error = 0;
	auto_fd int server = accept_outside(w);
	say(client, "hello");
	expect_text(w, server, "hello");
}

/* They are for looking after the jail: /proc, its cgroup. */
static void the_last_descriptors_are_not_used_for_connections(void **state)
{
	struct world *w = world_of(state);
	struct rlimit old, few;
	auto_fd int client = connect_inside(PORT), next = dup(0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = (struct rlimit){ (rlim_t)next + 10, old.rlim_max };
	accepts = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	for (int i = 0; i < 20; i++)
		(void)turn(w);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(accepts, 0);

	auto_fd int server = accept_outside(w);
	say(client, "hello");
	expect_text(w, server, "hello");
}

static void destroying_it_resets_connections_and_frees_the_port(void **state)
{
	struct world *w = world_of(state);
	struct cj_error err = { 0 };
	auto_fd int client = connect_inside(PORT);
	auto_fd int server = accept_outside(w);
	settle(w);
	forward_destroy(&w->forward);
	assert_int_equal(recv(client, &(char){ 0 }, 1, 0), -1);
	assert_int_equal(errno, ECONNRESET);
	assert_int_equal(recv(server, &(char){ 0 }, 1, 0), -1);
	assert_int_equal(errno, ECONNRESET);

	enter(jail_fd);
	int fd = forward_listen(INADDR_LOOPBACK, PORT, &err);
	enter(host_fd);
	assert_true(fd >= 0);
	cj_close(&fd);
}

static void a_port_that_is_in_use_is_named(void **state)
{
	(void)world_of(state);
	struct cj_error err = { 0 };
	enter(jail_fd);
	int rc = forward_listen(INADDR_LOOPBACK, PORT, &err);
	enter(host_fd);
	assert_int_equal(rc, -EADDRINUSE);
	assert_string_equal(err.msg, "bind port 80 of the jail's loopback: Address already in use");
	assert_string_equal(err.hint, "name each port once");
}

static void listeners_stay_the_callers_when_it_can_not_be_created(void **state)
{
	(void)world_of(state);
	struct cj_error err = { 0 };
	struct forward *f = NULL;
	struct rlimit old, none = { 0 };
	uint16_t port = CLOSED + 1;
	auto_fd int fd = listen_on_host(port);

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	int rc = forward_create(&fd, &port, 1, &f, &err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(rc, -EMFILE);
	assert_null(f);
	assert_true(fcntl(fd, F_GETFD) >= 0);
}

enum exchange { ANSWERED, ENDED, NEITHER };

/* A question from inside, an answer from the host: what the client sees of it. */
static enum exchange exchange(struct world *w)
{
	auto_fd int client = connect_inside(PORT);
	auto_fd int server = -1;
	enum exchange seen = NEITHER;
	char byte;
	say(client, "q");
	for (int i = 0; i < 500 && seen == NEITHER; i++) {
		(void)turn(w);
		if (server < 0)
			server = __real_accept4(w->server_fd, NULL, NULL, SOCK_CLOEXEC);
		if (server >= 0 && recv(server, &byte, 1, MSG_DONTWAIT) == 1)
			(void)send(server, "a", 1, MSG_NOSIGNAL);
		ssize_t got = recv(client, &byte, 1, MSG_DONTWAIT);
		if (got > 0)
			seen = ANSWERED;
		else if (got == 0 || errno != EAGAIN)
			seen = ENDED;
	}
	return seen;
}

static void after_any_failure_of_a_connection_the_next_one_works(void **state)
{
	struct world *w = world_of(state);
	unsigned ended = 0;
	*calls = 0;
	assert_int_equal(exchange(w), ANSWERED);
	int needed = *calls;
	for (int turn_of = 1; turn_of <= needed; turn_of++) {
		*calls = 0;
		fail_at = turn_of;
		enum exchange seen = exchange(w);
		fail_at = 0;
		if (seen == NEITHER)
			fail_msg("call %d: the client waits for ever", turn_of);
		ended += seen == ENDED;
		settle(w);
		assert_int_equal(exchange(w), ANSWERED);
		settle(w);
	}
	assert_true(ended > 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(bytes_go_both_ways),
		TEST(each_direction_ends_by_itself),
		TEST(a_port_without_a_listener_is_a_reset),
		TEST(a_reset_is_passed_on_from_either_side),
		TEST(a_reset_is_noticed_while_the_other_side_can_not_take_more),
		TEST(the_end_of_one_side_causes_no_busy_loop),
		TEST(a_client_that_never_reads_blocks_no_other),
		TEST(a_mebibyte_each_way_at_once_arrives_unchanged),
		TEST(an_excess_connection_waits_until_one_ends),
		TEST(without_descriptors_it_pauses_instead_of_a_busy_loop),
		TEST(the_last_descriptors_are_not_used_for_connections),
		TEST(destroying_it_resets_connections_and_frees_the_port),
		TEST(after_any_failure_of_a_connection_the_next_one_works),
		TEST(a_port_that_is_in_use_is_named),
		TEST(listeners_stay_the_callers_when_it_can_not_be_created),
	};
	make_namespaces();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
