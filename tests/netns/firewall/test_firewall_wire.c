/* SPDX-License-Identifier: Apache-2.0 */
/*
 * firewall: packets no socket makes.  They are put on the jail's link past the jail's own rules, so
 * the gateway stands alone.
 */
#include "netns/firewall/firewall.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "tests/netns/firewall/lab_rules.h"
#include "tests/netns/packets.h"

/* --- well-formed packets: the gateway alone judges as sockets find --- */

static void a_plain_packet_passes_the_gateway_s_rules(void **state)
{
	const struct packet four = udp4("198.18.0.2", LAB_PUBLIC4, LAB_PORT, 0);
	const struct packet six = udp6("fdce:6a11::2", LAB_PUBLIC6, IPPROTO_UDP);
	struct lab lab;
	(void)state;
	open_public(&lab);

	put_on_wire(&lab, &four);
	put_on_wire(&lab, &six);
	assert_int_equal(lab_count(&lab), 2);
	lab_close(&lab);
}

/* The kernel itself drops multicast of scope 0 and 1 (RFC 4291 2.7), and ::1 from a link. */
static bool is_judged(const struct ip *ip)
{
	const struct ip loopback = lab_address("::1");
	return ip->family == 4 ||
	       !(ip_equal(ip, &loopback) || (ip->bytes[0] == 0xff && (ip->bytes[1] & 0x0f) <= 1));
}

static void expect_counted(const struct lab *lab, const struct ip *ip)
{
	char text[IP_TEXT_MAX];
	enum net_class class;
	assert_true(ranges_find(ip, &class));
	ip_format(ip, text);

	const struct packet p = ip->family == 6 ? udp6("fdce:6a11::2", text, IPPROTO_UDP)
						: udp4("198.18.0.2", text, LAB_PORT, 0);
	const uint64_t before = refused(lab->gateway_rules, class);
	put_on_wire(lab, &p);
	const uint64_t after = refused_soon(lab->gateway_rules, class, before + 1);
	if (after != before + 1)
		fail_msg("%s: counter '%s' is %" PRIu64 " after %" PRIu64, text,
			 net_class_names[class], after, before);
}

static void every_closed_range_is_counted_by_the_gateway(void **state)
{
	struct lab lab;
	(void)state;
	open_public(&lab);

	for (size_t i = 0; i < ranges_count; i++) {
		struct ip_net net;
		assert_true(ip_net_parse(ranges[i].prefix, &net));
		const struct ip last = ip_net_last(&net);
		if (is_judged(&net.ip))
			expect_counted(&lab, &net.ip);
		if (is_judged(&last))
			expect_counted(&lab, &last);
	}
	assert_int_equal(lab_count(&lab), 0);
	lab_close(&lab);
}

/* --- forged and odd ones --- */

static void a_forged_source_is_counted_and_dropped(void **state)
{
	const struct packet packets[] = { udp4("198.18.0.9", LAB_PUBLIC4, LAB_PORT, 0),
					  udp4("198.19.0.1", LAB_PUBLIC4, LAB_PORT, 0),
					  udp4("8.8.8.8", LAB_PUBLIC4, LAB_PORT, 0),
					  udp6("fdce:6a11::9", LAB_PUBLIC6, IPPROTO_UDP),
					  udp6("2a00::1", LAB_PUBLIC6, IPPROTO_UDP) };
	struct lab lab;
	(void)state;
	open_public(&lab);

	for (size_t i = 0; i < 5; i++) {
		put_on_wire(&lab, &packets[i]);
		assert_int_equal(refused_soon(lab.gateway_rules, NET_SPOOFED, i + 1), i + 1);
	}
	assert_int_equal(lab_count(&lab), 0);
	lab_close(&lab);
}

static void options_and_extension_headers_are_refused(void **state)
{
	const struct packet packets[] = { udp4("198.18.0.2", LAB_PUBLIC4, LAB_PORT, 4),
					  udp4("198.18.0.2", LAB_PUBLIC4, LAB_PORT, 40),
					  udp6("fdce:6a11::2", LAB_PUBLIC6, IPPROTO_HOPOPTS),
					  udp6("fdce:6a11::2", LAB_PUBLIC6, IPPROTO_ROUTING),
					  udp6("fdce:6a11::2", LAB_PUBLIC6, IPPROTO_DSTOPTS) };
	struct lab lab;
	(void)state;
	open_public(&lab);

	for (size_t i = 0; i < 5; i++) {
		put_on_wire(&lab, &packets[i]);
		assert_int_equal(refused_soon(lab.gateway_rules, NET_PROTOCOL, i + 1), i + 1);
	}
	assert_int_equal(lab_count(&lab), 0);
	lab_close(&lab);
}

