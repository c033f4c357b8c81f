/* SPDX-License-Identifier: Apache-2.0 */
/* firewall: connections to what names have opened go to the proxy, and its own are filtered. */
#include "netns/firewall/firewall.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "netns/relay/name_proxy.h"
#include "tests/netns/firewall/lab_rules.h"

#define NAMED "93.184.216.40" /* by a name, for one port */

static struct names names; /* its table is large */
static struct endpoint listed;

/* LAB_PUBLIC4 is open for all ports, by which packets are counted. */
static struct firewall_spec named_spec(bool checks_names)
{
	struct firewall_spec spec = public_spec();
	spec.is_list = true;
	spec.has_names = true;
	spec.has_proxy = true;
	spec.checks_names = checks_names;
	return spec;
}

static void add_name(const char *address, uint16_t port)
{
	const struct ip ip = lab_address(address);
	names.open[names.count++] =
	    (struct names_open){ .endpoint = { ip, ip, port, port ? port : 65535 },
				 .is_new = true };
}

static void begin(struct lab *lab, const struct firewall_spec *spec)
{
	memset(&names, 0, sizeof(names));
	if (no_lab)
		skip();
	lab_open(lab);
	add_name(LAB_PUBLIC4, 0);
	add_name(NAMED, LAB_PORT);
	add_name(LAB_PUBLIC6, LAB_PORT);
	const struct firewall_spec gateway = with_names(*spec, &names);
	struct firewall_spec jail = gateway;
	jail.has_proxy = false;
	CHECK(firewall_apply_jail(lab->jail_rules, &jail, &err));
	CHECK(firewall_apply_gateway(lab->gateway_rules, &gateway, &err));
	(void)lab_count(lab);
}

static int from_gateway(const struct lab *lab, const char *address, uint16_t port, int wait_ms)
{
	const struct ip ip = lab_address(address);
	return lab_connect(lab->gateway, &ip, port, wait_ms, NULL);
}

static void only_the_proxy_is_reached_by_connections_that_are_checked(void **state)
{
	static const char *const addresses[] = { LAB_PUBLIC4, NAMED, LAB_PUBLIC6 };
	const struct firewall_spec spec = named_spec(true);
	struct lab lab;
	(void)state;
	begin(&lab, &spec);
	for (size_t i = 0; i < 3; i++) /* there is no proxy yet */
		assert_int_equal(connect_to(&lab, addresses[i], LAB_PORT), ECONNREFUSED);
	assert_int_equal(lab_count(&lab), 0);
	int four = lab_listen(lab.gateway, AF_INET, NAME_PROXY_PORT),
	    six = lab_listen(lab.gateway, AF_INET6, NAME_PROXY_PORT);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(connect_to(&lab, addresses[i], LAB_PORT), 0);
	assert_int_equal(lab_count(&lab), 0);
	assert_int_equal(connect_to(&lab, LAB_PUBLIC4, 8080), ECONNREFUSED); /* by the world */
	assert_true(lab_count(&lab) > 0);
	/* the proxy has no address that the jail can name, nor the world */
	assert_int_equal(connect_to(&lab, "198.18.0.3", NAME_PROXY_PORT), ECONNREFUSED);
	assert_int_equal(connect_to(&lab, "93.184.216.41", LAB_PORT), ECONNREFUSED);
	assert_int_equal(refused(lab.jail_rules, NET_HOST), 1);
	cj_close(&four);
	cj_close(&six);
	lab_close(&lab);
}

