/* SPDX-License-Identifier: Apache-2.0 */
/* firewall: addresses that the answers for names open, one by one and for a time. */
#include "netns/firewall/firewall.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "netns/relay/resolver_message.h"
#include "tests/netns/firewall/lab_rules.h"
#include "tests/netns/packets.h"

/* The largest transaction: each address of an answer for the port of each entry. */
#define ANSWER_MAX (RESOLVER_ADDRESSES_MAX * ALLOWLIST_MAX)

static struct names names; /* its table is large */

static struct firewall_spec names_spec(void)
{
	struct firewall_spec spec = public_spec();
	spec.is_list = true;
	spec.has_names = true;
	return spec;
}

static void open_names(struct lab *lab)
{
	const struct firewall_spec spec = names_spec();
	memset(&names, 0, sizeof(names));
	open_lab(lab, &spec);
}

/* port 0: all of them */
static void add_name(const char *address, uint16_t port)
{
	const struct ip ip = lab_address(address);
	names.open[names.count++] =
	    (struct names_open){ .endpoint = { ip, ip, port, port ? port : 65535 },
				 .is_new = true };
}

static void load_names(const struct lab *lab)
{
	CHECK(open_new_names(lab->gateway_rules, &names, &err));
	CHECK(open_new_names(lab->jail_rules, &names, &err));
	names_loaded(&names, true);
}

static void an_address_is_closed_until_a_name_opens_it(void **state)
{
	struct lab lab;
	(void)state;
	open_names(&lab);

	assert_int_equal(connect_to(&lab, "93.184.216.40", LAB_PORT), ECONNREFUSED);
	assert_int_equal(connect_to(&lab, LAB_PUBLIC6, LAB_PORT), ECONNREFUSED);
	assert_int_equal(refused(lab.jail_rules, NET_NOT_ALLOWED), 2);
	add_name(LAB_PUBLIC4, 0); /* by which packets are counted */
	add_name("93.184.216.40", LAB_PORT);
	add_name(LAB_PUBLIC6, LAB_PORT);
	load_names(&lab);

	for (int is_alone = 0; is_alone <= 1; is_alone++) {
		assert_int_equal(connect_to(&lab, "93.184.216.40", LAB_PORT), 0);
		assert_int_equal(connect_to(&lab, LAB_PUBLIC6, LAB_PORT), 0);
		assert_int_equal(connect_to(&lab, LAB_PUBLIC4, LAB_PORT), 0);
		assert_true(lab_count(&lab) > 0);

		assert_int_equal(connect_to(&lab, "93.184.216.40", 81), ECONNREFUSED);
		assert_int_equal(connect_to(&lab, "93.184.216.41", LAB_PORT), ECONNREFUSED);
		assert_int_equal(connect_to(&lab, LAB_PUBLIC6, 81), ECONNREFUSED);
		assert_int_equal(connect_to(&lab, "2a00:1450:4001::2", LAB_PORT), ECONNREFUSED);
		assert_int_equal(lab_count(&lab), 0);
		if (!is_alone)
			remove_jail_rules(&lab);
	}
	lab_close(&lab);
}

static void a_name_of_all_ports_opens_udp_and_echo_requests_too(void **state)
{
	const struct packet open = icmp6("2a00:1450:4001::2", 128);
	const struct packet closed = icmp6(LAB_PUBLIC6, 128);
	struct lab lab;
	(void)state;
	open_names(&lab);
	add_name(LAB_PUBLIC4, 0);
	add_name("2a00:1450:4001::2", 0);
	add_name(LAB_PUBLIC6, 53);
	load_names(&lab);

	assert_int_equal(lab_count(&lab), 0);
	assert_int_equal(send_to(&lab, LAB_PUBLIC6, 54), EPERM);
	put_on_wire(&lab, &closed);
	assert_int_equal(lab_count(&lab), 0);
	put_on_wire(&lab, &open);
	assert_int_equal(lab_count(&lab), 1);
	const struct ip ip = lab_address(LAB_PUBLIC6);
	(void)lab_send(lab.jail, &ip, 53, 1, 0);
	assert_int_equal(lab_count(&lab), 1);
	lab_close(&lab);
}