static void a_protocol_that_is_not_known_is_refused(void **state)
{
	struct packet four = udp4("198.18.0.2", LAB_PUBLIC4, LAB_PORT, 0);
	struct packet six = udp6("fdce:6a11::2", LAB_PUBLIC6, IPPROTO_UDP);
	struct lab lab;
	(void)state;
	open_public(&lab);

	four.bytes[9] = 132; /* SCTP */
	put_total4(&four);
	put_on_wire(&lab, &four);
	four.bytes[9] = 4; /* IP in IP */
	put_total4(&four);
	put_on_wire(&lab, &four);
	six.bytes[6] = 41; /* IPv6 in IPv6 */
	put_on_wire(&lab, &six);
	assert_int_equal(refused_soon(lab.gateway_rules, NET_PROTOCOL, 3), 3);
	assert_int_equal(lab_count(&lab), 0);
	lab_close(&lab);
}

/* Connection tracking lets neighbour discovery (RFC 4861) and multicast reports go untracked. */
static void icmpv6_is_refused_but_for_echo_requests(void **state)
{
	static const uint8_t types[] = { 1, 129, 130, 131, 133, 134, 135, 136, 137, 143, 200 };
	struct lab lab;
	(void)state;
	open_public(&lab);

	for (size_t i = 0; i < sizeof(types); i++) {
		const struct packet p = icmp6(LAB_PUBLIC6, types[i]);
		put_on_wire(&lab, &p);
		if (refused_soon(lab.gateway_rules, NET_PROTOCOL, i + 1) != i + 1)
			fail_msg("type %u: counter 'protocol' is not one more", types[i]);
	}
	assert_int_equal(lab_count(&lab), 0);

	const struct packet echo = icmp6(LAB_PUBLIC6, 128);
	put_on_wire(&lab, &echo);
	assert_int_equal(lab_count(&lab), 1);
	lab_close(&lab);
}

static void name_queries_are_not_tracked(void **state)
{
	static const char *const argv[] = { "grep", "-q", "dport=53 ", "/proc/net/nf_conntrack",
					    NULL };
	const struct packet query = udp4("198.18.0.2", "198.18.0.3", 53, 0);
	struct lab lab;
	(void)state;
	open_public(&lab);
	auto_fd int names = lab_socket(lab.gateway, AF_INET, SOCK_DGRAM, 0);
	lab_bind_any(names, AF_INET, 53);
	char data[DATA_SIZE];

	put_on_wire(&lab, &query);
	assert_int_equal(recv(names, data, sizeof(data), 0), DATA_SIZE);
	if (access("/proc/net/nf_conntrack", F_OK) < 0)
		skip(); /* CONFIG_NF_CONNTRACK_PROCFS is off: nothing to look at */
	assert_int_not_equal(lab_run(lab.gateway, "", argv), 0);
	lab_close(&lab);
}

static void an_atomic_fragment_is_filtered_like_any_packet(void **state)
{
	const struct packet closed = udp6("fdce:6a11::2", "fd00:ec2::254", IPPROTO_FRAGMENT);
	struct lab lab;
	(void)state;
	open_public(&lab);

	put_on_wire(&lab, &closed);
	assert_int_equal(
	    refused(lab.gateway_rules, NET_METADATA) + refused(lab.gateway_rules, NET_PROTOCOL), 1);
	assert_int_equal(lab_count(&lab), 0);
	lab_close(&lab);
}

static void fragments_are_filtered_as_one_packet(void **state)
{
	const struct packet open = udp4("198.18.0.2", LAB_PUBLIC4, LAB_PORT, 0);
	const struct packet closed = udp4("198.18.0.2", "10.1.2.3", LAB_PORT, 0);
	struct lab lab;
	(void)state;
	open_public(&lab);

	const struct packet parts[] = { fragment4(&open, 0, 16, false),
					fragment4(&open, 16, 8, true),
					fragment4(&closed, 0, 16, false),
					fragment4(&closed, 16, 8, true) };
	put_on_wire(&lab, &parts[0]);
	assert_int_equal(lab_count(&lab), 0); /* held back until it is whole */
	put_on_wire(&lab, &parts[1]);
	assert_true(lab_count(&lab) > 0);
	put_on_wire(&lab, &parts[2]);
	put_on_wire(&lab, &parts[3]);
	assert_int_equal(refused_soon(lab.gateway_rules, NET_PRIVATE, 1), 1);
	assert_int_equal(lab_count(&lab), 0);
	lab_close(&lab);
}

