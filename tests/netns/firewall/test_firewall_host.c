/* SPDX-License-Identifier: Apache-2.0 */
/*
 * firewall: the table in the caller's own namespace.  The lab's gateway plays the host, its jail
 * the gateway: a namespace without rules behind the host's link "jail".  Every test runs twice:
 * with a table for this link, and with a table for all links whose names begin with "ja".
 */
#include "netns/firewall/firewall.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "tests/netns/firewall/lab_rules.h"
#include "tests/netns/packets.h"

#define TABLE     "cejail-test"
#define HOST_PORT 2200 /* something listens here on every address of the host's */

static bool is_shared;

struct host {
	struct lab lab;
	int listener;
};

static void open_host(struct host *h, const struct endpoint *allowed, size_t count)
{
	struct firewall_host_spec spec = { .table = TABLE,
					   .link = "ja",
					   .every_link = "ja",
					   .is_shared = is_shared,
					   .ip4 = lab_address("198.18.0.2"),
					   .ip6 = lab_address("fdce:6a11::2"),
					   .allowed = allowed,
					   .nallowed = count };
	if (no_lab) {
		print_message("skipped: %s\n", no_lab);
		skip();
	}
	if (!is_shared)
		(void)snprintf(spec.link, sizeof(spec.link), "jail");
	lab_open(&h->lab);
	h->listener = lab_listen(h->lab.gateway, AF_INET, HOST_PORT);
	CHECK(firewall_apply_host(h->lab.gateway_rules, &spec, &err));
}

static void close_host(struct host *h)
{
	close(h->listener);
	lab_close(&h->lab);
}

static void servers_see_the_host_s_address(void **state)
{
	struct sockaddr_in from;
	socklen_t size = sizeof(from);
	struct host h;
	(void)state;
	open_host(&h, NULL, 0);

	assert_int_equal(connect_to(&h.lab, LAB_PUBLIC4, LAB_PORT), 0);
	assert_int_equal(connect_to(&h.lab, LAB_PUBLIC6, LAB_PORT), 0);
	auto_fd int peer = accept(h.lab.listener4, (void *)&from, &size);
	assert_true(peer >= 0);
	assert_int_equal(from.sin_addr.s_addr, inet_addr("198.19.0.1"));
	close_host(&h);
}

static void the_host_s_own_addresses_are_closed_also_new_ones(void **state)
{
	struct host h;
	(void)state;
	open_host(&h, NULL, 0);

	assert_int_equal(connect_to(&h.lab, "198.19.0.1", HOST_PORT), ECONNREFUSED);
	assert_int_equal(connect_to(&h.lab, "198.18.0.3", HOST_PORT), ECONNREFUSED);
	lab_ip(h.lab.gateway, "addr add 93.184.216.99/32 dev lo\n");
	assert_int_equal(connect_to(&h.lab, "93.184.216.99", HOST_PORT), ECONNREFUSED);
	lab_go(h.lab.gateway);
	assert_int_equal(accept(h.listener, NULL, NULL), -1);
	close_host(&h);
}

static void traffic_of_other_links_reaches_the_host_as_before(void **state)
{
	const struct ip host = lab_address("198.19.0.1");
	struct host h;
	(void)state;
	open_host(&h, NULL, 0);

	assert_int_equal(lab_connect(h.lab.world, &host, HOST_PORT, LAB_WAIT_MS, NULL), 0);
	close_host(&h);
}

static void a_destination_translated_to_a_private_address_is_refused(void **state)
{
	struct host h;
	(void)state;
	open_host(&h, NULL, 0);
	assert_int_equal(
	    lab_nft(h.lab.gateway,
		    "add table ip other\n"
		    "add chain ip other p { type nat hook prerouting priority -100; }\n"
		    "add rule ip other p tcp dport 8080 dnat to 10.1.2.3:80\n"
		    "add rule ip other p tcp dport 8081 redirect to :2200\n"),
	    0);

	assert_int_equal(connect_to(&h.lab, LAB_PUBLIC4, 8080), ECONNREFUSED);
	assert_int_equal(connect_to(&h.lab, LAB_PUBLIC4, 8081), ECONNREFUSED);
	lab_go(h.lab.gateway);
	assert_int_equal(accept(h.listener, NULL, NULL), -1);
	assert_int_equal(lab_count(&h.lab), 0);
	close_host(&h);
}