/* What names_take() refuses; the rules of the closed ranges stand before those of names. */
static void a_name_does_not_open_an_address_in_a_closed_range(void **state)
{
	struct lab lab;
	(void)state;
	open_names(&lab);
	add_name(LAB_PUBLIC4, 0); /* by which packets are counted */
	add_name("10.0.0.1", 0);
	add_name("10.0.0.2", LAB_PORT);
	add_name("169.254.169.254", 0);
	load_names(&lab);

	for (int is_alone = 0; is_alone <= 1; is_alone++) {
		const int fd = is_alone ? lab.gateway_rules : lab.jail_rules;
		assert_int_equal(connect_to(&lab, "10.0.0.1", LAB_PORT), ECONNREFUSED);
		assert_int_equal(connect_to(&lab, "10.0.0.2", LAB_PORT), ECONNREFUSED);
		assert_int_equal(connect_to(&lab, "169.254.169.254", LAB_PORT), ECONNREFUSED);
		assert_int_equal(refused(fd, NET_PRIVATE), 2);
		assert_int_equal(refused(fd, NET_METADATA), 1);
		if (!is_alone)
			remove_jail_rules(&lab);
	}
	assert_int_equal(lab_count(&lab), 0);
	lab_close(&lab);
}

/* What names_take() refuses; the rules of the host's addresses stand before those of names. */
static void a_name_does_not_open_an_address_of_the_host_s(void **state)
{
	const struct ip host = lab_address("93.184.216.5");
	struct firewall_spec spec = names_spec();
	struct lab lab;
	(void)state;
	memset(&names, 0, sizeof(names));
	spec.host = &host;
	spec.nhost = 1;
	open_lab(&lab, &spec);
	add_name("93.184.216.5", 0);
	add_name("198.18.0.3", 0); /* the gateway's own */
	load_names(&lab);

	assert_int_equal(connect_to(&lab, "93.184.216.5", LAB_PORT), ECONNREFUSED);
	assert_int_equal(connect_to(&lab, "198.18.0.3", LAB_PORT), ECONNREFUSED);
	assert_int_equal(refused(lab.jail_rules, NET_HOST), 2);
	remove_jail_rules(&lab);
	assert_int_equal(connect_to(&lab, "93.184.216.5", LAB_PORT), ECONNREFUSED);
	lab_close(&lab);
}

static void only_what_is_new_is_loaded(void **state)
{
	struct lab lab;
	(void)state;
	open_names(&lab);
	load_names(&lab); /* nothing: no transaction */
	add_name("93.184.216.40", LAB_PORT);
	add_name("93.184.216.41", LAB_PORT);
	names.open[0].is_new = false;
	load_names(&lab);

	assert_int_equal(connect_to(&lab, "93.184.216.40", LAB_PORT), ECONNREFUSED);
	assert_int_equal(connect_to(&lab, "93.184.216.41", LAB_PORT), 0);
	lab_close(&lab);
}

/* --- for how long ------------------------------------------------------------------- */

/* Sets how many seconds an element of the jail's table has left. */
static void shorten(const struct lab *lab, const char *set, const char *element, unsigned seconds)
{
	char text[512];

	(void)snprintf(text, sizeof(text),
		       "delete element inet cejail %s { %s }\n"
		       "add element inet cejail %s { %s timeout 3600s expires %us }\n",
		       set, element, set, element, seconds);
	assert_int_equal(lab_nft(lab->jail, text), 0);
}

/* How many seconds an element of the jail's table has left, -1: it is not there. */
static int seconds_left(const struct lab *lab, const char *set, const char *element)
{
	char command[256], text[4096] = "";
	int out[2], days = 0, hours = 0, minutes = 0, seconds = 0;

	assert_int_equal(pipe(out), 0);
	(void)snprintf(command, sizeof(command), "nft list set inet cejail %s >/proc/self/fd/%d",
		       set, out[1]);
	const char *const argv[] = { "sh", "-c", command, NULL };
	assert_int_equal(lab_run(lab->jail, "", argv), 0);
	(void)close(out[1]);
	for (size_t size = 0;;) {
		ssize_t got = read(out[0], text + size, sizeof(text) - 1 - size);
		if (got <= 0)
			break;
		size += (size_t)got;
	}
	(void)close(out[0]);

	const char *at = strstr(text, element);
	if (!at)
		return -1;
	at = strstr(at, "expires ");
	assert_non_null(at);
	for (at += strlen("expires "); *at >= '0' && *at <= '9';) {
		char *unit;
		int value = (int)strtol(at, &unit, 10);
		if (strncmp(unit, "ms", 2) == 0)
			break;
		*(*unit == 'd'   ? &days
		  : *unit == 'h' ? &hours
		  : *unit == 'm' ? &minutes
				 : &seconds) = value;
		at = unit + 1;
	}
	return ((days * 24 + hours) * 60 + minutes) * 60 + seconds;
}

