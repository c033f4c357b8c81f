/* SPDX-License-Identifier: Apache-2.0 */
/* firewall: the rules in a container's namespace alone judge the packets of ordinary sockets. */
#include "netns/firewall/firewall.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "tests/forked.h"
#include "tests/netns/firewall/lab_rules.h"

static char table[FIREWALL_TABLE_MAX];

static void open_container(struct lab *lab, const struct firewall_container_spec *spec)
{
	if (no_lab) {
		print_message("skipped: %s\n", no_lab);
		skip();
	}
	lab_open(lab);
	CHECK(firewall_apply_container(lab->jail_rules, spec, table, &err));
}

static uint64_t count_of(const struct lab *lab, enum net_class class)
{
	uint64_t counts[NET_CLASS_COUNT] = { 0 };

	CHECK(firewall_read_table(lab->jail_rules, table, counts, &err));
	return counts[class];
}

static void public_addresses_are_open_and_closed_ranges_are_not(void **state)
{
	const struct firewall_container_spec spec = { 0 };
	const struct firewall_spec gateway = public_spec();
	struct lab lab;

	(void)state;
	open_container(&lab, &spec);
	/* The world knows no way back to the jail's IPv6 address: the gateway translates it. */
	CHECK(firewall_apply_gateway(lab.gateway_rules, &gateway, &err));
	assert_int_equal(connect_to(&lab, LAB_PUBLIC4, LAB_PORT), 0);
	assert_int_equal(connect_to(&lab, LAB_PUBLIC6, LAB_PORT), 0);
	assert_int_equal(connect_to(&lab, "10.1.2.3", LAB_PORT), ECONNREFUSED);
	assert_int_equal(connect_to(&lab, "169.254.169.254", LAB_PORT), ECONNREFUSED);
	assert_int_equal(connect_to(&lab, "fd00:ec2::254", LAB_PORT), ECONNREFUSED);
	assert_int_equal(count_of(&lab, NET_PRIVATE), 1);
	assert_int_equal(count_of(&lab, NET_METADATA), 2);
	lab_close(&lab);
}

static void name_servers_are_open_at_their_port_only(void **state)
{
	const struct ip server = lab_address("10.96.0.10");
	const struct firewall_container_spec spec = { .name_servers = &server, .nname_servers = 1 };
	struct lab lab;

	(void)state;
	open_container(&lab, &spec);
	/* The world answers: nobody listens at 53. */
	assert_int_equal(connect_to(&lab, "10.96.0.10", 53), ECONNREFUSED);
	assert_int_equal(count_of(&lab, NET_PRIVATE), 0);
	assert_int_equal(connect_to(&lab, "10.96.0.10", LAB_PORT), ECONNREFUSED);
	assert_int_equal(count_of(&lab, NET_PRIVATE), 1);
	lab_close(&lab);
}

static void the_host_is_closed_also_when_it_is_listed(void **state)
{
	const struct ip host = lab_address(LAB_PUBLIC4), other = lab_address("93.184.216.35");
	const struct endpoint allowed[] = { { host, host, 0, 65535 }, { other, other, 0, 65535 } };
	const struct firewall_container_spec spec = { .rules = { .is_list = true,
								 .allowed = allowed,
								 .nallowed = 2,
								 .host = &host,
								 .nhost = 1 } };
	struct lab lab;

	(void)state;
	open_container(&lab, &spec);
	assert_int_equal(connect_to(&lab, "93.184.216.35", LAB_PORT), 0);
	assert_int_equal(connect_to(&lab, LAB_PUBLIC4, LAB_PORT), ECONNREFUSED);
	assert_int_equal(count_of(&lab, NET_HOST), 1);
	assert_int_equal(connect_to(&lab, "93.184.216.36", LAB_PORT), ECONNREFUSED);
	assert_int_equal(count_of(&lab, NET_NOT_ALLOWED), 1);
	lab_close(&lab);
}

