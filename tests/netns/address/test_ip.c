/* SPDX-License-Identifier: Apache-2.0 */
/* ip: one spelling each, and prefixes by their bits. */
#include "netns/address/ip.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "tests/netns/texts.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static void parsing_and_formatting_an_address_gives_the_same_text(void **state)
{
	static const char *const good[] = {
		"0.0.0.0",
		"10.1.2.3",
		"255.255.255.255",
		"::",
		"::1",
		"2001:db8::1",
		"::ffff:10.1.2.3",
		"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
		"1::",
		"fe80::1",
		"fd00:ec2::254",
	};
	(void)state;

	for (size_t i = 0; i < COUNT(good); i++) {
		struct ip ip = ip_of(good[i]);
		char text[IP_TEXT_MAX];

		assert_int_equal(ip.family, strchr(good[i], ':') ? 6 : 4);
		assert_string_equal(ip_format(&ip, text), good[i]);
	}
}

static void an_unusual_spelling_is_no_address(void **state)
{
	static const char *const bad[] = {
		"",           "1",         "127.1",
		"0x7f.0.0.1", "010.0.0.1", "2130706433",
		"1.2.3",      "1.2.3.4.5", "256.0.0.1",
		"1.2.3.4 ",   " 1.2.3.4",  "1.2.3.+4",
		"1.2.3.",     "1..2.3",    "fe80::1%eth0",
		"[::1]",      ":::",       "1:2:3:4:5:6:7:8:9",
		"12345::",    "::g",       "1.2.3.4/32",
		"::1/128",    "0.0.0.00",  "::ffff:010.0.0.1",
	};
	(void)state;

	for (size_t i = 0; i < COUNT(bad); i++) {
		struct ip ip = { .family = 99 };

		if (ip_parse(bad[i], &ip))
			fail_msg("'%s' is taken", bad[i]);
		assert_int_equal(ip.family, 99); /* written only on success */
	}
}

static void a_prefix_has_a_length_and_no_host_bits(void **state)
{
	static const struct {
		const char *text, *written;
	} good[] = {
		{ "10.0.0.0/8", "10.0.0.0/8" },
		{ "0.0.0.0/0", "0.0.0.0/0" },
		{ "::/0", "::/0" },
		{ "1.2.3.4", "1.2.3.4/32" },
		{ "::1", "::1/128" },
		{ "172.16.0.0/12", "172.16.0.0/12" },
		{ "fe80::/10", "fe80::/10" },
		{ "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128",
		  "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128" },
	};
	static const char *const bad[] = {
		"10.0.0.1/8",
		"10.0.0.0/33",
		"::/129",
		"10.0.0.0/",
		"10.0.0.0/08",
		"10.0.0.0/+8",
		"10.0.0.0/-1",
		"10.0.0.0/8 ",
		"10.0.0.0/8/8",
		"/8",
		"172.16.0.0/11",
		"::1/127",
		"10/8",
		"10.0.0.0/256",
		"10.0.0.0/0008",
		"1111:1111:1111:1111:1111:1111:1111:1111:1111:1111/8",
		"0.0.0.0/4294967296",
	};
	(void)state;

	for (size_t i = 0; i < COUNT(good); i++) {
		struct ip_net net = net_of(good[i].text);
		char text[NET_TEXT_MAX];

		assert_string_equal(ip_net_format(&net, text), good[i].written);
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct ip_net net = { .bits = 99 };

		if (ip_net_parse(bad[i], &net))
			fail_msg("'%s' is taken", bad[i]);
		assert_int_equal(net.bits, 99);
	}
}

static void a_prefix_has_its_addresses_and_no_others(void **state)
{
	static const struct {
		const char *net, *first, *last, *before, *after;
	} rows[] = {
		{ "10.0.0.0/8", "10.0.0.0", "10.255.255.255", "9.255.255.255", "11.0.0.0" },
		{ "172.16.0.0/12", "172.16.0.0", "172.31.255.255", "172.15.255.255", "172.32.0.0" },
		{ "1.2.3.4", "1.2.3.4", "1.2.3.4", "1.2.3.3", "1.2.3.5" },
		{ "100.64.0.0/10", "100.64.0.0", "100.127.255.255", "100.63.255.255",
		  "100.128.0.0" },
		{ "fe80::/10", "fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
		  "fe7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fec0::" },
		{ "2001::/23", "2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff",
		  "2000::", "2001:200::" },
		{ "0.0.0.0/0", "0.0.0.0", "255.255.255.255", "::", "::1" },
	};
	(void)state;

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct ip_net net = net_of(rows[i].net);
		struct ip first = ip_of(rows[i].first), last = ip_of(rows[i].last);
		struct ip before = ip_of(rows[i].before), after = ip_of(rows[i].after);
		struct ip computed = ip_net_last(&net);

		assert_true(ip_net_has(&net, &first) && ip_net_has(&net, &last));
		assert_false(ip_net_has(&net, &before) || ip_net_has(&net, &after));
		assert_true(ip_equal(&computed, &last));
	}
}

static void families_are_never_equal(void **state)
{
	struct ip four = ip_of("0.0.0.0"), six = ip_of("::"), other = ip_of("0.0.0.1");
	(void)state;

	assert_true(ip_equal(&four, &four));
	assert_false(ip_equal(&four, &six));
	assert_false(ip_equal(&four, &other));
}

static void no_address_is_written_as_a_dash(void **state)
{
	struct ip none = { 0 };
	char text[IP_TEXT_MAX];
	(void)state;

	assert_string_equal(ip_format(&none, text), "-");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(parsing_and_formatting_an_address_gives_the_same_text),
		cmocka_unit_test(an_unusual_spelling_is_no_address),
		cmocka_unit_test(a_prefix_has_a_length_and_no_host_bits),
		cmocka_unit_test(a_prefix_has_its_addresses_and_no_others),
		cmocka_unit_test(families_are_never_equal),
		cmocka_unit_test(no_address_is_written_as_a_dash),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
