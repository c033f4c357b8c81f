/* SPDX-License-Identifier: Apache-2.0 */
/* uplink: what pasta and slirp4netns lead to, what they do not lead to, and how they end. */
/* WRAP: loader_plug_host loader_configure_tap loader_look loader_unplug */
#include "netns/uplink/uplink.h"

#include "tests/forked.h"
#include "tests/netns/uplink/uplink_lab.h"

static void every_kind_has_a_name(void **state)
{
	(void)state;
	for (int kind = 0; kind < UPLINK_COUNT; kind++)
		assert_non_null(uplink_names[kind]);
}

static void the_uplink_none_is_always_available_and_owns_nothing(void **state)
{
	struct uplink_spec spec = { .kind = UPLINK_NONE, .gateway_fd = -1 };
	struct cj_error err = { 0 };
	struct uplink *u = NULL;
	(void)state;
	assert_int_equal(uplink_start(&spec, &u, &err), 0);
	assert_int_equal(uplink_await(u, &err), 0);
	assert_string_equal(uplink_why(u), "");
	assert_int_equal(uplink_kind_of(u), UPLINK_NONE);
	assert_int_equal(uplink_fd(u), -1);
	uplink_stop(&u);
	assert_null(u);
	uplink_stop(&u);
}

/* --- both helpers
 * --------------------------------------------------------------------------------- */

static void reach_the_internet(enum uplink_kind kind)
{
	auto_fd int gateway_fd = make_gateway();
	struct uplink *u = plug(kind, gateway_fd);
	auto_fd int world_fd = listen_at(WORLD, PORT);

	int code = from_gateway(gateway_fd, try_connect, WORLD, PATIENCE_MS);
	CHECK(code == 0, "%s", strerror(code));
	struct pollfd came = { .fd = world_fd, .events = POLLIN };
	CHECK(poll(&came, 1, PATIENCE_MS) == 1, "nobody came");
	uplink_stop(&u);
}

static void reach_the_internet_over_ipv6(void)
{
	auto_fd int gateway_fd = make_gateway();
	struct uplink *u = plug(UPLINK_PASTA, gateway_fd);
	if (!uplink_helper_has_ipv6())
		skip_lab("no IPv6");
	auto_fd int world_fd = listen_at(WORLD6, PORT);
	auto_fd int canary_fd = listen_at("::1", PORT);

	int code = from_gateway(gateway_fd, try_connect, WORLD6, PATIENCE_MS);
	CHECK(code == 0, "%s", strerror(code));
	struct pollfd came = { .fd = world_fd, .events = POLLIN };
	CHECK(poll(&came, 1, PATIENCE_MS) == 1, "nobody came");

	CHECK(from_gateway(gateway_fd, try_connect, "fdce:6a11:1::2", 300) != 0, "router");
	CHECK(from_gateway(gateway_fd, try_connect, "::1", 300) != 0, "loopback");
	CHECK(accept(canary_fd, NULL, NULL) < 0 && errno == EAGAIN, "somebody came");
	uplink_stop(&u);
}

/*
 * The canary listens where only the host itself should reach it.  Tried with the pasta of Debian 12
 * (2023_03_09.7c7625d), 13 (2025_05_03.587980c) and unstable (2026_10_02.cba3570).
 */
static void keep_off_loopback(enum uplink_kind kind)
{
	static const char *const doors[] = { "198.18.1.1", "198.18.1.2", "198.18.1.3",
					     "10.0.2.2",   "10.0.2.3",   "127.0.0.1" };
	auto_fd int gateway_fd = make_gateway();
	struct uplink *u = plug(kind, gateway_fd);
	auto_fd int canary_fd = listen_at("127.0.0.1", PORT);

	for (size_t i = 0; i < sizeof(doors) / sizeof(doors[0]); i++)
		CHECK(from_gateway(gateway_fd, try_connect, doors[i], 300) != 0, "%s leads in",
		      doors[i]);
	CHECK(accept(canary_fd, NULL, NULL) < 0 && errno == EAGAIN, "somebody came");
	uplink_stop(&u);
}