static void loading_again_replaces_the_same_table_and_keeps_another(void **state)
{
	const struct firewall_container_spec spec = { 0 }, closed = { .rules.is_list = true };
	char same[FIREWALL_TABLE_MAX], other[FIREWALL_TABLE_MAX];
	struct lab lab;

	(void)state;
	open_container(&lab, &spec);
	/* What a program with the right once left there does not stay. */
	char script[128];
	(void)snprintf(script, sizeof(script), "flush table inet %s\n", table);
	assert_int_equal(lab_nft(lab.jail, script), 0);
	CHECK(firewall_apply_container(lab.jail_rules, &spec, same, &err));
	assert_string_equal(same, table);
	assert_int_equal(connect_to(&lab, "10.1.2.3", LAB_PORT), ECONNREFUSED);
	assert_int_equal(connect_to(&lab, LAB_PUBLIC4, LAB_PORT), 0);

	CHECK(firewall_apply_container(lab.jail_rules, &closed, other, &err));
	assert_string_not_equal(other, table);
	assert_int_equal(connect_to(&lab, LAB_PUBLIC4, LAB_PORT), ECONNREFUSED);
	lab_close(&lab);
}

/* In a child: sends a datagram with a source route to a public address. */
static int send_routed(const struct lab *lab)
{
	static const uint8_t route[] = { 131, 7, 4, 10, 1, 2, 3, 0 }; /* LSRR by 10.1.2.3 */
	pid_t pid = test_fork();
	int status = 0;

	if (pid == 0) {
		struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(81) };
		int fd = setns(lab->jail, CLONE_NEWNET) == 0 ? socket(AF_INET, SOCK_DGRAM, 0) : -1;
		if (fd < 0 || inet_pton(AF_INET, LAB_PUBLIC4, &to.sin_addr) != 1 ||
		    setsockopt(fd, IPPROTO_IP, IP_OPTIONS, route, sizeof(route)) < 0)
			_exit(1);
		(void)!sendto(fd, "x", 1, 0, (struct sockaddr *)&to, sizeof(to));
		_exit(0);
	}
	return waitpid(pid, &status, 0) == pid ? status : -1;
}

static void a_source_route_is_refused(void **state)
{
	const struct firewall_container_spec spec = { 0 };
	struct lab lab;

	(void)state;
	open_container(&lab, &spec);
	assert_int_equal(send_routed(&lab), 0);
	/* the first hop is the destination in the header: it is private, or it has options */
	assert_int_equal(count_of(&lab, NET_PROTOCOL) + count_of(&lab, NET_PRIVATE), 1);
	lab_close(&lab);
}

/* A socket of IPv6 with this source, which needs no right; 0 or an errno. */
static int send_from(const char *source, uint16_t source_port, const char *to, uint16_t to_port)
{
	struct sockaddr_in6 from = { .sin6_family = AF_INET6, .sin6_port = htons(source_port) };
	struct sockaddr_in6 peer = { .sin6_family = AF_INET6, .sin6_port = htons(to_port) };
	const int on = 1;
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);

	if (fd < 0 || inet_pton(AF_INET6, source, &from.sin6_addr) != 1 ||
	    inet_pton(AF_INET6, to, &peer.sin6_addr) != 1 ||
	    setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&from, sizeof(from)) < 0)
		return EIO;
	int code = sendto(fd, "x", 1, 0, (struct sockaddr *)&peer, sizeof(peer)) < 0 ? errno : 0;
	close(fd);
	return code;
}

static void a_foreign_source_makes_no_packet_an_answer(void **state)
{
	static const char own[] = "fdce:6a11::2", closed[] = "fd00:ec2::254";
	const struct firewall_container_spec spec = { 0 };
	struct lab lab;
	int status = 0;

	(void)state;
	open_container(&lab, &spec);
	pid_t pid = test_fork();
	if (pid == 0) {
		bool is_in = setns(lab.jail, CLONE_NEWNET) == 0 &&
			     send_from(closed, 5353, own, 5353) != EIO &&
			     send_from(own, 5353, closed, 5353) != EIO;
		_exit(is_in ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(count_of(&lab, NET_PROTOCOL), 1);
	assert_int_equal(count_of(&lab, NET_METADATA), 1);
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(public_addresses_are_open_and_closed_ranges_are_not),
		cmocka_unit_test(name_servers_are_open_at_their_port_only),
		cmocka_unit_test(the_host_is_closed_also_when_it_is_listed),
		cmocka_unit_test(loading_again_replaces_the_same_table_and_keeps_another),
		cmocka_unit_test(a_source_route_is_refused),
		cmocka_unit_test(a_foreign_source_makes_no_packet_an_answer),
	};

	no_lab = lab_enter_user();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
