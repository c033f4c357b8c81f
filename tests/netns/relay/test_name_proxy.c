/* SPDX-License-Identifier: Apache-2.0 */
/* name_proxy: connections whose names are checked, between a client and a server of one host. */
/* WRAP: getsockopt clock_ms */
#include "netns/relay/name_proxy.h"

#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "netns/relay/tcp_proxy.h"
#include "netns/rtnetlink/links.h"
#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "tests/netns/turns.h"
#include "tests/patience.h"

#define SERVER 7000

#define GET "GET / HTTP/1.1\r\nHost: good.org\r\n\r\n"
#define BAD "GET / HTTP/1.1\r\nHost: evil.org\r\n\r\n"

struct world {
	struct name_proxy *proxy;
	int server_fd;
	struct name_destination to; /* of every connection; port 0: the kernel knows none */
	const char *refused;
	unsigned asked, nameless, again, dialed;
};

static struct world world;
static uint64_t later_ms; /* that the clock is ahead */
static bool has_users;    /* a namespace of them */

uint64_t __real_clock_ms(void);
uint64_t __wrap_clock_ms(void);
uint64_t __wrap_clock_ms(void)
{
	return __real_clock_ms() + later_ms;
}

int __real_getsockopt(int fd, int level, int name, void *out, socklen_t *size);
int __wrap_getsockopt(int fd, int level, int name, void *out, socklen_t *size);
int __wrap_getsockopt(int fd, int level, int name, void *out, socklen_t *size)
{
	if (name != 80 || (level != IPPROTO_IP && level != IPPROTO_IPV6))
		return __real_getsockopt(fd, level, name, out, size);
	struct sockaddr_storage at;
	if (world.to.port == 0) {
		errno = ENOENT;
		return -1;
	}
	*size = ip_socket_address(&world.to.address, world.to.port, &at);
	memcpy(out, &at, *size);
	return 0;
}

static bool may(void *context, const char *name, const struct name_destination *to, bool is_again)
{
	struct world *w = context;
	assert_int_equal(to->port, w->to.port);
	assert_true(ip_equal(&to->address, &w->to.address));
	w->asked += name[0] != '\0' && !is_again;
	w->nameless += name[0] == '\0';
	w->again += is_again;
	return name[0] && strcmp(name, w->refused) != 0;
}

static int dial(void *context, const struct name_destination *to)
{
	struct world *w = context;
	struct sockaddr_storage at;
	socklen_t size = ip_socket_address(&to->address, to->port, &at);
	w->dialed++;
	return tcp_proxy_dial((struct sockaddr *)&at, size, SOCK_STREAM);
}

static struct sockaddr_in loopback(uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return at;
}

static int set_up(void **state)
{
	const struct name_proxy_calls calls = { may, dial, &world };
	const struct sockaddr_in at = loopback(SERVER);
	struct cj_error err = { 0 };
	*state = NULL;
	/* another one for each test: ports of the last one are in TIME_WAIT */
	if (!has_users || unshare(CLONE_NEWNET) < 0 || links_raise_loopback(&err) < 0)
		return 0;
	later_ms = 0;
	world = (struct world){ .to = { { 4, { 127, 0, 0, 1 } }, SERVER }, .refused = "evil.org" };
	world.server_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(world.server_fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(world.server_fd, 8), 0);
	int listen_fd = name_proxy_listen(4, &err);
	if (listen_fd < 0 || name_proxy_create(listen_fd, -1, &calls, &world.proxy, &err) < 0)
		fail_msg("%s", err.msg);
	*state = &world;
	return 0;
}

static int tear_down(void **state)
{
	if (*state) {
		name_proxy_destroy(&world.proxy);
		cj_close(&world.server_fd);
	}
	return 0;
}

static int serve(void *w, struct cj_error *err)
{
	return name_proxy_serve(((struct world *)w)->proxy, err);
}

static bool turn(int ms)
{
	return turn_once(name_proxy_fd(world.proxy), ms, serve, &world);
}

static int connect_client(void)
{
	const struct sockaddr_in at = loopback(NAME_PROXY_PORT);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

static void say(int fd, const void *bytes, size_t size)
{
	assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), size);
}

