/* SPDX-License-Identifier: Apache-2.0 */
/* firewall: a list of destinations instead of the whole public network, and one of those that are
 * denied. */
#include "netns/firewall/firewall.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "tests/netns/firewall/lab_rules.h"
#include "tests/netns/packets.h"

static struct endpoint allow(const char *net_text, uint16_t first_port, uint16_t last_port)
{
	struct ip_net net;
	assert_true(ip_net_parse(net_text, &net));
	return (struct endpoint){ net.ip, ip_net_last(&net), first_port, last_port };
}

static struct firewall_spec list_spec(const struct endpoint *allowed, size_t count)
{
	struct firewall_spec spec = public_spec();
	spec.is_list = true;
	spec.allowed = allowed;
	spec.nallowed = count;
	return spec;
}

static void only_addresses_on_the_list_are_open(void **state)
{
	const struct endpoint allowed[] = { allow(LAB_PUBLIC4, 0, 65535),
					    allow("93.184.216.40", 80, 80),
					    allow("93.184.218.0/24", 79, 80),
					    allow(LAB_PUBLIC6, 80, 80) };
	const struct firewall_spec spec = list_spec(allowed, 4);
	struct lab lab;
	(void)state;
	open_lab(&lab, &spec);

	for (int is_alone = 0; is_alone <= 1; is_alone++) {
		assert_int_equal(connect_to(&lab, LAB_PUBLIC4, LAB_PORT), 0);
		assert_int_equal(connect_to(&lab, "93.184.216.40", LAB_PORT), 0);
		assert_int_equal(connect_to(&lab, "93.184.218.77", LAB_PORT), 0);
		assert_int_equal(connect_to(&lab, LAB_PUBLIC6, LAB_PORT), 0);
		assert_true(lab_count(&lab) > 0);

		assert_int_equal(connect_to(&lab, "93.184.216.40", 81), ECONNREFUSED);
		assert_int_equal(connect_to(&lab, "93.184.216.41", LAB_PORT), ECONNREFUSED);
		assert_int_equal(connect_to(&lab, "93.184.219.0", LAB_PORT), ECONNREFUSED);
		assert_int_equal(connect_to(&lab, "2a00:1450:4001::2", LAB_PORT), ECONNREFUSED);
		assert_int_equal(lab_count(&lab), 0);
		const int rules_fd = is_alone ? lab.gateway_rules : lab.jail_rules;
		assert_int_equal(refused(rules_fd, NET_NOT_ALLOWED), 4);
		if (!is_alone)
			remove_jail_rules(&lab);
	}
	lab_close(&lab);
}

static void a_closed_range_keeps_its_class_and_opens_where_listed(void **state)
{
	const struct endpoint allowed[] = { allow(LAB_PUBLIC4, 0, 65535),
					    allow("10.1.2.3", 80, 80) };
	const struct firewall_spec spec = list_spec(allowed, 2);
	struct lab lab;
	(void)state;
	open_lab(&lab, &spec);

	assert_int_equal(connect_to(&lab, "10.1.2.3", 80), 0);
	assert_int_equal(connect_to(&lab, "10.1.2.3", 81), ECONNREFUSED);
	assert_int_equal(connect_to(&lab, "10.1.2.4", 80), ECONNREFUSED);
	assert_int_equal(refused(lab.jail_rules, NET_PRIVATE), 2);
	assert_int_equal(refused(lab.jail_rules, NET_NOT_ALLOWED), 0);
	lab_close(&lab);
}

static void a_listed_address_of_the_host_s_stays_closed(void **state)
{
	const struct endpoint allowed[] = { allow("93.184.216.0/24", 0, 65535) };
	const struct ip host = lab_address("93.184.216.5");
	struct firewall_spec spec = list_spec(allowed, 1);
	struct lab lab;
	(void)state;
	spec.host = &host;
	spec.nhost = 1;
	open_lab(&lab, &spec);

	assert_int_equal(connect_to(&lab, "93.184.216.5", LAB_PORT), ECONNREFUSED);
	assert_int_equal(refused(lab.jail_rules, NET_HOST), 1);
	remove_jail_rules(&lab);
	assert_int_equal(connect_to(&lab, "93.184.216.5", LAB_PORT), ECONNREFUSED);
	assert_int_equal(refused(lab.gateway_rules, NET_HOST), 1);
	assert_int_equal(lab_count(&lab), 0);
	lab_close(&lab);
}