static void overlapping_fragments_do_not_pass(void **state)
{
	const struct packet closed = udp4("198.18.0.2", "10.1.2.3", LAB_PORT, 0);
	const struct packet open = udp4("198.18.0.2", LAB_PUBLIC4, LAB_PORT, 0);
	struct lab lab;
	(void)state;
	open_public(&lab);

	const struct packet parts[] = {
		fragment4(&open, 0, 16, false),   fragment4(&open, 8, 16, true),
		fragment4(&closed, 0, 16, false), fragment4(&closed, 8, 16, true),
		fragment4(&closed, 0, 8, false),
	};
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		put_on_wire(&lab, &parts[i]);
	assert_int_equal(lab_count(&lab), 0);
	lab_close(&lab);
}

/* UDP is in the second fragment; the first one has options alone, or nothing but them. */
static void fragments_of_ipv6_are_filtered_as_one_packet(void **state)
{
	static const uint8_t before[] = { IPPROTO_UDP, IPPROTO_DSTOPTS, IPPROTO_ROUTING };
	static const char *const addresses[] = { "fd00:ec2::254", LAB_PUBLIC6 };
	struct lab lab;
	(void)state;
	open_public(&lab);

	for (size_t i = 0; i < sizeof(before); i++) {
		for (size_t k = 0; k < 2; k++) {
			const struct packet whole = udp6("fdce:6a11::2", addresses[k], before[i]);
			const size_t size = whole.size - IPV6_SIZE;
			const struct packet first = fragment6(&whole, 0, 8, false);
			const struct packet second = fragment6(&whole, 8, size - 8, true);
			const bool is_open = before[i] == IPPROTO_UDP && k == 1;

			put_on_wire(&lab, &first);
			assert_int_equal(lab_count(&lab), 0);
			put_on_wire(&lab, &second);
			assert_int_equal(lab_count(&lab) > 0, is_open);
		}
	}
	assert_int_equal(refused_soon(lab.gateway_rules, NET_METADATA, 1), 1);
	assert_int_equal(refused_soon(lab.gateway_rules, NET_PROTOCOL, 4), 4);
	lab_close(&lab);
}

/* --- what the gateway itself sends --- */

/* pasta of 2023 would answer the report's source, "::", from then on. */
static void the_gateway_sends_no_ipv6_multicast_to_the_uplink(void **state)
{
	struct firewall_spec spec = public_spec();
	const struct ip routers = lab_address("ff02::16"); /* RFC 3810 5.2.14 */
	const uint8_t report[8] = { 143 };
	struct sockaddr_storage to;
	const socklen_t size = ip_socket_address(&routers, 0, &to);
	(void)state;

	for (int has_dns = 0; has_dns <= 1; has_dns++) {
		struct lab lab;
		spec.has_dns = has_dns;
		open_lab(&lab, &spec);
		auto_fd int fd = lab_socket(lab.gateway, AF_INET6, SOCK_RAW, IPPROTO_ICMPV6);
		const unsigned uplink = if_nametoindex("uplink"), jail = if_nametoindex("jail");

		setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &uplink, sizeof(uplink));
		assert_int_equal(sendto(fd, report, sizeof(report), 0, (void *)&to, size), -1);
		assert_int_equal(errno, EPERM);
		setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &jail, sizeof(jail));
		assert_int_equal(sendto(fd, report, sizeof(report), 0, (void *)&to, size),
				 sizeof(report));
		lab_close(&lab);
	}
}

