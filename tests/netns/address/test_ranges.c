/* SPDX-License-Identifier: Apache-2.0 */
/* ranges: what is closed, what is open, and that the intervals say the same as the table. */
#include "netns/address/ranges.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "tests/netns/texts.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define OPEN         NET_CLASS_COUNT

static enum net_class find(const struct ip *ip)
{
	enum net_class class = OPEN;

	return ranges_find(ip, &class) ? class : OPEN;
}

/* The class by the intervals alone. */
static enum net_class find_flat(const struct ip *ip)
{
	struct range_interval flat[RANGE_INTERVALS_MAX];
	size_t count = ranges_flatten(ip->family, flat);
	enum net_class class = OPEN;

	for (size_t i = 0; i < count; i++) {
		if (memcmp(flat[i].first.bytes, ip->bytes, 16) <= 0 &&
		    memcmp(ip->bytes, flat[i].last.bytes, 16) <= 0) {
			assert_int_equal(class, OPEN); /* disjoint */
			class = flat[i].class;
		}
	}
	return class;
}

static void expect(const struct ip *ip, enum net_class class)
{
	char text[IP_TEXT_MAX];

	if (find(ip) != class || find_flat(ip) != class)
		fail_msg("%s: class %d by the table, %d by the intervals, not %d",
			 ip_format(ip, text), find(ip), find_flat(ip), class);
}

/* The last address before (-1) or the first after (+1); false when there is none. */
static bool neighbour(const struct ip *ip, int by, struct ip *out)
{
	*out = *ip;
	for (size_t i = ip_size(ip); i-- > 0;) {
		out->bytes[i] = (uint8_t)(out->bytes[i] + by);
		if (out->bytes[i] != (by > 0 ? 0 : 0xff))
			return true;
	}
	return false;
}

/* An address in the middle of a prefix: the first host bit is set. */
static struct ip middle(const struct ip_net *net)
{
	struct ip ip = net->ip;

	if (net->bits < ip_size(&ip) * 8)
		ip.bytes[net->bits / 8] |= (uint8_t)(0x80 >> (net->bits % 8));
	return ip;
}

/* Another way to the longest prefix: by comparing bit for bit. */
static enum net_class longest(const struct ip *ip)
{
	enum net_class class = OPEN;
	int best = -1;

	for (size_t i = 0; i < ranges_count; i++) {
		struct ip_net net = net_of(ranges[i].prefix);
		int same = 0;

		while (net.ip.family == ip->family && same < net.bits &&
		       (((net.ip.bytes[same / 8] ^ ip->bytes[same / 8]) >> (7 - same % 8)) & 1) ==
			   0)
			same++;
		if (net.ip.family == ip->family && same == net.bits && same > best) {
			best = same;
			class = ranges[i].class;
		}
	}
	return class;
}

static void every_row_is_a_prefix_in_order_with_its_class_and_source(void **state)
{
	struct ip_net last = { 0 };
	(void)state;

	for (size_t i = 0; i < ranges_count; i++) {
		struct ip_net net = net_of(ranges[i].prefix);
		assert_true(ranges[i].class < NET_HOST);
		assert_true(strlen(ranges[i].what) > 0 && strlen(ranges[i].source) > 0);
		if (net.ip.family == last.ip.family) {
			int order = memcmp(net.ip.bytes, last.ip.bytes, 16);

			if (order < 0 || (order == 0 && net.bits <= last.bits))
				fail_msg("row '%s' stands too late", ranges[i].prefix);
		} else {
			assert_true(net.ip.family > last.ip.family);
		}
		last = net;
	}
}

static void the_longest_prefix_decides_in_every_row(void **state)
{
	(void)state;

	for (size_t i = 0; i < ranges_count; i++) {
		struct ip_net net = net_of(ranges[i].prefix);
		struct ip addresses[5] = { net.ip, ip_net_last(&net), middle(&net) };
		size_t count = 3;

		count += neighbour(&addresses[0], -1, &addresses[count]) ? 1 : 0;
		count += neighbour(&addresses[1], 1, &addresses[count]) ? 1 : 0;
		for (size_t j = 0; j < count; j++)
			expect(&addresses[j], longest(&addresses[j]));
	}
}

static void intervals_ascend_and_neighbours_of_one_class_are_merged(void **state)
{
	(void)state;

	for (int family = 4; family <= 6; family += 2) {
		struct range_interval flat[RANGE_INTERVALS_MAX];
		size_t count = ranges_flatten(family, flat);

		assert_in_range(count, 10, RANGE_INTERVALS_MAX - 1);
		for (size_t i = 0; i < count; i++) {
			assert_int_equal(flat[i].first.family, family);
			assert_int_equal(flat[i].last.family, family);
			assert_true(memcmp(flat[i].first.bytes, flat[i].last.bytes, 16) <= 0);
			if (i == 0)
				continue;
			struct ip next;
			assert_true(neighbour(&flat[i - 1].last, 1, &next));
			assert_true(memcmp(next.bytes, flat[i].first.bytes, 16) <= 0);
			assert_false(ip_equal(&next, &flat[i].first) &&
				     flat[i - 1].class == flat[i].class);
		}
	}
}