static void entries_may_contain_and_overlap_each_other(void **state)
{
	const struct endpoint allowed[] = {
		allow("93.184.216.0/25", 0, 65535), allow("93.184.216.7", 80, 80),
		allow("93.184.216.0/24", 80, 80),   allow("93.184.216.0/25", 0, 65535),
		allow("2a00:1450::/32", 443, 443),  allow("2a00:1450:4001::/48", 80, 500),
	};
	const struct firewall_spec spec = list_spec(allowed, 6);
	struct lab lab;
	(void)state;
	open_lab(&lab, &spec);

	for (int is_alone = 0; is_alone <= 1; is_alone++) {
		assert_int_equal(connect_to(&lab, "93.184.216.7", LAB_PORT), 0);
		assert_int_equal(connect_to(&lab, "93.184.216.200", LAB_PORT), 0);
		assert_int_equal(connect_to(&lab, LAB_PUBLIC6, LAB_PORT), 0);
		assert_true(lab_count(&lab) > 0);
		assert_int_equal(connect_to(&lab, "93.184.216.200", 81), ECONNREFUSED);
		assert_int_equal(connect_to(&lab, "2a00:1450:9::1", 80), ECONNREFUSED);
		assert_int_equal(lab_count(&lab), 0);
		if (!is_alone)
			remove_jail_rules(&lab);
	}
	lab_close(&lab);
}

static void an_echo_request_goes_to_entries_of_all_ports_only(void **state)
{
	const struct endpoint allowed[] = { allow(LAB_PUBLIC4, 0, 65535),
					    allow(LAB_PUBLIC6, 80, 80),
					    allow("2a00:1450:4001::2", 0, 65535) };
	const struct firewall_spec spec = list_spec(allowed, 3);
	const struct packet open = icmp6("2a00:1450:4001::2", 128);
	const struct packet closed = icmp6(LAB_PUBLIC6, 128);
	struct lab lab;
	(void)state;
	open_lab(&lab, &spec);

	put_on_wire(&lab, &open);
	assert_int_equal(lab_count(&lab), 1);
	put_on_wire(&lab, &closed);
	assert_int_equal(lab_count(&lab), 0);
	assert_int_equal(refused(lab.gateway_rules, NET_NOT_ALLOWED), 1);
	lab_close(&lab);
}

static void an_empty_allow_list_opens_no_address(void **state)
{
	const struct firewall_spec spec = list_spec(NULL, 0);
	struct lab lab;
	(void)state;
	open_lab(&lab, &spec);

	assert_int_equal(connect_to(&lab, LAB_PUBLIC4, LAB_PORT), ECONNREFUSED);
	assert_int_equal(send_to(&lab, LAB_PUBLIC6, LAB_PORT), EPERM);
	assert_int_equal(refused(lab.jail_rules, NET_NOT_ALLOWED), 2);
	lab_close(&lab);
}

/* As many as there can be, in no order, both families. */
static void the_longest_list_is_loaded(void **state)
{
	static struct endpoint allowed[ENDPOINTS_MAX];
	static struct ip host[256];
	struct firewall_spec spec = list_spec(allowed, ENDPOINTS_MAX);
	struct lab lab;
	(void)state;

	for (size_t i = 0; i < ENDPOINTS_MAX; i++) {
		allowed[i] = i % 2 ? allow(LAB_PUBLIC6, 1000, 1010) : allow("8.0.0.1", 80, 80);
		allowed[i].first.bytes[3] ^= (uint8_t)(i / 2);
		allowed[i].last = allowed[i].first;
	}
	for (size_t i = 0; i < 256; i++) {
		host[i] = lab_address(i % 2 ? "2a00::" : "9.9.9.0");
		host[i].bytes[i % 2 ? 15 : 3] = (uint8_t)i;
	}
	spec.host = host;
	spec.nhost = 256;
	open_lab(&lab, &spec);
	assert_int_equal(connect_to(&lab, "8.0.0.1", LAB_PORT), 0);
	assert_int_equal(connect_to(&lab, "8.0.0.255", LAB_PORT), 0);
	assert_int_equal(connect_to(&lab, "8.0.1.0", LAB_PORT), ECONNREFUSED);
	lab_close(&lab);
}

/* --- what is denied ----------------------------------------------------------------- */

#define CDN      "93.184.218."
#define SECRET6  "2a00:1450:4001::2"
#define NDENIED  5
#define NALLOWED 4

static void deny_some(struct firewall_spec *spec, struct endpoint denied[static NDENIED])
{
	denied[0] = allow(CDN "64/26", 0, 65535);
	denied[1] = allow("93.184.216.41", LAB_PORT, LAB_PORT);
	denied[2] = allow("2a00:1450:4001::/127", 0, 65535);
	denied[3] = allow(SECRET6, 0, 65535);
	denied[4] = allow(CDN "0/24", 79, 79); /* it meets the first one */
	spec->denied = denied;
	spec->ndenied = NDENIED;
}