static int listening[2], ended[2]; /* pipes: from the listener and to it */

/* Until the other side says that it has tried, or is gone. */
static int hold_listener(const char *ip, uint16_t port, int wait_ms)
{
	auto_fd int fd = listen_at(ip, port);
	struct pollfd events[] = { { .fd = fd, .events = POLLIN },
				   { .fd = ended[0], .events = POLLIN } };
	if (write(listening[1], "", 1) != 1 || poll(events, 2, wait_ms) <= 0)
		return 2;
	return events[0].revents == 0 ? 0 : 1;
}

/* What listens in the gateway is not heard of outside. */
static void forward_no_port(enum uplink_kind kind)
{
	int status = 0;
	auto_fd int gateway_fd = make_gateway();
	struct uplink *u = plug(kind, gateway_fd);
	char byte;
	CHECK(pipe2(listening, O_CLOEXEC) == 0 && pipe2(ended, O_CLOEXEC) == 0, "pipe2");
	pid_t pid = test_fork();
	if (pid == 0) {
		(void)close(ended[1]);
		_exit(from_gateway(gateway_fd, hold_listener, "0.0.0.0", PATIENCE_MS));
	}
	(void)close(listening[1]);
	CHECK(read(listening[0], &byte, 1) == 1, "it does not listen");

	for (int i = 0; i < 4; i++) {
		CHECK(try_connect("127.0.0.1", PORT, PATIENCE_MS) == ECONNREFUSED,
		      "a port on loopback");
		CHECK(try_connect(WORLD, PORT, PATIENCE_MS) == ECONNREFUSED, "a port to the world");
		(void)poll(NULL, 0, 100);
	}
	(void)close(ended[1]);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0, "the listener was reached");
	(void)close(ended[0]);
	(void)close(listening[0]);
	uplink_stop(&u);
}

static void leave_nothing(enum uplink_kind kind)
{
	{ /* the first may open what the C library keeps, and make_world() keeps its tap */
		auto_fd int gateway_fd = make_gateway();
		struct uplink *u = plug(kind, gateway_fd);
		uplink_stop(&u);
	}
	int gateway_fd = make_gateway();
	add_witness(gateway_fd);
	struct uplink_spec spec = { .kind = kind, .gateway_fd = gateway_fd };
	struct cj_error err = { 0 };
	size_t before = count_fds();

	struct uplink *u = start(&spec);
	CHECK(uplink_await(u, &err) == 0 && uplink_kind_of(u) == kind, "%s", uplink_why(u));
	uplink_stop(&u);
	CHECK(u == NULL && count_fds() == before, "%zu descriptors before, %zu after", before,
	      count_fds());
	CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "a child is left");
	CHECK(!is_attached(gateway_fd), "the helper is still there");
	CHECK(if_nametoindex(LINK_UPLINK) == 0, "the tap device is the caller's");
	CHECK(if_nametoindex(WITNESS) != 0, "the gateway has ended");
	(void)close(gateway_fd);
	CHECK(witness_ends(), "the tap device keeps the gateway");
}

static void die_with_the_supervisor(enum uplink_kind kind)
{
	int ends[2], gateway_fd = make_gateway();
	add_witness(gateway_fd);
	CHECK(pipe(ends) == 0, "pipe");
	pid_t pid = test_fork();
	if (pid == 0) {
		(void)plug(kind, gateway_fd);
		CHECK(write(ends[1], "", 1) == 1, "tell");
		for (;;)
			(void)pause();
	}
	(void)close(ends[1]);
	char byte;
	if (read(ends[0], &byte, 1) != 1) {
		int status = 0;
		(void)waitpid(pid, &status, 0);
		_exit(WEXITSTATUS(status));
	}
	CHECK(is_attached(gateway_fd), "it was there");
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid, "kill the supervisor");
	CHECK(helper_lets_go(gateway_fd), "the helper outlives its supervisor");
	(void)close(gateway_fd);
	CHECK(witness_ends(), "the tap device keeps the gateway");
}

