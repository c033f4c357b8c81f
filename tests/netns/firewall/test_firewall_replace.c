/* SPDX-License-Identifier: Apache-2.0 */
/* firewall_replace: other destinations in tables that are loaded, while connections live. */
#include "netns/firewall/firewall.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "tests/netns/firewall/lab_rules.h"

#define ADDRESS "93.184.216.40"
#define OTHER   "93.184.216.41"

static struct names names; /* its table is large */

/* of the list */
static struct endpoint listed;

/* Everything public; a live one, as all that are replaced. */
static struct firewall_spec open_spec(void)
{
	struct firewall_spec spec = public_spec();
	spec.has_names = true;
	return spec;
}

/* ADDRESS, for one port; and what names open. */
static struct firewall_spec list_spec(void)
{
	struct firewall_spec spec = open_spec();
	listed =
	    (struct endpoint){ lab_address(ADDRESS), lab_address(ADDRESS), LAB_PORT, LAB_PORT };
	spec.is_list = true;
	spec.allowed = &listed;
	spec.nallowed = 1;
	return spec;
}

static struct firewall_spec nothing_spec(void)
{
	struct firewall_spec spec = open_spec();
	spec.is_list = true;
	return spec;
}

static void begin(struct lab *lab)
{
	const struct firewall_spec spec = open_spec();
	memset(&names, 0, sizeof(names));
	open_lab(lab, &spec);
}

static void replace(const struct lab *lab, struct firewall_spec from, struct firewall_spec to)
{
	to = with_names(to, &names);
	CHECK(firewall_replace(lab->jail_rules, &from, &to, &err));
	CHECK(firewall_replace(lab->gateway_rules, &from, &to, &err));
	names_loaded(&names, true);
}

static void add_name(const char *address, uint16_t port)
{
	const struct ip ip = lab_address(address);
	names.open[names.count++] =
	    (struct names_open){ .endpoint = { ip, ip, port, port ? port : 65535 },
				 .is_new = true };
}

static int connected(const struct lab *lab, const char *address)
{
	const struct ip ip = lab_address(address);
	int fd = -1;
	assert_int_equal(lab_connect(lab->jail, &ip, LAB_PORT, LAB_WAIT_MS, &fd), 0);
	assert_true(fd >= 0);
	return fd;
}