static void write_text(int fd, const char *text)
{
	say(fd, text, strlen(text));
}

/* What the proxy's side of this connection sends: its bytes, 0 at the end, or -errno. */
static ssize_t hear(int fd, void *bytes, size_t size)
{
	const uint64_t until_ms = __real_clock_ms() + (uint64_t)patience_ms(20000);
	while (__real_clock_ms() < until_ms) {
		ssize_t got = recv(fd, bytes, size, MSG_DONTWAIT);
		if (got >= 0 || errno != EAGAIN)
			return got < 0 ? -errno : got;
		(void)turn(20);
	}
	fail_msg("nothing comes");
	return 0;
}

static void assert_hears(int fd, const char *text)
{
	char got[256] = "";
	size_t size = 0;
	while (size < strlen(text)) {
		ssize_t more = hear(fd, got + size, sizeof(got) - 1 - size);
		assert_true(more > 0);
		size += (size_t)more;
	}
	assert_string_equal(got, text);
}

static void assert_reset(int fd)
{
	char byte;
	assert_int_equal(hear(fd, &byte, 1), -ECONNRESET);
}

static int accept_server(void)
{
	const uint64_t until_ms = __real_clock_ms() + (uint64_t)patience_ms(20000);
	struct pollfd p = { .fd = world.server_fd, .events = POLLIN };
	while (poll(&p, 1, 0) == 0 && __real_clock_ms() < until_ms)
		(void)turn(20);
	int fd = accept4(world.server_fd, NULL, NULL, SOCK_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void an_allowed_connection_is_relayed_and_each_side_may_end_first(void **state)
{
	world_of(state);
	for (int i = 0; i < 2; i++) {
		auto_fd int client = connect_client();
		write_text(client, "GET / HTTP/1.1\r\nHost: go");
		while (turn(50))
			;
		assert_int_equal(world.dialed, i); /* nobody knows yet where to */
		write_text(client, "od.org\r\n\r\n");
		auto_fd int server = accept_server();
		assert_hears(server, GET);
		write_text(server, "answer");
		assert_hears(client, "answer");
		const int first = i == 0 ? client : server, second = i == 0 ? server : client;
		char byte;
		assert_int_equal(shutdown(first, SHUT_WR), 0);
		assert_int_equal(hear(second, &byte, 1), 0);
		write_text(second, i == 0 ? "late" : GET);
		assert_hears(first, i == 0 ? "late" : GET);
		assert_int_equal(shutdown(second, SHUT_WR), 0);
		assert_int_equal(hear(first, &byte, 1), 0);
	}
	assert_int_equal(world.asked, 2);
	assert_int_equal(world.nameless, 0);
}

static void a_refused_name_is_reset_and_no_server_hears_of_it(void **state)
{
	world_of(state);
	auto_fd int refused = connect_client(), neither = connect_client();
	write_text(refused, BAD);
	write_text(neither, "SSH-2.0-x\r\n");
	assert_reset(refused);
	assert_reset(neither);
	assert_int_equal(world.asked, 1);
	assert_int_equal(world.nameless, 1);
	assert_int_equal(world.dialed, 0);
}

static void a_later_request_for_a_refused_name_resets_both_sides(void **state)
{
	world_of(state);
	auto_fd int client = connect_client();
	write_text(client, GET);
	auto_fd int server = accept_server();
	assert_hears(server, GET);
	write_text(client, BAD);
	assert_reset(client);
	assert_reset(server);
}

static void a_client_that_states_no_name_in_time_is_reset(void **state)
{
	world_of(state);
	auto_fd int silent = connect_client(), slow = connect_client();
	write_text(slow, "\x16");
	while (turn(50))
		;
	later_ms = (NAME_PROXY_FIRST_S + 1) * 1000;
	assert_reset(silent);
	assert_reset(slow);
	assert_int_equal(world.nameless, 1); /* the silent one has sent nothing to be refused */
}

static void let_the_timer_look(void)
{
	const uint64_t until_ms = __real_clock_ms() + 2500;
	while (__real_clock_ms() < until_ms)
		(void)turn(100);
}

static void an_idle_connection_is_reset_and_one_in_use_is_not(void **state)
{
	world_of(state);
	auto_fd int client = connect_client();
	write_text(client, GET);
	auto_fd int server = accept_server();
	assert_hears(server, GET);
	later_ms = (NAME_PROXY_IDLE_S - 60) * 1000;
	write_text(server, "x");
	assert_hears(client, "x");
	let_the_timer_look();
	later_ms += 120 * 1000;
	write_text(server, "y");
	assert_hears(client, "y");
	let_the_timer_look();
	later_ms += (NAME_PROXY_IDLE_S + 60) * 1000;
	assert_reset(client);
}

static void another_list_resets_the_connections_that_it_refuses(void **state)
{
	world_of(state);
	auto_fd int client = connect_client();
	write_text(client, GET);
	auto_fd int server = accept_server();
	assert_hears(server, GET);
	auto_fd int nameless = connect_client();
	while (turn(50))
		;
	name_proxy_check_again(world.proxy);
	write_text(server, "still");
	assert_hears(client, "still");
	world.refused = "good.org";
	name_proxy_check_again(world.proxy);
	assert_reset(client);
	assert_reset(server);
	assert_int_equal(world.again, 2);
	write_text(nameless, GET);
	assert_reset(nameless);
}

static void without_a_server_or_a_destination_the_client_is_reset(void **state)
{
	world_of(state);
	world.to.port = SERVER + 1;
	auto_fd int client = connect_client();
	write_text(client, GET);
	assert_reset(client);
	world.to.port = 0;
	auto_fd int direct = connect_client();
	assert_reset(direct);
	assert_int_equal(world.dialed, 1);
}

/* As many bytes as both buffers and the kernel's take, and no more. */
static void a_server_that_does_not_read_slows_its_client_down(void **state)
{
	world_of(state);
	static char bytes[1 << 20];
	auto_fd int client = connect_client();
	write_text(client,
		   "POST / HTTP/1.1\r\nHost: good.org\r\nContent-Length: 900000000\r\n\r\n");
	auto_fd int server = accept_server();
	size_t sent = 0;
	for (int quiet = 0; quiet < 3;) {
		ssize_t size = send(client, bytes, sizeof(bytes), MSG_NOSIGNAL | MSG_DONTWAIT);
		sent += size > 0 ? (size_t)size : 0;
		quiet = size > 0 || turn(100) ? 0 : quiet + 1;
		assert_in_range(sent, 0, 64u << 20);
	}
	size_t heard = 0;
	while (heard < sent) {
		ssize_t size = hear(server, bytes, sizeof(bytes));
		assert_true(size > 0);
		heard += (size_t)size;
	}
}

static void more_connections_than_there_is_room_for_wait(void **state)
{
	world_of(state);
	static int clients[NAME_PROXY_CONNECTIONS];
	for (size_t i = 0; i < NAME_PROXY_CONNECTIONS; i++) {
		clients[i] = connect_client();
		(void)turn(0);
	}
	while (turn(50))
		;
	auto_fd int late = connect_client();
	write_text(late, GET);
	for (int i = 0; i < 10; i++)
		(void)turn(20);
	assert_int_equal(world.asked, 0);
	for (size_t i = 0; i < NAME_PROXY_CONNECTIONS; i++)
		cj_close(&clients[i]);
	auto_fd int server = accept_server();
	assert_hears(server, GET);
}

int main(void)
{
	has_users = unshare(CLONE_NEWUSER) == 0;
#define WITH_PROXY(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_PROXY(an_allowed_connection_is_relayed_and_each_side_may_end_first),
		WITH_PROXY(a_refused_name_is_reset_and_no_server_hears_of_it),
		WITH_PROXY(a_later_request_for_a_refused_name_resets_both_sides),
		WITH_PROXY(a_client_that_states_no_name_in_time_is_reset),
		WITH_PROXY(an_idle_connection_is_reset_and_one_in_use_is_not),
		WITH_PROXY(another_list_resets_the_connections_that_it_refuses),
		WITH_PROXY(without_a_server_or_a_destination_the_client_is_reset),
		WITH_PROXY(a_server_that_does_not_read_slows_its_client_down),
		WITH_PROXY(more_connections_than_there_is_room_for_wait),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
