/* SPDX-License-Identifier: Apache-2.0 */
/* firewall: how many connections and datagrams one jail may have. */
#include "netns/firewall/firewall.h"

#include <setjmp.h>
#include <stdarg.h>
#include <time.h>

#include <cmocka.h>

#include "tests/netns/firewall/lab_rules.h"

static void connections_above_the_limit_are_refused(void **state)
{
	const struct ip public = lab_address(LAB_PUBLIC4);
	int fds[FIREWALL_CONNECTIONS];
	struct lab lab;
	(void)state;
	open_public(&lab);

	for (size_t i = 0; i < FIREWALL_CONNECTIONS; i++)
		assert_int_equal(lab_connect(lab.jail, &public, LAB_PORT, LAB_WAIT_MS, &fds[i]), 0);
	assert_int_equal(connect_to(&lab, LAB_PUBLIC4, LAB_PORT), ECONNREFUSED);
	assert_int_equal(refused(lab.gateway_rules, NET_LIMIT), 1);
	for (size_t i = 0; i < FIREWALL_CONNECTIONS; i++)
		close(fds[i]);
	lab_close(&lab);
}

static double seconds_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int connect_and_close(const struct lab *lab, const struct ip *to)
{
	auto_fd int fd = -1;
	int code = lab_connect(lab->jail, to, LAB_PORT, LAB_WAIT_MS, &fd);
	int peer = code == 0 ? accept(lab->listener4, NULL, NULL) : -1;
	cj_close(&peer);
	return code;
}

static void closed_connections_do_not_count(void **state)
{
	const struct ip public = lab_address(LAB_PUBLIC4);
	struct lab lab;
	(void)state;
	open_public(&lab);

	for (size_t i = 0; i < FIREWALL_CONNECTIONS + 100; i++) {
		if (i > FIREWALL_CONNECTIONS / 2)
			usleep(2 * 1000000 / FIREWALL_NEW_SECOND);
		assert_int_equal(connect_and_close(&lab, &public), 0);
	}
	assert_int_equal(refused(lab.gateway_rules, NET_LIMIT), 0);
	lab_close(&lab);
}

/* Connects until one is refused; false: this machine is too slow for the rate. */
static bool exceed_rate(const struct lab *lab, size_t *out_done)
{
	const struct ip public = lab_address(LAB_PUBLIC4);
	const double begin = seconds_now();

	for (*out_done = 0; *out_done < 20 * FIREWALL_CONNECTIONS; ++*out_done)
		if (connect_and_close(lab, &public) != 0)
			return true;
	const double allowed = (seconds_now() - begin) * FIREWALL_NEW_SECOND;
	assert_true((double)*out_done <= FIREWALL_CONNECTIONS + allowed + 1);
	return false;
}

static void new_connections_above_the_rate_are_refused(void **state)
{
	const struct ip public = lab_address(LAB_PUBLIC4);
	struct lab lab;
	size_t done = 0;
	(void)state;
	open_public(&lab);

	if (!exceed_rate(&lab, &done)) {
		lab_close(&lab);
		print_message("skipped: this machine can't connect faster than the limit\n");
		skip();
	}
	assert_true(done >= FIREWALL_CONNECTIONS);
	assert_int_equal(refused(lab.gateway_rules, NET_LIMIT), 1);

	usleep(10 * 1000000 / FIREWALL_NEW_SECOND);
	assert_int_equal(connect_and_close(&lab, &public), 0);
	lab_close(&lab);
}

static void flood(const struct lab *lab, size_t packets)
{
	const struct ip public = lab_address(LAB_PUBLIC4);
	struct sockaddr_storage to;
	socklen_t size = ip_socket_address(&public, 7, &to);
	auto_fd int fd = lab_socket(lab->jail, AF_INET, SOCK_DGRAM, 0);
	char data = 0;
	struct iovec part = { &data, 1 };
	struct mmsghdr messages[64];

	for (size_t i = 0; i < 64; i++)
		messages[i] = (struct mmsghdr){ .msg_hdr = { .msg_name = &to,
							     .msg_namelen = size,
							     .msg_iov = &part,
							     .msg_iovlen = 1 } };
	for (size_t i = 0; i < packets; i += 64)
		(void)sendmmsg(fd, messages, 64, 0); /* some are dropped: that is the test */
}

/* Sends until something was refused; false: this machine is too slow to be. */
static bool exceed(const struct lab *lab)
{
	const size_t round = FIREWALL_UDP_SECOND;
	const double begin = seconds_now();
	size_t sent = 0;

	while (sent < 50 * round) {
		flood(lab, round);
		sent += round;
		if (refused(lab->gateway_rules, NET_LIMIT) > 0)
			return true;
	}
	assert_true((double)sent < 2 * (seconds_now() - begin) * FIREWALL_UDP_SECOND);
	return false;
}

static void datagrams_above_the_rate_are_dropped_and_counted(void **state)
{
	struct lab lab;
	uint8_t byte;
	(void)state;
	open_public(&lab);

	if (!exceed(&lab)) {
		print_message("skipped: this machine can't send faster than the limit\n");
		skip();
	}
	while (recv(lab.canary, &byte, 1, 0) > 0)
		continue;
	usleep(100 * 1000); /* the rate lets 2000 more through by now */
	assert_int_not_equal(lab_count(&lab), -1);
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connections_above_the_limit_are_refused),
		cmocka_unit_test(closed_connections_do_not_count),
		cmocka_unit_test(new_connections_above_the_rate_are_refused),
		cmocka_unit_test(datagrams_above_the_rate_are_dropped_and_counted),
	};
	no_lab = lab_enter_user();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