static void the_gateway_itself_reaches_what_the_jail_may_reach(void **state)
{
	const struct firewall_spec spec = named_spec(true);
	struct lab lab;
	(void)state;
	begin(&lab, &spec);
	static const struct {
		const char *address;
		uint16_t port;
	} closed[] = { { NAMED, 81 },
		       { "93.184.216.41", LAB_PORT },
		       { LAB_PUBLIC6, 81 },
		       { "2a00:1450:4001::2", LAB_PORT },
		       { "10.0.0.1", LAB_PORT },
		       { "169.254.169.254", LAB_PORT },
		       { "fd00::1", LAB_PORT } };
	assert_int_equal(from_gateway(&lab, NAMED, LAB_PORT, LAB_WAIT_MS), 0);
	assert_int_equal(from_gateway(&lab, LAB_PUBLIC6, LAB_PORT, LAB_WAIT_MS), 0);
	assert_true(lab_count(&lab) > 0);
	for (size_t i = 0; i < sizeof(closed) / sizeof(closed[0]); i++) /* no reset: `lo` is down */
		assert_int_not_equal(from_gateway(&lab, closed[i].address, closed[i].port, 100), 0);
	assert_int_equal(lab_count(&lab), 0);
	assert_true(refused(lab.gateway_rules, NET_NOT_ALLOWED) >= 4);
	lab_close(&lab);
}

static void what_the_list_opens_by_address_is_not_redirected(void **state)
{
	struct firewall_spec spec = named_spec(true);
	struct lab lab;
	(void)state;
	listed = (struct endpoint){ lab_address(NAMED), lab_address(NAMED), 1, 65535 };
	spec.allowed = &listed;
	spec.nallowed = 1;
	begin(&lab, &spec);
	assert_int_equal(connect_to(&lab, NAMED, LAB_PORT), 0);
	assert_true(lab_count(&lab) > 0);
	assert_int_equal(connect_to(&lab, LAB_PUBLIC4, LAB_PORT), ECONNREFUSED);
	assert_int_equal(lab_count(&lab), 0);
	lab_close(&lab);
}

/* Another list begins to check names: what is older would never be checked. */
static void an_older_connection_to_a_checked_address_is_refused(void **state)
{
	const struct firewall_spec from = named_spec(false), to = named_spec(true);
	const struct ip ip = lab_address(NAMED);
	struct pollfd p = { .fd = -1, .events = POLLIN };
	struct lab lab;
	char byte;
	(void)state;
	begin(&lab, &from);
	assert_int_equal(lab_connect(lab.jail, &ip, LAB_PORT, LAB_WAIT_MS, &p.fd), 0);
	const struct firewall_spec named = with_names(to, &names);
	CHECK(firewall_replace(lab.gateway_rules, &from, &named, &err));
	(void)send(p.fd, "x", 1, MSG_NOSIGNAL);
	assert_int_equal(poll(&p, 1, LAB_WAIT_MS), 1);
	assert_int_equal(recv(p.fd, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, ECONNRESET);
	close(p.fd);

	/* and back: a new one goes to the server again */
	assert_int_equal(connect_to(&lab, NAMED, LAB_PORT), ECONNREFUSED);
	const struct firewall_spec back = with_names(from, &names);
	CHECK(firewall_replace(lab.gateway_rules, &to, &back, &err));
	assert_int_equal(connect_to(&lab, NAMED, LAB_PORT), 0);
	lab_close(&lab);
}

static void udp_to_a_checked_port_is_refused(void **state)
{
	const struct firewall_spec spec = named_spec(true);
	struct lab lab;
	(void)state;
	begin(&lab, &spec);
	for (int is_alone = 0; is_alone <= 1; is_alone++) {
		(void)send_to(&lab, LAB_PUBLIC4, 443);
		(void)send_to(&lab, LAB_PUBLIC4, 80);
		(void)send_to(&lab, NAMED, LAB_PORT);
		assert_int_equal(lab_count(&lab), 0);
		if (!is_alone)
			remove_jail_rules(&lab);
	}
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_proxy_is_reached_by_connections_that_are_checked),
		cmocka_unit_test(the_gateway_itself_reaches_what_the_jail_may_reach),
		cmocka_unit_test(what_the_list_opens_by_address_is_not_redirected),
		cmocka_unit_test(an_older_connection_to_a_checked_address_is_refused),
		cmocka_unit_test(udp_to_a_checked_port_is_refused),
	};
	no_lab = lab_enter_user();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
