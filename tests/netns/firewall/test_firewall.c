/* SPDX-License-Identifier: Apache-2.0 */
/* firewall: the rules of jail and gateway judge the packets of ordinary sockets. */
#include "netns/firewall/firewall.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "tests/netns/firewall/lab_rules.h"

/* --- what passes --- */

static void a_public_address_is_reached_over_both_families(void **state)
{
	struct lab lab;
	(void)state;
	open_public(&lab);

	assert_int_equal(connect_to(&lab, LAB_PUBLIC4, LAB_PORT), 0);
	assert_int_equal(connect_to(&lab, LAB_PUBLIC6, LAB_PORT), 0);
	assert_true(lab_count(&lab) > 0);
	lab_close(&lab);
}

static void a_closed_port_of_a_public_address_is_answered_by_that_host(void **state)
{
	struct lab lab;
	(void)state;
	open_public(&lab);

	assert_int_equal(connect_to(&lab, LAB_PUBLIC4, 81), ECONNREFUSED);
	assert_int_equal(send_to(&lab, LAB_PUBLIC4, 81), ECONNREFUSED);
	assert_int_equal(send_to(&lab, LAB_PUBLIC6, 81), ECONNREFUSED);
	for (enum net_class class = 0; class < NET_CLASS_COUNT; class ++) {
		assert_int_equal(refused(lab.jail_rules, class), 0);
		assert_int_equal(refused(lab.gateway_rules, class), 0);
	}
	lab_close(&lab);
}

static void a_fragmented_datagram_arrives(void **state)
{
	const struct ip public = lab_address(LAB_PUBLIC4);
	struct lab lab;
	(void)state;
	open_public(&lab);

	assert_int_equal(lab_send(lab.jail, &public, 81, 5000, LAB_WAIT_MS), ECONNREFUSED);
	lab_close(&lab);
}

static void the_gateway_answers_on_its_name_port_only(void **state)
{
	const struct ip gateway = lab_address("198.18.0.3");
	struct lab lab;
	(void)state;
	open_public(&lab);
	auto_fd int names = lab_listen(lab.gateway, AF_INET, 53);
	auto_fd int other = lab_listen(lab.gateway, AF_INET, 54);
	(void)names; /* they only have to be there */
	(void)other;

	assert_int_equal(lab_connect(lab.jail, &gateway, 53, LAB_WAIT_MS, NULL), 0);
	assert_int_equal(lab_connect(lab.jail, &gateway, 54, LAB_WAIT_MS, NULL), ECONNREFUSED);
	assert_int_equal(refused(lab.jail_rules, NET_HOST), 1);

	remove_jail_rules(&lab);
	assert_int_equal(lab_connect(lab.jail, &gateway, 53, LAB_WAIT_MS, NULL), 0);
	assert_int_equal(lab_connect(lab.jail, &gateway, 54, LAB_WAIT_MS, NULL), ECONNREFUSED);
	assert_int_equal(refused(lab.gateway_rules, NET_HOST), 1);
	lab_close(&lab);
}

/* --- what does not --- */

/* The jail's own loopback answers for these.  Mapped addresses leave a socket as IPv4. */
static bool is_own(const struct ip *ip)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	static const uint8_t none[15];

	if (ip->family == 4)
		return ip->bytes[0] == 127 || memcmp(ip->bytes, none, 4) == 0;
	return (memcmp(ip->bytes, none, 15) == 0 && ip->bytes[15] <= 1) ||
	       memcmp(ip->bytes, mapped, 12) == 0;
}

/* What connect(2) itself says: multicast, broadcast, 0.0.0.0/8. */
static bool is_kernels_refusal(int code)
{
	return code == ENETUNREACH || code == EINVAL || code == EACCES || code == EADDRNOTAVAIL;
}

static void expect_refused(const struct lab *lab, const struct ip *ip, int rules_fd, bool is_sent)
{
	char text[IP_TEXT_MAX];
	enum net_class class;
	assert_true(ranges_find(ip, &class));
	ip_format(ip, text);

	uint64_t before = refused(rules_fd, class);
	int code = lab_connect(lab->jail, ip, LAB_PORT, LAB_WAIT_MS, NULL);
	if (code != ECONNREFUSED && !is_kernels_refusal(code))
		fail_msg("tcp to %s: %s", text, strerror(code));
	uint64_t after = refused(rules_fd, class);
	if (code == ECONNREFUSED && after != before + 1 && !is_own(ip))
		fail_msg("tcp to %s: counter '%s' is not one more", text, net_class_names[class]);

	before = after;
	code = lab_send(lab->jail, ip, LAB_PORT, 1, 0);
	if (is_sent ? code != 0 && !is_kernels_refusal(code) : code == 0 && !is_own(ip))
		fail_msg("udp to %s: %s", text, strerror(code));
	if (code == (is_sent ? 0 : EPERM) && !is_own(ip) &&
	    refused_soon(rules_fd, class, before + 1) != before + 1)
		fail_msg("udp to %s: counter '%s' is not one more", text, net_class_names[class]);
}