#define ADDRESS     "93.184.216.40"
#define WITH_PORT   ADDRESS " . 80"
#define NEARLY_FULL (NAMES_OPEN_S - 60)

static void an_address_stays_open_for_the_time_of_its_set(void **state)
{
	struct lab lab;
	(void)state;
	open_names(&lab);
	add_name(ADDRESS, 0);
	add_name(ADDRESS, LAB_PORT);
	add_name(LAB_PUBLIC6, 0);
	add_name(LAB_PUBLIC6, LAB_PORT);
	load_names(&lab);

	assert_in_range(seconds_left(&lab, "named4", ADDRESS), NEARLY_FULL, NAMES_OPEN_S);
	assert_in_range(seconds_left(&lab, "ports4", WITH_PORT), NEARLY_FULL, NAMES_OPEN_S);
	assert_in_range(seconds_left(&lab, "named6", LAB_PUBLIC6), NEARLY_FULL, NAMES_OPEN_S);
	assert_in_range(seconds_left(&lab, "ports6", LAB_PUBLIC6 " . 80"), NEARLY_FULL,
			NAMES_OPEN_S);
	lab_close(&lab);
}

static void an_address_whose_time_is_over_is_closed(void **state)
{
	struct lab lab;
	(void)state;
	open_names(&lab);
	add_name(ADDRESS, LAB_PORT);
	load_names(&lab);

	shorten(&lab, "ports4", WITH_PORT, 1);
	for (int i = 0; i < 100 && seconds_left(&lab, "ports4", WITH_PORT) >= 0; i++)
		(void)poll(NULL, 0, 100);
	assert_int_equal(connect_to(&lab, ADDRESS, LAB_PORT), ECONNREFUSED);
	names.open[0].is_new = true;
	load_names(&lab);
	assert_int_equal(connect_to(&lab, ADDRESS, LAB_PORT), 0);
	lab_close(&lab);
}

static void open_two_for_600_seconds(struct lab *lab)
{
	open_names(lab);
	add_name(ADDRESS, LAB_PORT);
	add_name(LAB_PUBLIC6, 0);
	load_names(lab);
	shorten(lab, "ports4", WITH_PORT, 600);
	shorten(lab, "named6", LAB_PUBLIC6, 600);
}

static void each_packet_to_an_address_keeps_it_open(void **state)
{
	struct lab lab;
	(void)state;
	open_two_for_600_seconds(&lab);
	assert_in_range(seconds_left(&lab, "ports4", WITH_PORT), 1, 600);
	assert_in_range(seconds_left(&lab, "named6", LAB_PUBLIC6), 1, 600);
	assert_int_equal(connect_to(&lab, ADDRESS, 81), ECONNREFUSED);
	assert_in_range(seconds_left(&lab, "ports4", WITH_PORT), 1, 600);
	assert_int_equal(connect_to(&lab, ADDRESS, LAB_PORT), 0);
	assert_int_equal(connect_to(&lab, LAB_PUBLIC6, LAB_PORT), 0);
	assert_in_range(seconds_left(&lab, "ports4", WITH_PORT), NEARLY_FULL, NAMES_OPEN_S);
	assert_in_range(seconds_left(&lab, "named6", LAB_PUBLIC6), NEARLY_FULL, NAMES_OPEN_S);
	lab_close(&lab);
}

/* Packets keep an address open for longer than names.c knows, which may have forgotten it. */
static void an_address_that_is_loaded_again_has_its_whole_time(void **state)
{
	struct lab lab;
	(void)state;
	open_two_for_600_seconds(&lab);
	names.open[0].is_new = names.open[1].is_new = true;
	load_names(&lab);
	assert_in_range(seconds_left(&lab, "ports4", WITH_PORT), NEARLY_FULL, NAMES_OPEN_S);
	assert_in_range(seconds_left(&lab, "named6", LAB_PUBLIC6), NEARLY_FULL, NAMES_OPEN_S);
	lab_close(&lab);
}

/* --- how many ----------------------------------------------------------------------- */