/* As a container's published port: after the translation nothing of the host's is to be seen. */
static void a_port_the_host_translates_is_closed_like_its_address(void **state)
{
	struct host h;
	(void)state;
	open_host(&h, NULL, 0);
	assert_int_equal(
	    lab_nft(h.lab.gateway,
		    "add table ip other\n"
		    "add chain ip other p { type nat hook prerouting priority -100; }\n"
		    "add rule ip other p ip daddr 198.19.0.1 tcp dport 8080 "
		    "dnat to 93.184.216.50:80\n"),
	    0);

	assert_int_equal(connect_to(&h.lab, "198.19.0.1", 8080), ECONNREFUSED);
	assert_int_equal(lab_count(&h.lab), 0);
	close_host(&h);
}

static void closed_ranges_are_refused_in_forward(void **state)
{
	static const char *const closed[] = { "10.1.2.3", "192.168.1.1", "100.64.0.1",
					      "168.63.129.16", "198.19.7.7" };
	struct host h;
	(void)state;
	open_host(&h, NULL, 0);

	for (size_t i = 0; i < sizeof(closed) / sizeof(closed[0]); i++)
		assert_int_equal(connect_to(&h.lab, closed[i], LAB_PORT), ECONNREFUSED);
	assert_int_equal(connect_to(&h.lab, "fd00:ec2::254", LAB_PORT), ECONNREFUSED);
	assert_int_equal(connect_to(&h.lab, "2002:a00:1::1", LAB_PORT), ECONNREFUSED);
	assert_int_equal(lab_count(&h.lab), 0);
	close_host(&h);
}

static void an_allowed_closed_endpoint_is_open(void **state)
{
	const struct endpoint allowed[] = { { lab_address("10.1.2.3"), lab_address("10.1.2.3"),
					      LAB_PORT, LAB_PORT } };
	struct host h;
	(void)state;
	open_host(&h, allowed, 1);

	assert_int_equal(connect_to(&h.lab, "10.1.2.3", LAB_PORT), 0);
	assert_int_equal(connect_to(&h.lab, "10.1.2.3", 81), ECONNREFUSED);
	assert_int_equal(connect_to(&h.lab, "10.1.2.4", LAB_PORT), ECONNREFUSED);
	assert_int_equal(connect_to(&h.lab, LAB_PUBLIC4, LAB_PORT), 0);
	close_host(&h);
}

static void a_forged_source_is_dropped(void **state)
{
	const struct packet own = udp4("198.18.0.2", LAB_PUBLIC4, LAB_PORT, 0);
	const struct packet forged = udp4("198.18.0.9", LAB_PUBLIC4, LAB_PORT, 0);
	const struct packet forged6 = udp6("fdce:6a11::9", LAB_PUBLIC6, IPPROTO_UDP);
	struct host h;
	(void)state;
	open_host(&h, NULL, 0);

	int count = 0;
	put_on_wire(&h.lab, &own);
	for (int i = 0; i < 100 && count == 0; i++) /* the one behind it may overtake it */
		count = lab_count(&h.lab);
	assert_int_equal(count, 1);
	put_on_wire(&h.lab, &forged);
	put_on_wire(&h.lab, &forged6);
	assert_int_equal(lab_count(&h.lab), 0);
	close_host(&h);
}

static void no_new_connection_goes_in(void **state)
{
	const struct ip inside = lab_address("198.18.0.2");
	struct host h;
	(void)state;
	open_host(&h, NULL, 0);
	auto_fd int listener = lab_listen(h.lab.jail, AF_INET, LAB_PORT);

	assert_int_equal(lab_connect(h.lab.world, &inside, LAB_PORT, 300, NULL), ETIMEDOUT);
	lab_go(h.lab.jail);
	assert_int_equal(accept(listener, NULL, NULL), -1);
	close_host(&h);
}