static void every_closed_range_is_refused_by_the_jail_s_rules(void **state)
{
	struct lab lab;
	(void)state;
	open_public(&lab);

	for (size_t i = 0; i < ranges_count; i++) {
		struct ip_net net;
		assert_true(ip_net_parse(ranges[i].prefix, &net));
		const struct ip last = ip_net_last(&net);
		expect_refused(&lab, &net.ip, lab.jail_rules, false);
		expect_refused(&lab, &last, lab.jail_rules, false);
	}
	assert_int_equal(lab_count(&lab), 0);
	lab_close(&lab);
}

/* Neither 0.0.0.0/8 nor multicast of scope 0 (RFC 4291 2.7) comes as far as the gateway's rules. */
static bool is_routed(const struct ip *ip)
{
	return ip->family == 4 ? ip->bytes[0] != 0
			       : ip->bytes[0] != 0xff || (ip->bytes[1] & 0x0f) != 0;
}

static void every_closed_range_is_refused_by_the_gateway_s_rules_alone(void **state)
{
	struct lab lab;
	(void)state;
	open_public(&lab);
	remove_jail_rules(&lab);

	for (size_t i = 0; i < ranges_count; i++) {
		struct ip_net net;
		assert_true(ip_net_parse(ranges[i].prefix, &net));
		if (!is_routed(&net.ip))
			continue;
		expect_refused(&lab, &net.ip, lab.gateway_rules, true);
	}
	assert_int_equal(lab_count(&lab), 0);
	lab_close(&lab);
}

static void a_refused_datagram_is_an_error_at_once(void **state)
{
	struct lab lab;
	(void)state;
	open_public(&lab);

	assert_int_equal(send_to(&lab, "10.1.2.3", 53), EPERM);
	assert_int_equal(send_to(&lab, "fd00:ec2::254", 80), EPERM);
	remove_jail_rules(&lab);
	assert_int_equal(send_to(&lab, "10.1.2.3", 53), EHOSTUNREACH);
	assert_int_equal(send_to(&lab, "fd00:ec2::254", 80), EACCES);
	lab_close(&lab);
}

static void an_address_of_the_host_s_is_closed(void **state)
{
	const struct ip host[] = { lab_address("93.184.216.1"), lab_address("2a00:1450::9") };
	struct firewall_spec spec = public_spec();
	struct lab lab;
	(void)state;
	spec.host = host;
	spec.nhost = 2;
	open_lab(&lab, &spec);

	assert_int_equal(connect_to(&lab, "93.184.216.1", LAB_PORT), ECONNREFUSED);
	assert_int_equal(connect_to(&lab, "2a00:1450::9", LAB_PORT), ECONNREFUSED);
	assert_int_equal(refused(lab.jail_rules, NET_HOST), 2);
	remove_jail_rules(&lab);
	assert_int_equal(connect_to(&lab, "93.184.216.1", LAB_PORT), ECONNREFUSED);
	assert_int_equal(connect_to(&lab, "2a00:1450::9", LAB_PORT), ECONNREFUSED);
	assert_int_equal(refused(lab.gateway_rules, NET_HOST), 2);
	assert_int_equal(lab_count(&lab), 0);
	lab_close(&lab);
}

static void a_new_address_of_the_host_s_is_closed_in_loaded_rules(void **state)
{
	const struct ip later[] = { lab_address("93.184.216.77"), lab_address("2a00:1450::77") };
	struct lab lab;
	(void)state;
	open_public(&lab);

	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(lab_connect(lab.jail, &later[i], LAB_PORT, LAB_WAIT_MS, NULL), 0);
		CHECK(firewall_close_host(lab.jail_rules, &later[i], &err));
		CHECK(firewall_close_host(lab.gateway_rules, &later[i], &err));
		CHECK(firewall_close_host(lab.gateway_rules, &later[i], &err)); /* again is fine */
		assert_int_equal(lab_connect(lab.jail, &later[i], LAB_PORT, LAB_WAIT_MS, NULL),
				 ECONNREFUSED);
	}
	assert_int_equal(refused(lab.jail_rules, NET_HOST), 2);
	remove_jail_rules(&lab);
	assert_int_equal(lab_connect(lab.jail, &later[0], LAB_PORT, LAB_WAIT_MS, NULL),
			 ECONNREFUSED);
	lab_close(&lab);
}