/* In the rules of the jail, and in those of the gateway alone. */
static void expect_denied(struct lab *lab)
{
	for (int is_alone = 0; is_alone <= 1; is_alone++) {
		const int rules_fd = is_alone ? lab->gateway_rules : lab->jail_rules;
		assert_int_equal(connect_to(lab, LAB_PUBLIC4, LAB_PORT), 0);
		assert_int_equal(connect_to(lab, CDN "63", LAB_PORT), 0);
		assert_int_equal(connect_to(lab, CDN "128", LAB_PORT), 0);
		assert_true(lab_count(lab) > 0);
		assert_int_equal(connect_to(lab, CDN "64", LAB_PORT), ECONNREFUSED);
		assert_int_equal(connect_to(lab, CDN "127", 81), ECONNREFUSED);
		assert_int_equal(connect_to(lab, "93.184.216.41", LAB_PORT), ECONNREFUSED);
		assert_int_equal(connect_to(lab, SECRET6, LAB_PORT), ECONNREFUSED);
		assert_int_equal(connect_to(lab, LAB_PUBLIC6, LAB_PORT), ECONNREFUSED);
		assert_int_equal(connect_to(lab, CDN "1", 79), ECONNREFUSED);
		assert_int_equal(refused(rules_fd, NET_NOT_ALLOWED), 6);
		assert_int_equal(lab_count(lab), 0);
		if (!is_alone)
			remove_jail_rules(lab);
	}
}

static void a_denied_address_is_closed_in_a_public_network(void **state)
{
	struct endpoint denied[NDENIED];
	struct firewall_spec spec = public_spec();
	struct lab lab;
	(void)state;
	deny_some(&spec, denied);
	open_lab(&lab, &spec);
	expect_denied(&lab);
	lab_close(&lab);
}

static void a_denied_address_is_closed_whatever_a_list_allows(void **state)
{
	const struct endpoint allowed[NALLOWED] = { allow("93.0.0.0/8", 0, 65535),
						    allow("93.184.216.41", LAB_PORT, LAB_PORT),
						    allow("2a00:1450::/32", 0, 65535),
						    allow(CDN "64", LAB_PORT, LAB_PORT) };
	struct endpoint denied[NDENIED];
	struct firewall_spec spec = list_spec(allowed, NALLOWED);
	struct lab lab;
	(void)state;
	deny_some(&spec, denied);
	open_lab(&lab, &spec);
	expect_denied(&lab);
	lab_close(&lab);
}

/* What names_take() leaves out; the rules of denied addresses stand before those of names. */
static void a_denied_address_is_closed_whatever_a_name_opens(void **state)
{
	static struct names names;
	struct endpoint denied[NDENIED];
	struct firewall_spec spec = list_spec(NULL, 0);
	struct lab lab;
	(void)state;
	const char *const opened[] = { LAB_PUBLIC4, CDN "63", CDN "64",    CDN "127",
				       CDN "128",   CDN "1",  LAB_PUBLIC6, SECRET6 };
	for (size_t i = 0; i < sizeof(opened) / sizeof(opened[0]); i++) {
		const struct ip ip = lab_address(opened[i]);
		names.open[names.count++] =
		    (struct names_open){ .endpoint = { ip, ip, 0, 65535 }, .is_new = true };
	}
	const struct ip ported = lab_address("93.184.216.41");
	names.open[names.count++] =
	    (struct names_open){ .endpoint = { ported, ported, LAB_PORT, LAB_PORT },
				 .is_new = true };
	spec = with_names(spec, &names);
	deny_some(&spec, denied);
	open_lab(&lab, &spec);
	expect_denied(&lab);
	lab_close(&lab);
}

static void an_echo_request_to_a_denied_address_is_refused_unless_one_port_is_denied(void **state)
{
	const struct packet closed = icmp6(SECRET6, 128), open = icmp6(LAB_PUBLIC6, 128);
	const struct endpoint denied[] = { allow(SECRET6, 0, 65535), allow(LAB_PUBLIC6, 80, 80) };
	struct firewall_spec spec = public_spec();
	struct lab lab;
	(void)state;
	spec.denied = denied;
	spec.ndenied = 2;
	open_lab(&lab, &spec);

	put_on_wire(&lab, &closed);
	assert_int_equal(lab_count(&lab), 0);
	assert_int_equal(refused(lab.gateway_rules, NET_NOT_ALLOWED), 1);
	put_on_wire(&lab, &open);
	assert_int_equal(lab_count(&lab), 1);
	assert_int_equal(send_to(&lab, SECRET6, 5), EPERM);
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_addresses_on_the_list_are_open),
		cmocka_unit_test(a_closed_range_keeps_its_class_and_opens_where_listed),
		cmocka_unit_test(a_listed_address_of_the_host_s_stays_closed),
		cmocka_unit_test(entries_may_contain_and_overlap_each_other),
		cmocka_unit_test(an_echo_request_goes_to_entries_of_all_ports_only),
		cmocka_unit_test(an_empty_allow_list_opens_no_address),
		cmocka_unit_test(the_longest_list_is_loaded),
		cmocka_unit_test(a_denied_address_is_closed_in_a_public_network),
		cmocka_unit_test(a_denied_address_is_closed_whatever_a_list_allows),
		cmocka_unit_test(a_denied_address_is_closed_whatever_a_name_opens),
		cmocka_unit_test(
		    an_echo_request_to_a_denied_address_is_refused_unless_one_port_is_denied),
	};
	no_lab = lab_enter_user();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