/* An address of the shared network that the host routes to another link, or to none. */
static void a_link_of_a_shared_table_has_only_the_sources_routed_to_it(void **state)
{
	const struct packet routed = udp4("198.18.77.1", LAB_PUBLIC4, LAB_PORT, 0);
	const struct packet unrouted = udp4("198.18.88.1", LAB_PUBLIC4, LAB_PORT, 0);
	const struct packet outside = udp4("198.20.0.1", LAB_PUBLIC4, LAB_PORT, 0);
	const struct packet routed6 = udp6("fdce:6a11::77", LAB_PUBLIC6, IPPROTO_UDP);
	struct host h;
	(void)state;
	open_host(&h, NULL, 0);
	lab_ip(h.lab.gateway, "route add 198.18.77.1 dev lo\n"
			      "route add fdce:6a11::77 dev lo\n"
			      "route add 198.20.0.1 dev jail\n");
	put_on_wire(&h.lab, &routed);
	put_on_wire(&h.lab, &routed6);
	put_on_wire(&h.lab, &unrouted);
	put_on_wire(&h.lab, &outside);
	assert_int_equal(lab_count(&h.lab), 0);
	close_host(&h);
}

static void other_links_and_the_host_itself_keep_their_sources(void **state)
{
	const struct ip world = lab_address(LAB_PUBLIC4);
	struct sockaddr_in from;
	socklen_t size = sizeof(from);
	struct host h;
	(void)state;
	open_host(&h, NULL, 0);
	/* an address in the networks of the jails, as a laboratory may use it */
	lab_ip(h.lab.gateway, "addr add 198.18.55.1/32 dev lo\n");
	lab_ip(h.lab.world, "route add 198.18.55.1 via 198.19.0.1\n");
	lab_ip(h.lab.gateway, "route add 93.184.216.34/32 via 198.19.0.0 src 198.18.55.1\n");
	assert_int_equal(lab_connect(h.lab.gateway, &world, LAB_PORT, LAB_WAIT_MS, NULL), 0);
	auto_fd int peer = accept(h.lab.listener4, (void *)&from, &size);
	assert_true(peer >= 0);
	assert_int_equal(from.sin_addr.s_addr, inet_addr("198.18.55.1"));
	close_host(&h);
}

static bool is_there(const struct host *h)
{
	static const char *const argv[] = { "sh", "-c", "nft list tables | grep -q " TABLE, NULL };
	return lab_run(h->lab.gateway, "", argv) == 0;
}

static void the_table_belongs_to_its_socket_and_ends_with_it(void **state)
{
	struct host h;
	(void)state;
	open_host(&h, NULL, 0);

	assert_true(is_there(&h));
	assert_int_not_equal(lab_nft(h.lab.gateway, "delete table inet " TABLE "\n"), 0);
	assert_int_equal(lab_nft(h.lab.gateway, "flush ruleset\n"), 0);
	assert_true(is_there(&h));
	cj_close(&h.lab.gateway_rules);
	assert_false(is_there(&h));
	close_host(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(servers_see_the_host_s_address),
		cmocka_unit_test(the_host_s_own_addresses_are_closed_also_new_ones),
		cmocka_unit_test(traffic_of_other_links_reaches_the_host_as_before),
		cmocka_unit_test(a_destination_translated_to_a_private_address_is_refused),
		cmocka_unit_test(a_port_the_host_translates_is_closed_like_its_address),
		cmocka_unit_test(closed_ranges_are_refused_in_forward),
		cmocka_unit_test(an_allowed_closed_endpoint_is_open),
		cmocka_unit_test(a_forged_source_is_dropped),
		cmocka_unit_test(no_new_connection_goes_in),
		cmocka_unit_test(the_table_belongs_to_its_socket_and_ends_with_it),
	};
	const struct CMUnitTest shared[] = {
		cmocka_unit_test(a_link_of_a_shared_table_has_only_the_sources_routed_to_it),
		cmocka_unit_test(other_links_and_the_host_itself_keep_their_sources),
	};
	no_lab = lab_enter_user();
	int rc = cmocka_run_group_tests_name("a table for one link", tests, NULL, NULL);
	is_shared = true;
	rc += cmocka_run_group_tests_name("a shared table", tests, NULL, NULL);
	rc += cmocka_run_group_tests_name("only shared", shared, NULL, NULL);
	return rc;
}