/* Its process holds port 53 for UDP, and reads what the program sends there. */
static void the_gateway_sends_no_datagram_to_the_uplink(void **state)
{
	struct firewall_spec spec = public_spec();
	const struct ip world = lab_address(LAB_PUBLIC4), jail = lab_address("198.18.0.2");
	struct sockaddr_storage to;
	struct lab lab;
	(void)state;

	spec.has_dns = true;
	open_lab(&lab, &spec);
	auto_fd int fd = lab_socket(lab.gateway, AF_INET, SOCK_DGRAM, 0);
	socklen_t size = ip_socket_address(&world, LAB_PORT, &to);
	assert_int_equal(sendto(fd, "x", 1, 0, (void *)&to, size), -1);
	assert_int_equal(errno, EPERM);
	size = ip_socket_address(&jail, LAB_PORT, &to);
	assert_int_equal(sendto(fd, "x", 1, 0, (void *)&to, size), 1);
	lab_close(&lab);
}

/* --- errors come back --- */

/* The first packet to LAB_PUBLIC4 as the world sees it: its source is translated. */
static size_t catch (const struct lab *lab, uint8_t *out, size_t size)
{
	const struct ip public = lab_address(LAB_PUBLIC4);

	for (;;) {
		struct pollfd waiting = { .fd = lab->canary, .events = POLLIN };
		assert_int_equal(poll(&waiting, 1, LAB_WAIT_MS), 1);
		ssize_t got = recv(lab->canary, out, size, 0);
		if (got > IPV4_SIZE && out[0] == 0x45 && memcmp(out + 16, public.bytes, 4) == 0)
			return (size_t)got;
	}
}

static void send_too_big(const struct lab *lab, const uint8_t *packet)
{
	auto_fd int fd = lab_socket(lab->world, AF_INET, SOCK_RAW, IPPROTO_ICMP);
	const struct ip gateway = lab_address("198.19.0.1");
	struct sockaddr_storage to;
	socklen_t size = ip_socket_address(&gateway, 0, &to);
	uint8_t message[8 + IPV4_SIZE + 8] = { 3, 4 }; /* RFC 1191 4 */

	put16(message + 6, 1300);
	memcpy(message + 8, packet, IPV4_SIZE + 8);
	put16(message + 2, checksum(0, message, sizeof(message)));
	assert_true(sendto(fd, message, sizeof(message), 0, (void *)&to, size) > 0);
}

static void a_packet_above_the_path_mtu_is_answered(void **state)
{
	const struct ip public = lab_address(LAB_PUBLIC4);
	static const char data[1400];
	const int always = IP_PMTUDISC_DO;
	struct sockaddr_storage to;
	socklen_t size = ip_socket_address(&public, 5000, &to);
	uint8_t seen[2048];
	struct lab lab;
	(void)state;
	open_public(&lab);
	auto_fd int fd = lab_socket(lab.jail, AF_INET, SOCK_DGRAM, 0);

	assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &always, sizeof(always)), 0);
	assert_int_equal(connect(fd, (void *)&to, size), 0);
	assert_int_equal(send(fd, data, sizeof(data), 0), sizeof(data));
	assert_true(catch (&lab, seen, sizeof(seen)) > sizeof(data));
	send_too_big(&lab, seen);

	struct pollfd waiting = { .fd = fd, .events = 0 };
	assert_int_equal(poll(&waiting, 1, LAB_WAIT_MS), 1);
	int code = 0;
	socklen_t length = sizeof(code);
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &length);
	assert_int_equal(code, EMSGSIZE);
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plain_packet_passes_the_gateway_s_rules),
		cmocka_unit_test(every_closed_range_is_counted_by_the_gateway),
		cmocka_unit_test(a_forged_source_is_counted_and_dropped),
		cmocka_unit_test(options_and_extension_headers_are_refused),
		cmocka_unit_test(a_protocol_that_is_not_known_is_refused),
		cmocka_unit_test(icmpv6_is_refused_but_for_echo_requests),
		cmocka_unit_test(name_queries_are_not_tracked),
		cmocka_unit_test(an_atomic_fragment_is_filtered_like_any_packet),
		cmocka_unit_test(fragments_are_filtered_as_one_packet),
		cmocka_unit_test(overlapping_fragments_do_not_pass),
		cmocka_unit_test(fragments_of_ipv6_are_filtered_as_one_packet),
		cmocka_unit_test(the_gateway_sends_no_ipv6_multicast_to_the_uplink),
		cmocka_unit_test(the_gateway_sends_no_datagram_to_the_uplink),
		cmocka_unit_test(a_packet_above_the_path_mtu_is_answered),
	};
	no_lab = lab_enter_user();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