static void die_with_the_keeper(enum uplink_kind kind)
{
	auto_fd int gateway_fd = make_gateway();
	struct uplink *u = plug(kind, gateway_fd);
	struct pollfd death = { .fd = uplink_fd(u), .events = POLLIN };

	CHECK(poll(&death, 1, 0) == 0, "it lives");
	CHECK(sys_pidfd_send_signal(uplink_fd(u), SIGKILL) == 0, "kill the keeper");
	CHECK(poll(&death, 1, PATIENCE_MS) == 1, "its death shows");
	CHECK(helper_lets_go(gateway_fd), "the helper outlives its keeper");
	uplink_lost(u);
	CHECK(strstr(uplink_why(u), uplink_names[kind]) != NULL, "%s", uplink_why(u));
	CHECK(uplink_kind_of(u) == UPLINK_NONE && uplink_fd(u) == -1, "none is left");
	int code = from_gateway(gateway_fd, try_connect, WORLD, PATIENCE_MS);
	CHECK(code == ENETUNREACH, "%s", strerror(code));
	uplink_stop(&u);
}

#define BOTH(body)                                                                                 \
	static void body##_pasta(void)                                                             \
	{                                                                                          \
		body(UPLINK_PASTA);                                                                \
	}                                                                                          \
	static void body##_slirp(void)                                                             \
	{                                                                                          \
		body(UPLINK_SLIRP4NETNS);                                                          \
	}
BOTH(reach_the_internet)
BOTH(keep_off_loopback)
BOTH(forward_no_port)
BOTH(leave_nothing)
BOTH(die_with_the_supervisor)
BOTH(die_with_the_keeper)

LAB_TEST(pasta_leads_to_the_internet, reach_the_internet_pasta)
LAB_TEST(slirp4netns_leads_to_the_internet, reach_the_internet_slirp)
LAB_TEST(pasta_leads_to_the_internet_over_ipv6_and_not_to_loopback, reach_the_internet_over_ipv6)
LAB_TEST(pasta_does_not_lead_to_the_hosts_loopback, keep_off_loopback_pasta)
LAB_TEST(slirp4netns_does_not_lead_to_the_hosts_loopback, keep_off_loopback_slirp)
LAB_TEST(pasta_forwards_no_port, forward_no_port_pasta)
LAB_TEST(slirp4netns_forwards_no_port, forward_no_port_slirp)
LAB_TEST(a_stopped_pasta_leaves_nothing, leave_nothing_pasta)
LAB_TEST(a_stopped_slirp4netns_leaves_nothing, leave_nothing_slirp)
LAB_TEST(pasta_dies_with_a_killed_supervisor, die_with_the_supervisor_pasta)
LAB_TEST(slirp4netns_dies_with_a_killed_supervisor, die_with_the_supervisor_slirp)
LAB_TEST(pasta_dies_with_its_keeper, die_with_the_keeper_pasta)
LAB_TEST(slirp4netns_dies_with_its_keeper, die_with_the_keeper_slirp)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_has_a_name),
		cmocka_unit_test(the_uplink_none_is_always_available_and_owns_nothing),
		cmocka_unit_test(pasta_leads_to_the_internet),
		cmocka_unit_test(slirp4netns_leads_to_the_internet),
		cmocka_unit_test(pasta_leads_to_the_internet_over_ipv6_and_not_to_loopback),
		cmocka_unit_test(pasta_does_not_lead_to_the_hosts_loopback),
		cmocka_unit_test(slirp4netns_does_not_lead_to_the_hosts_loopback),
		cmocka_unit_test(pasta_forwards_no_port),
		cmocka_unit_test(slirp4netns_forwards_no_port),
		cmocka_unit_test(a_stopped_pasta_leaves_nothing),
		cmocka_unit_test(a_stopped_slirp4netns_leaves_nothing),
		cmocka_unit_test(pasta_dies_with_a_killed_supervisor),
		cmocka_unit_test(slirp4netns_dies_with_a_killed_supervisor),
		cmocka_unit_test(pasta_dies_with_its_keeper),
		cmocka_unit_test(slirp4netns_dies_with_its_keeper),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