/* 0: the next packet of the connection passes; else the error that it meets. */
static int next_packet(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char byte = 'x';
	if (send(fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
		return errno;
	if (poll(&p, 1, 300) <= 0)
		return 0;
	return recv(fd, &byte, 1, MSG_DONTWAIT) < 0 ? errno : 0;
}

static void the_rules_of_both_tables_are_those_of_the_last_list(void **state)
{
	struct lab lab;
	(void)state;
	begin(&lab);
	assert_int_equal(connect_to(&lab, OTHER, LAB_PORT), 0);
	replace(&lab, open_spec(), list_spec());
	assert_int_equal(connect_to(&lab, ADDRESS, LAB_PORT), 0);
	assert_int_equal(connect_to(&lab, ADDRESS, 81), ECONNREFUSED);
	assert_int_equal(connect_to(&lab, OTHER, LAB_PORT), ECONNREFUSED);
	assert_int_equal(refused(lab.jail_rules, NET_NOT_ALLOWED), 2);

	replace(&lab, list_spec(), nothing_spec());
	assert_int_equal(connect_to(&lab, ADDRESS, LAB_PORT), ECONNREFUSED);
	assert_int_equal(connect_to(&lab, LAB_PUBLIC6, LAB_PORT), ECONNREFUSED);
	assert_int_equal(refused(lab.jail_rules, NET_NOT_ALLOWED), 4); /* the counters go on */

	replace(&lab, nothing_spec(), open_spec());
	assert_int_equal(connect_to(&lab, OTHER, LAB_PORT), 0);
	assert_int_equal(connect_to(&lab, LAB_PUBLIC6, LAB_PORT), 0);
	assert_int_equal(connect_to(&lab, "10.0.0.1", LAB_PORT), ECONNREFUSED);
	assert_int_equal(refused(lab.jail_rules, NET_PRIVATE), 1);
	assert_int_equal(refused(lab.jail_rules, NET_NOT_ALLOWED), 4);

	replace(&lab, open_spec(), nothing_spec());
	remove_jail_rules(&lab); /* the gateway's hold alone */
	assert_int_equal(connect_to(&lab, OTHER, LAB_PORT), ECONNREFUSED);
	assert_int_equal(refused(lab.gateway_rules, NET_NOT_ALLOWED), 1);
	lab_close(&lab);
}

static void a_connection_lives_as_long_as_its_address_is_open(void **state)
{
	struct lab lab;
	(void)state;
	begin(&lab);
	auto_fd int listed_fd = connected(&lab, ADDRESS);
	auto_fd int closed_fd = connected(&lab, OTHER);
	auto_fd int named_fd = connected(&lab, LAB_PUBLIC6);
	add_name(LAB_PUBLIC6, LAB_PORT);
	replace(&lab, open_spec(), list_spec());
	assert_int_equal(next_packet(listed_fd), 0);
	assert_int_equal(next_packet(named_fd), 0);
	assert_int_equal(next_packet(closed_fd), ECONNRESET);

	names.open[0].is_new = true; /* as names_change() marks what stays */
	replace(&lab, list_spec(), nothing_spec());
	assert_int_equal(next_packet(named_fd), 0);
	assert_int_equal(next_packet(listed_fd), ECONNRESET);
	names.count = 0;
	replace(&lab, nothing_spec(), nothing_spec());
	assert_int_equal(next_packet(named_fd), ECONNRESET);
	lab_close(&lab);
}

/* The list stays, and one address of it is denied for a while. */
static void a_connection_ends_when_its_address_is_denied(void **state)
{
	struct firewall_spec to = list_spec();
	struct lab lab;
	(void)state;
	begin(&lab);
	to.denied = &listed;
	to.ndenied = 1;
	replace(&lab, open_spec(), list_spec());
	auto_fd int fd = connected(&lab, ADDRESS);
	assert_int_equal(next_packet(fd), 0);
	replace(&lab, list_spec(), to);
	assert_int_equal(next_packet(fd), ECONNRESET);
	assert_int_equal(connect_to(&lab, ADDRESS, LAB_PORT), ECONNREFUSED);
	replace(&lab, to, to);
	assert_int_equal(connect_to(&lab, ADDRESS, LAB_PORT), ECONNREFUSED);
	replace(&lab, to, list_spec());
	assert_int_equal(connect_to(&lab, ADDRESS, LAB_PORT), 0);
	lab_close(&lab);
}

static void the_host_s_addresses_are_closed_in_each_list(void **state)
{
	const struct ip host = lab_address(ADDRESS);
	struct firewall_spec to = list_spec();
	struct lab lab;
	(void)state;
	begin(&lab);
	CHECK(firewall_close_host(lab.jail_rules, &host, &err));
	to.host = &host;
	to.nhost = 1;
	replace(&lab, open_spec(), to);
	assert_int_equal(connect_to(&lab, ADDRESS, LAB_PORT), ECONNREFUSED);
	assert_int_equal(refused(lab.jail_rules, NET_HOST), 1);
	lab_close(&lab);
}

static void what_can_not_be_loaded_leaves_the_rules_as_they_were(void **state)
{
	const struct firewall_spec open = open_spec(), list = list_spec();
	struct cj_error err = { 0 };
	struct lab lab;
	(void)state;
	begin(&lab);
	auto_fd int fd = connected(&lab, OTHER);
	/* there are no sets of a list to delete: the last part of the transaction */
	assert_true(firewall_replace(lab.jail_rules, &list, &open, &err) < 0);
	assert_true(firewall_replace(lab.jail_rules, &list, &list, &err) < 0);
	assert_int_equal(connect_to(&lab, OTHER, LAB_PORT), 0);
	assert_int_equal(connect_to(&lab, "10.0.0.1", LAB_PORT), ECONNREFUSED);
	assert_int_equal(next_packet(fd), 0);
	replace(&lab, open, list);
	assert_int_equal(connect_to(&lab, OTHER, LAB_PORT), ECONNREFUSED);
	lab_close(&lab);
}

static void as_many_addresses_as_a_change_keeps_are_one_transaction(void **state)
{
	struct lab lab;
	(void)state;
	begin(&lab);
	for (unsigned i = 0; i < NAMES_KEPT_MAX; i++) {
		add_name(LAB_PUBLIC6, LAB_PORT);
		names.open[i].endpoint.first.bytes[4] = (uint8_t)(i / 256);
		names.open[i].endpoint.first.bytes[5] = (uint8_t)i;
	}
	names.open[NAMES_KEPT_MAX - 1].endpoint.first = lab_address(LAB_PUBLIC6);
	replace(&lab, open_spec(), nothing_spec());
	assert_int_equal(connect_to(&lab, LAB_PUBLIC6, LAB_PORT), 0);
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_rules_of_both_tables_are_those_of_the_last_list),
		cmocka_unit_test(a_connection_lives_as_long_as_its_address_is_open),
		cmocka_unit_test(a_connection_ends_when_its_address_is_denied),
		cmocka_unit_test(the_host_s_addresses_are_closed_in_each_list),
		cmocka_unit_test(what_can_not_be_loaded_leaves_the_rules_as_they_were),
		cmocka_unit_test(as_many_addresses_as_a_change_keeps_are_one_transaction),
	};
	no_lab = lab_enter_user();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