/* TCP and UDP that has come in over the jail's link. */
static int count_arrived(int packets_fd)
{
	uint8_t packet[64];
	struct sockaddr_ll from;
	socklen_t size = sizeof(from);
	int count = 0;

	while (recvfrom(packets_fd, packet, sizeof(packet), 0, (void *)&from, &size) > 0) {
		if (from.sll_pkttype != PACKET_OUTGOING && packet[0] == 0x45 &&
		    (packet[9] == IPPROTO_TCP || packet[9] == IPPROTO_UDP))
			count++;
		size = sizeof(from);
	}
	return count;
}

static void no_connection_comes_in(void **state)
{
	const struct ip jail = lab_address("198.18.0.2");
	const struct ip gateway = lab_address("198.18.0.3");
	struct lab lab;
	(void)state;
	open_public(&lab);
	auto_fd int packets = lab_canary(lab.jail, "eth0");
	auto_fd int names = lab_listen(lab.gateway, AF_INET, 53);
	(void)names;

	assert_int_equal(lab_connect(lab.world, &jail, LAB_PORT, 200, NULL), ETIMEDOUT);
	assert_int_equal(lab_send(lab.world, &jail, LAB_PORT, 1, 0), 0);
	assert_int_equal(lab_connect(lab.world, &gateway, 53, 200, NULL), ETIMEDOUT);
	assert_int_equal(lab_count(&lab), 0); /* all of it has been through the gateway */
	assert_int_equal(count_arrived(packets), 0);
	lab_close(&lab);
}

/* From a public address: an answer to the world's own would be refused on its way out. */
static void knock(const struct lab *lab)
{
	const struct ip source = lab_address(LAB_PUBLIC4), jail = lab_address("198.18.0.2");
	struct sockaddr_storage from, to;
	socklen_t from_size = ip_socket_address(&source, 0, &from);
	socklen_t to_size = ip_socket_address(&jail, LAB_PORT, &to);
	auto_fd int fd = lab_socket(lab->world, AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	struct pollfd waiting = { .fd = fd, .events = POLLOUT };

	assert_int_equal(bind(fd, (void *)&from, from_size), 0);
	assert_int_equal(connect(fd, (void *)&to, to_size), -1);
	assert_int_equal(poll(&waiting, 1, 200), 0);
}

static void the_jail_s_rules_alone_let_no_connection_in(void **state)
{
	const struct ip jail = lab_address("198.18.0.2");
	struct lab lab;
	(void)state;
	open_public(&lab);
	assert_int_equal(lab_nft(lab.gateway, "delete table inet cejail\n"), 0);
	auto_fd int packets = lab_canary(lab.jail, "eth0");
	auto_fd int listener = lab_listen(lab.jail, AF_INET, LAB_PORT);

	knock(&lab);
	struct pollfd arrival = { .fd = packets, .events = POLLIN };
	int arrived = 0;
	while (arrived == 0 && poll(&arrival, 1, LAB_WAIT_MS) == 1)
		arrived = count_arrived(packets);
	assert_true(arrived > 0);
	lab_go(lab.jail);
	assert_int_equal(accept(listener, NULL, NULL), -1);
	assert_int_equal(lab_connect(lab.jail, &jail, LAB_PORT, LAB_WAIT_MS, NULL), 0);
	lab_close(&lab);
}

/* Where the kernel gives none of the jail's links IPv6 addresses, its packets are not just unread.
 */
static void a_family_that_the_jail_does_not_have_is_refused_by_its_own_rules(void **state)
{
	struct firewall_spec spec = public_spec();
	struct lab lab;
	(void)state;
	spec.addresses.jail6 = spec.addresses.gateway6 = (struct ip){ 0 };
	open_lab(&lab, &spec);
	assert_int_not_equal(connect_to(&lab, LAB_PUBLIC6, LAB_PORT), 0);
	assert_int_equal(refused_soon(lab.jail_rules, NET_PROTOCOL, 1), 1);
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_public_address_is_reached_over_both_families),
		cmocka_unit_test(a_closed_port_of_a_public_address_is_answered_by_that_host),
		cmocka_unit_test(a_fragmented_datagram_arrives),
		cmocka_unit_test(the_gateway_answers_on_its_name_port_only),
		cmocka_unit_test(every_closed_range_is_refused_by_the_jail_s_rules),
		cmocka_unit_test(every_closed_range_is_refused_by_the_gateway_s_rules_alone),
		cmocka_unit_test(a_refused_datagram_is_an_error_at_once),
		cmocka_unit_test(an_address_of_the_host_s_is_closed),
		cmocka_unit_test(a_new_address_of_the_host_s_is_closed_in_loaded_rules),
		cmocka_unit_test(no_connection_comes_in),
		cmocka_unit_test(the_jail_s_rules_alone_let_no_connection_in),
		cmocka_unit_test(a_family_that_the_jail_does_not_have_is_refused_by_its_own_rules),
	};
	no_lab = lab_enter_user();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