/* The stretch [from, to] is covered without a gap. */
static void expect_covered(const char *from, const char *to)
{
	struct range_interval flat[RANGE_INTERVALS_MAX];
	struct ip next = ip_of(from), last = ip_of(to);
	size_t count = ranges_flatten(next.family, flat);
	bool more = true;

	for (size_t i = 0; i < count && more && memcmp(next.bytes, last.bytes, 16) <= 0; i++) {
		if (memcmp(flat[i].last.bytes, next.bytes, 16) < 0)
			continue;
		if (memcmp(flat[i].first.bytes, next.bytes, 16) > 0) {
			char text[IP_TEXT_MAX];
			fail_msg("%s is open", ip_format(&next, text));
		}
		more = neighbour(&flat[i].last, 1, &next);
	}
	assert_true(!more || memcmp(next.bytes, last.bytes, 16) > 0);
}

static void ipv6_is_closed_outside_global_unicast(void **state)
{
	(void)state;

	expect_covered("::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
	expect_covered("4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
}

static void ipv4_is_closed_from_multicast_on(void **state)
{
	(void)state;

	expect_covered("0.0.0.0", "0.255.255.255");
	expect_covered("224.0.0.0", "255.255.255.255");
}

/* Numbers, so that a slip in the table of one bit is noticed. */
static uint64_t closed_addresses(void)
{
	struct range_interval flat[RANGE_INTERVALS_MAX];
	size_t count = ranges_flatten(4, flat);
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t size = 1;

		for (size_t b = 0; b < 4; b++)
			size += (uint64_t)(flat[i].last.bytes[b] - flat[i].first.bytes[b])
				<< (8 * (3 - b));
		sum += size;
	}
	return sum;
}

static void as_many_ipv4_addresses_are_closed_as_the_registries_say(void **state)
{
	const uint64_t slash8 = 1 << 24, slash16 = 1 << 16, slash24 = 1 << 8;
	(void)state;

	assert_int_equal(closed_addresses(),
			 35 * slash8 /* 0, 10, 127, 224-255 */ + 64 * slash16 /* 100.64 */ +
			     4 * slash16 + slash16 /* 166.8, 161.26 */ + 1 /* 168.63.129.16 */ +
			     slash16 /* 169.254 */ + 16 * slash16 /* 172.16 */ +
			     slash16 /* 192.168 */ + 2 * slash16 /* 198.18 */ +
			     8 * slash24 /* 192.x, 198.51.100, 203.0.113 */);
}

struct profile_cache {
	const char *ip;
	enum net_class class;
};

static const struct profile_cache known_closed[] = {
	{ "0.0.0.0", NET_LOOPBACK },
	{ "0.0.0.1", NET_RESERVED },
	{ "127.0.0.1", NET_LOOPBACK },
	{ "127.255.255.255", NET_LOOPBACK },
	{ "10.96.0.1", NET_PRIVATE },
	{ "172.17.0.1", NET_PRIVATE },
	{ "172.31.255.255", NET_PRIVATE },
	{ "192.168.1.1", NET_PRIVATE },
	{ "100.64.0.1", NET_SHARED },
	{ "100.127.255.255", NET_SHARED },
	{ "100.100.100.200", NET_METADATA },
	{ "100.100.100.201", NET_SHARED },
	{ "100.96.0.96", NET_METADATA },
	{ "168.63.129.16", NET_METADATA },
	{ "169.254.169.254", NET_METADATA },
	{ "169.254.169.253", NET_METADATA },
	{ "169.254.169.252", NET_LINK_LOCAL },
	{ "169.254.170.2", NET_METADATA },
	{ "169.254.170.23", NET_METADATA },
	{ "169.254.0.23", NET_METADATA },
	{ "169.254.42.42", NET_METADATA },
	{ "169.254.20.10", NET_LINK_LOCAL },
	{ "192.0.0.192", NET_METADATA },
	{ "192.0.0.170", NET_RESERVED },
	{ "192.88.99.1", NET_RESERVED },
	{ "198.18.0.3", NET_RESERVED },
	{ "198.19.255.255", NET_RESERVED },
	{ "203.0.113.7", NET_DOCUMENTATION },
	{ "224.0.0.251", NET_MULTICAST },
	{ "240.0.0.1", NET_RESERVED },
	{ "255.255.255.254", NET_RESERVED },
	{ "255.255.255.255", NET_MULTICAST },
	{ "::", NET_LOOPBACK },
	{ "::1", NET_LOOPBACK },
	{ "::127.0.0.1", NET_TRANSLATED },
	{ "::ffff:169.254.169.254", NET_MAPPED },
	{ "::ffff:8.8.8.8", NET_MAPPED },
	{ "::ffff:0:10.0.0.1", NET_TRANSLATED },
	{ "64:ff9b::a9fe:a9fe", NET_TRANSLATED },
	{ "64:ff9b:1::1", NET_TRANSLATED },
	{ "64:ff9b:2::1", NET_RESERVED },
	{ "100::1", NET_RESERVED },
	{ "100:0:0:1::1", NET_RESERVED },
	{ "2001::1", NET_TRANSLATED },
	{ "2001:0:ffff:ffff:ffff:ffff:ffff:ffff", NET_TRANSLATED },
	{ "2001:1::1", NET_RESERVED },
	{ "2001:20::1", NET_RESERVED },
	{ "2001:db8::1", NET_DOCUMENTATION },
	{ "2002:7f00:1::", NET_TRANSLATED },
	{ "3fff:fff::1", NET_DOCUMENTATION },
	{ "5f00::1", NET_RESERVED },
	{ "fc00::1", NET_PRIVATE },
	{ "fdce:6a11::3", NET_PRIVATE },
	{ "fd00:ec2::254", NET_METADATA },
	{ "fd00:ec2::23", NET_METADATA },
	{ "fd00:c1::a9fe:a9fe", NET_METADATA },
	{ "fd00:42::42", NET_METADATA },
	{ "fd00:42::43", NET_PRIVATE },
	{ "fd00:a9fe:a9fe::1", NET_METADATA },
	{ "fd20:ce::254", NET_METADATA },
	{ "fe80::1", NET_LINK_LOCAL },
	{ "fe80::a9fe:a9fe", NET_METADATA },
	{ "fec0::1", NET_RESERVED },
	{ "ff02::fb", NET_MULTICAST },
	{ "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NET_MULTICAST },
};

static void well_known_closed_addresses_have_their_class(void **state)
{
	(void)state;

	for (size_t i = 0; i < COUNT(known_closed); i++) {
		struct ip ip = ip_of(known_closed[i].ip);
		expect(&ip, known_closed[i].class);
	}
}

static void public_addresses_and_close_neighbours_are_open(void **state)
{
	static const char *const rows[] = {
		"1.0.0.0",
		"1.1.1.1",
		"8.8.8.8",
		"9.9.9.9",
		"9.255.255.255",
		"11.0.0.0",
		"100.63.255.255",
		"100.128.0.0",
		"126.255.255.255",
		"128.0.0.0",
		"161.25.255.255",
		"161.27.0.0",
		"166.7.255.255",
		"166.12.0.0",
		"168.63.129.15",
		"168.63.129.17",
		"169.253.255.255",
		"169.255.0.0",
		"172.15.255.255",
		"172.32.0.1",
		"191.255.255.255",
		"192.0.1.0",
		"192.0.3.0",
		"192.167.255.255",
		"192.169.0.0",
		"198.17.255.255",
		"198.20.0.0",
		"203.0.112.255",
		"203.0.114.0",
		"223.255.255.255",
		"2000::",
		"2001:200::1",
		"2001:4860:4860::8888",
		"2001:db7:ffff::1",
		"2001:db9::1",
		"2003::1",
		"2606:4700:4700::1111",
		"2620:4f:8001::1",
		"2a00::1",
		"3ffe:ffff::1",
		"3fff:1000::1",
		"3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
	};
	(void)state;

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct ip ip = ip_of(rows[i]);
		expect(&ip, OPEN);
	}
}

static void every_class_has_a_name_of_its_own(void **state)
{
	(void)state;

	for (size_t i = 0; i < NET_CLASS_COUNT; i++) {
		assert_non_null(net_class_names[i]);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(net_class_names[i], net_class_names[j]);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_is_a_prefix_in_order_with_its_class_and_source),
		cmocka_unit_test(the_longest_prefix_decides_in_every_row),
		cmocka_unit_test(intervals_ascend_and_neighbours_of_one_class_are_merged),
		cmocka_unit_test(ipv6_is_closed_outside_global_unicast),
		cmocka_unit_test(ipv4_is_closed_from_multicast_on),
		cmocka_unit_test(as_many_ipv4_addresses_are_closed_as_the_registries_say),
		cmocka_unit_test(well_known_closed_addresses_have_their_class),
		cmocka_unit_test(public_addresses_and_close_neighbours_are_open),
		cmocka_unit_test(every_class_has_a_name_of_its_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