static void a_full_set_refuses_more_and_keeps_what_it_has(void **state)
{
	struct lab lab;
	struct cj_error err = { 0 };
	(void)state;
	open_names(&lab);
	for (unsigned i = 0; i < NAMES_OPEN_MAX; i++) {
		add_name("8.0.0.0", LAB_PORT);
		names.open[i].endpoint.first.bytes[2] = (uint8_t)(i / 256);
		names.open[i].endpoint.first.bytes[3] = (uint8_t)i;
		if (i % ANSWER_MAX == ANSWER_MAX - 1)
			load_names(&lab);
	}
	load_names(&lab);
	assert_int_equal(connect_to(&lab, "8.0.0.0", LAB_PORT), 0);
	assert_int_equal(connect_to(&lab, "8.0.15.255", LAB_PORT), 0);

	/* a transaction is all or nothing */
	names.open[0].endpoint.first = lab_address("9.9.9.9");
	names.open[0].is_new = names.open[1].is_new = true;
	names.open[2].endpoint =
	    (struct endpoint){ lab_address("9.9.9.8"), lab_address("9.9.9.8"), 0, 65535 };
	names.open[2].is_new = true;
	assert_int_equal(open_new_names(lab.jail_rules, &names, &err), -ENFILE);
	assert_int_equal(connect_to(&lab, "9.9.9.9", LAB_PORT), ECONNREFUSED);
	assert_int_equal(connect_to(&lab, "9.9.9.8", LAB_PORT), ECONNREFUSED);
	assert_int_equal(connect_to(&lab, "8.0.0.1", LAB_PORT), 0);

	/* what is there may be loaded again */
	names.open[0].is_new = names.open[2].is_new = false;
	assert_int_equal(open_new_names(lab.jail_rules, &names, &err), 0);
	assert_int_equal(connect_to(&lab, "8.0.0.1", LAB_PORT), 0);
	lab_close(&lab);
}

static void the_largest_answer_of_either_family_is_one_transaction(void **state)
{
	struct lab lab;
	(void)state;
	open_names(&lab);
	for (int is_ipv6 = 0; is_ipv6 <= 1; is_ipv6++) {
		const char *address = is_ipv6 ? LAB_PUBLIC6 : ADDRESS;
		names.count = 0;
		for (unsigned i = 0; i < ANSWER_MAX; i++) {
			add_name(address, (uint16_t)(1 + i / RESOLVER_ADDRESSES_MAX));
			names.open[i].endpoint.first.bytes[3] ^=
			    (uint8_t)(i % RESOLVER_ADDRESSES_MAX);
		}
		names.open[ANSWER_MAX - 1].endpoint.first_port = LAB_PORT;
		names.open[ANSWER_MAX - 1].endpoint.last_port = LAB_PORT;
		names.open[ANSWER_MAX - 1].endpoint.first = lab_address(address);
		load_names(&lab);
		assert_int_equal(connect_to(&lab, address, LAB_PORT), 0);
		for (unsigned i = 0; i < ANSWER_MAX; i++)
			names.open[i].is_new = true;
		load_names(&lab); /* and once more, when all of it is there */
		assert_int_equal(connect_to(&lab, address, LAB_PORT), 0);
	}
	lab_close(&lab);
}

static void a_table_without_names_has_no_sets_for_them(void **state)
{
	struct lab lab;
	struct cj_error err = { 0 };
	(void)state;
	memset(&names, 0, sizeof(names));
	open_public(&lab);
	add_name(ADDRESS, LAB_PORT);
	assert_int_equal(open_new_names(lab.jail_rules, &names, &err), -ENOENT);
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_is_closed_until_a_name_opens_it),
		cmocka_unit_test(a_name_of_all_ports_opens_udp_and_echo_requests_too),
		cmocka_unit_test(a_name_does_not_open_an_address_in_a_closed_range),
		cmocka_unit_test(a_name_does_not_open_an_address_of_the_host_s),
		cmocka_unit_test(only_what_is_new_is_loaded),
		cmocka_unit_test(an_address_stays_open_for_the_time_of_its_set),
		cmocka_unit_test(an_address_whose_time_is_over_is_closed),
		cmocka_unit_test(each_packet_to_an_address_keeps_it_open),
		cmocka_unit_test(an_address_that_is_loaded_again_has_its_whole_time),
		cmocka_unit_test(a_full_set_refuses_more_and_keeps_what_it_has),
		cmocka_unit_test(the_largest_answer_of_either_family_is_one_transaction),
		cmocka_unit_test(a_table_without_names_has_no_sets_for_them),
	};
	no_lab = lab_enter_user();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
