/* SPDX-License-Identifier: Apache-2.0 */
/* denials: hostile packets become rows, and rows and counters always add up. */
#include "netns/firewall/denials.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <arpa/inet.h>
#include <assert.h>
#include <fcntl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "netns/rtnetlink/links.h"
#include "runtime/base/scope.h"
#include "tests/forked.h"
#include "tests/netns/script.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* --- messages by hand ------------------------------------------------------- */

struct message {
	uint8_t bytes[1024];
	size_t size;
};

static void put(struct message *m, uint16_t type, const void *bytes, size_t size)
{
	const struct nlattr head = { (uint16_t)(sizeof(head) + size), type };
	memcpy(m->bytes + m->size, &head, sizeof(head));
	memcpy(m->bytes + m->size + sizeof(head), bytes, size);
	m->size += NLA_ALIGN(head.nla_len);
}

static struct message make_marked(uint32_t number, const void *packet, size_t size)
{
	const uint32_t mark = htonl(number);
	const uint8_t kernels_own[8] = { 0x08, 0, 3 };
	struct message m = { 0 };
	put(&m, NFULA_PACKET_HDR, kernels_own, sizeof(kernels_own));
	put(&m, NFULA_MARK, &mark, sizeof(mark));
	put(&m, NFULA_PREFIX, "cejail", sizeof("cejail"));
	put(&m, NFULA_PAYLOAD, packet, size);
	return m;
}

static struct message make(enum net_class class, const void *packet, size_t size)
{
	return make_marked(class + 1, packet, size);
}

/* From a heap block of exactly that size, so that a sanitizer sees any read past it. */
static bool parse(const struct message *m, struct denial *out)
{
	auto_free uint8_t *exact = malloc(m->size ? m->size : 1);
	assert_non_null(exact);
	memcpy(exact, m->bytes, m->size);
	*out = (struct denial){ 0 };
	return denial_parse(exact, m->size, out);
}

/* 10.0.0.5, of `protocol`, with `header` bytes of header; the ports 1 -> 443 behind it. */
static size_t make_ipv4(uint8_t out[static 80], uint8_t protocol, size_t header, uint16_t fragment)
{
	const uint8_t ports[] = { 0, 1, 0x01, 0xbb };
	memset(out, 0, 80);
	out[0] = (uint8_t)(0x40 | header / 4);
	out[6] = (uint8_t)(fragment >> 8);
	out[7] = (uint8_t)fragment;
	out[9] = protocol;
	memcpy(out + 16, "\x0a\x00\x00\x05", 4);
	memcpy(out + header, ports, sizeof(ports));
	return header + 8;
}

static struct denial parse_ipv4(uint8_t protocol, size_t header, uint16_t fragment)
{
	uint8_t packet[80];
	size_t size = make_ipv4(packet, protocol, header, fragment);
	struct message m = make(NET_PRIVATE, packet, size);
	struct denial d;
	assert_true(parse(&m, &d));
	assert_int_equal(d.class, NET_PRIVATE);
	assert_int_equal(d.protocol, protocol);
	assert_int_equal(d.address.family, 4);
	assert_memory_equal(d.address.bytes, "\x0a\x00\x00\x05", 4);
	assert_int_equal(d.count, 1);
	return d;
}

static void a_refused_tcp_packet_has_class_address_and_port(void **state)
{
	(void)state;
	assert_int_equal(parse_ipv4(IPPROTO_TCP, 20, 0).port, 443);
	assert_int_equal(parse_ipv4(IPPROTO_UDP, 20, 0).port, 443);
	assert_int_equal(parse_ipv4(IPPROTO_SCTP, 20, 0).port, 443);
	assert_int_equal(parse_ipv4(IPPROTO_DCCP, 20, 0).port, 443);
	assert_int_equal(parse_ipv4(IPPROTO_UDPLITE, 20, 0).port, 443);
}

static void a_protocol_without_ports_has_port_0(void **state)
{
	(void)state;
	assert_int_equal(parse_ipv4(IPPROTO_ICMP, 20, 0).port, 0);
	assert_int_equal(parse_ipv4(IPPROTO_GRE, 20, 0).port, 0);
	assert_int_equal(parse_ipv4(253, 20, 0).port, 0);
}

static void the_port_is_found_after_ip_options(void **state)
{
	(void)state;
	assert_int_equal(parse_ipv4(IPPROTO_TCP, 60, 0).port, 443);
}

static void only_the_first_fragment_has_a_port(void **state)
{
	(void)state;
	assert_int_equal(parse_ipv4(IPPROTO_UDP, 20, 0x2000).port, 443);
	assert_int_equal(parse_ipv4(IPPROTO_UDP, 20, 0x2001).port, 0);
	assert_int_equal(parse_ipv4(IPPROTO_UDP, 20, 0x1fff).port, 0);
}

/* An IPv6 packet: `chain` of extension headers, ended by the transport's ports. */
static struct denial parse_ipv6(uint8_t first, const void *chain, size_t size)
{
	uint8_t packet[256] = { 0x60 };
	struct denial d;
	packet[6] = first;
	packet[24] = 0xfd;
	packet[39] = 0x07;
	memcpy(packet + 40, chain, size);
	memcpy(packet + 40 + size, "\x00\x01\x01\xbb", 4);
	struct message m = make(NET_LINK_LOCAL, packet, 40 + size + 4);
	assert_true(parse(&m, &d));
	assert_int_equal(d.class, NET_LINK_LOCAL);
	assert_int_equal(d.address.family, 6);
	assert_memory_equal(d.address.bytes, packet + 24, 16);
	return d;
}

static void the_port_is_found_after_extension_headers(void **state)
{
	(void)state;
	/* the first byte is the next header, the second a length */
	static const uint8_t chain[] = {
		[0] = IPPROTO_ROUTING, /* hop-by-hop options, 8 bytes */
		[8] = IPPROTO_DSTOPTS,
		1,                 /* a routing header of 16 */
		[24] = IPPROTO_AH, /* destination options, 8 */
		[32] = IPPROTO_FRAGMENT,
		4, /* an authentication header: (4 + 2) * 4 */
		[56] = IPPROTO_TCP,
		0,
		0,
		1, /* the first fragment, more follow */
		[63] = 0,
	};
	assert_int_equal(parse_ipv6(IPPROTO_UDP, "", 0).port, 443);
	struct denial d = parse_ipv6(IPPROTO_HOPOPTS, chain, sizeof(chain));
	assert_int_equal(d.protocol, IPPROTO_TCP);
	assert_int_equal(d.port, 443);
}

static void a_later_fragment_of_ipv6_has_no_port(void **state)
{
	(void)state;
	const uint8_t fragment[8] = { IPPROTO_UDP, 0, 0, 8 };
	struct denial d = parse_ipv6(IPPROTO_FRAGMENT, fragment, sizeof(fragment));
	assert_int_equal(d.protocol, IPPROTO_UDP);
	assert_int_equal(d.port, 0);
}

static void an_endless_header_chain_is_followed_for_eight_headers(void **state)
{
	(void)state;
	uint8_t chain[9 * 8] = { 0 };
	for (size_t i = 0; i < 8; i++)
		chain[8 * i] = i < 7 ? IPPROTO_DSTOPTS : IPPROTO_TCP;
	struct denial d = parse_ipv6(IPPROTO_DSTOPTS, chain, sizeof(chain) - 8);
	assert_int_equal(d.protocol, IPPROTO_TCP); /* eight are followed */
	assert_int_equal(d.port, 443);

	chain[8 * 7] = IPPROTO_DSTOPTS;
	chain[8 * 8] = IPPROTO_TCP;
	d = parse_ipv6(IPPROTO_DSTOPTS, chain, sizeof(chain));
	assert_int_equal(d.protocol, IPPROTO_DSTOPTS);
	assert_int_equal(d.port, 0);
	assert_string_equal(denial_protocol_name(d.protocol), "ip");
}

/* Every length a packet can be cut to: nothing past it is read, and what is left is right. */
static void a_truncated_packet_is_parsed_as_far_as_it_goes(void **state)
{
	(void)state;
	uint8_t packet[80];
	size_t size = make_ipv4(packet, IPPROTO_TCP, 60, 0);
	for (size_t cut = 0; cut <= size; cut++) {
		struct message m = make(NET_PRIVATE, packet, cut);
		struct denial d;
		assert_int_equal(parse(&m, &d), cut >= 20);
		assert_int_equal(d.port, cut >= 64 ? 443 : 0);
	}
}

static void a_truncated_message_is_refused(void **state)
{
	(void)state;
	uint8_t packet[80];
	size_t size = make_ipv4(packet, IPPROTO_TCP, 20, 0);
	const struct message whole = make(NET_PRIVATE, packet, size);
	for (size_t cut = 0; cut < whole.size; cut++) {
		struct message m = whole;
		struct denial d;
		m.size = cut;
		assert_false(parse(&m, &d));
	}
}

static void a_packet_that_is_not_ip_is_ignored(void **state)
{
	(void)state;
	struct denial d;
	for (unsigned version = 0; version < 16; version++) {
		uint8_t packet[60] = { (uint8_t)(version << 4 | 5) };
		struct message m = make(NET_PRIVATE, packet, sizeof(packet));
		assert_int_equal(parse(&m, &d), version == 4 || version == 6);
	}
	uint8_t short_header[60] = { 0x44 };
	struct message m = make(NET_PRIVATE, short_header, sizeof(short_header));
	assert_false(parse(&m, &d));
}

static void the_class_is_read_from_the_mark(void **state)
{
	(void)state;
	static const uint32_t foreign[] = { 0, NET_CLASS_COUNT + 1, 0x01000000, UINT32_MAX };
	uint8_t packet[80];
	size_t size = make_ipv4(packet, IPPROTO_TCP, 20, 0);
	struct denial d;

	for (enum net_class i = 0; i < NET_CLASS_COUNT; i++) {
		struct message m = make(i, packet, size);
		assert_true(parse(&m, &d));
		assert_int_equal(d.class, i);
	}
	for (size_t i = 0; i < COUNT(foreign); i++) {
		struct message m = make_marked(foreign[i], packet, size);
		assert_false(parse(&m, &d));
	}
}

static void a_message_without_a_class_mark_is_ignored(void **state)
{
	(void)state;
	uint8_t packet[80];
	struct message m = { 0 };
	struct denial d;
	put(&m, NFULA_PAYLOAD, packet, make_ipv4(packet, IPPROTO_TCP, 20, 0));
	assert_false(parse(&m, &d));
	put(&m, NFULA_MARK, "\0\0", 2);
	assert_false(parse(&m, &d));
}

static void protocols_have_names(void **state)
{
	(void)state;
	assert_string_equal(denial_protocol_name(IPPROTO_TCP), "tcp");
	assert_string_equal(denial_protocol_name(IPPROTO_UDP), "udp");
	assert_string_equal(denial_protocol_name(IPPROTO_ICMP), "icmp");
	assert_string_equal(denial_protocol_name(IPPROTO_ICMPV6), "icmpv6");
	assert_string_equal(denial_protocol_name(IPPROTO_SCTP), "sctp");
	assert_string_equal(denial_protocol_name(0), "ip");
	assert_string_equal(denial_protocol_name(255), "ip");
}

/* --- names ------------------------------------------------------------------ */

static void a_denied_name_has_no_address_and_no_protocol(void **state)
{
	(void)state;
	const struct denial d = denial_of_name("_x.a-1.example.com");
	assert_int_equal(d.class, NET_NAME);
	assert_string_equal(d.name, "_x.a-1.example.com");
	assert_int_equal(d.count, 1);
	assert_int_equal(d.address.family, 0);
	assert_true(d.port == 0 && d.protocol == 0 && !d.is_shared);
	assert_true(denial_is_valid(&d));
	assert_string_equal(denial_of_name("").name, "."); /* the root */
}

static void a_long_name_keeps_its_end(void **state)
{
	(void)state;
	char name[254] = "";
	for (size_t size = 1; size < sizeof(name); size++) {
		name[size - 1] = (char)('a' + size % 26);
		name[size] = '\0';
		const struct denial d = denial_of_name(name);
		const size_t kept = strlen(d.name);
		assert_true(denial_is_valid(&d));
		if (size < DENIAL_NAME_MAX) {
			assert_string_equal(d.name, name);
			continue;
		}
		assert_int_equal(kept, DENIAL_NAME_MAX - 1);
		assert_memory_equal(d.name, "...", 3);
		assert_string_equal(d.name + 3, name + size - (kept - 3));
	}
}

static struct denial to_port(enum net_class class, uint16_t port)
{
	return (struct denial){ .class = class,
				.protocol = IPPROTO_TCP,
				.address = { 4, { 10, 0, 0, 5 } },
				.port = port,
				.count = 1 };
}

static void only_a_denial_of_ours_is_valid(void **state)
{
	(void)state;
	static const struct {
		struct denial d;
		const char *what;
	} bad[] = {
		{ { .class = NET_CLASS_COUNT, .address.family = 4 }, "no class" },
		{ { .class = (enum net_class)UINT32_MAX, .address.family = 4 },
		  "a negative class" },
		{ { .class = NET_CLASS_COUNT, .name = "a.example" }, "a name of no class" },
		{ { .class = NET_PRIVATE }, "a packet without an address" },
		{ { .class = NET_PRIVATE, .address.family = 5 }, "a packet of no family" },
		{ { .class = NET_PRIVATE, .address.family = 4, .name = "a" },
		  "a packet with a name" },
		{ { .class = NET_NAME }, "no name" },
		{ { .class = NET_NAME, .name = "a", .address.family = 4 },
		  "a name with an address" },
		{ { .class = NET_NAME, .name = "a", .address.family = 7 }, "a name of a family" },
		{ { .class = NET_NAME, .name = "a", .port = 53 }, "a name with a port" },
		{ { .class = NET_NAME, .name = "a", .protocol = 17 }, "a name with a protocol" },
		{ { .class = NET_NAME, .name = "A.example" }, "an upper case letter" },
		{ { .class = NET_NAME, .name = "a\x1b[2J" }, "an escape sequence" },
		{ { .class = NET_NAME, .name = "a\nb" }, "a line feed" },
		{ { .class = NET_NAME, .name = "a b" }, "a blank" },
		{ { .class = NET_NAME, .name = "a\x7f" }, "a control character" },
		{ { .class = NET_NAME, .name = "b\xc3\xbc" }, "another byte than ASCII" },
		{ { .class = NET_NAME, .name = "*.example" }, "an asterisk" },
		{ { .class = NET_NAME, .name = "a/b" }, "a slash" },
	};
	struct denial d = to_port(NET_PRIVATE, 80);
	assert_true(denial_is_valid(&d));
	d.address.family = 6;
	assert_true(denial_is_valid(&d));
	d = denial_of_name("");
	assert_true(denial_is_valid(&d));
	for (size_t i = 0; i < COUNT(bad); i++)
		if (denial_is_valid(&bad[i].d))
			fail_msg("%s is valid", bad[i].what);

	memset(d.name, 'a', sizeof(d.name)); /* without an end */
	assert_false(denial_is_valid(&d));
}

/* --- the table -------------------------------------------------------------- */

static void equal_denials_share_a_row(void **state)
{
	(void)state;
	struct denials d = { 0 };
	struct denial one = to_port(NET_PRIVATE, 80);
	assert_int_equal(denials_add(&d, &one)->count, 1);
	assert_int_equal(denials_add(&d, &one)->count, 2);
	one.protocol = IPPROTO_UDP;
	assert_int_equal(denials_add(&d, &one)->count, 1);
	one.address.bytes[3]++;
	assert_int_equal(denials_add(&d, &one)->count, 1);
	one.port++;
	assert_int_equal(denials_add(&d, &one)->count, 1);
	one.class = NET_NOT_ALLOWED;
	assert_int_equal(denials_add(&d, &one)->count, 1);
	assert_int_equal(d.count, 5);
	assert_int_equal(d.items[0].count, 2);
}

static void equal_names_share_a_row(void **state)
{
	(void)state;
	struct denials d = { 0 };
	const struct denial one = denial_of_name("a.example"), other = denial_of_name("b.example");
	assert_int_equal(denials_add(&d, &one)->count, 1);
	assert_int_equal(denials_add(&d, &one)->count, 2);
	assert_int_equal(denials_add(&d, &other)->count, 1);
	assert_int_equal(d.count, 2);
	assert_string_equal(d.items[1].name, "b.example");
	assert_int_equal(d.counted[NET_NAME], 3);
}

static uint64_t add_up(const struct denials *d, enum net_class class)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < d->count; i++)
		sum += d->items[i].class == class ? d->items[i].count : 0;
	return sum;
}

static void refusals_that_are_in_no_row_become_a_row_without_an_address(void **state)
{
	(void)state;
	struct denials d = { 0 };
	uint64_t counts[NET_CLASS_COUNT] = { [NET_PRIVATE] = 1000, [NET_LIMIT] = 7 };
	const struct denial one = to_port(NET_PRIVATE, 80);
	for (unsigned i = 0; i < 4; i++)
		assert_non_null(denials_add(&d, &one));

	for (unsigned twice = 0; twice < 2; twice++) { /* the second call adds nothing */
		denials_settle(&d, counts);
		assert_int_equal(d.count, 3);
		assert_int_equal(d.items[1].count, 996);
		assert_int_equal(d.items[1].address.family, 0);
		assert_int_equal(d.items[1].protocol, 0);
		assert_int_equal(add_up(&d, NET_PRIVATE), 1000);
		assert_int_equal(add_up(&d, NET_LIMIT), 7);
	}
	counts[NET_LIMIT]++;
	denials_settle(&d, counts);
	assert_int_equal(d.count, 3);
	assert_int_equal(add_up(&d, NET_LIMIT), 8);
}

static void merged_rows_stay_apart_by_whether_they_are_shared_and_their_sums_are_exact(void **state)
{
	(void)state;
	static struct denials from, into;
	const uint64_t counts[NET_CLASS_COUNT] = { [NET_PRIVATE] = 1000 };
	for (uint16_t port = 1; port <= DENIALS_MAX; port++) {
		const struct denial one = to_port(NET_PRIVATE, port);
		assert_non_null(denials_add(&from, &one));
	}
	denials_settle(&from, counts);
	denials_merge(&into, &from, false);
	assert_int_equal(into.count, DENIALS_MAX + 1);
	assert_int_equal(add_up(&into, NET_PRIVATE), 1000);
	for (unsigned times = 0; times < 3; times++) /* the table is full: one more row */
		denials_merge(&into, &from, true);
	assert_int_equal(into.count, DENIALS_MAX + 2);
	assert_true(into.items[DENIALS_MAX + 1].is_shared);
	assert_int_equal(into.items[DENIALS_MAX + 1].count, 3000);
	assert_int_equal(add_up(&into, NET_PRIVATE), 4000);
	assert_int_equal(into.counted[NET_PRIVATE], 4000);
}

static void merged_names_keep_their_rows_and_the_rest_is_one_row(void **state)
{
	(void)state;
	static struct denials from, into;
	const struct denial a = denial_of_name("a.example"), b = denial_of_name("b.example");
	const uint64_t counts[NET_CLASS_COUNT] = { [NET_NAME] = 10 };
	(void)denials_add(&from, &a);
	(void)denials_add(&from, &a);
	(void)denials_add(&from, &b);
	denials_settle(&from, counts);
	assert_int_equal(from.count, 3);
	assert_int_equal(from.items[2].count, 7);
	assert_string_equal(from.items[2].name, "");

	denials_merge(&into, &from, false);
	denials_merge(&into, &from, false);
	assert_int_equal(into.count, 3);
	assert_string_equal(into.items[0].name, "a.example");
	assert_int_equal(into.items[0].count, 4);
	assert_int_equal(into.items[1].count, 2);
	assert_int_equal(into.items[2].count, 14);
	denials_merge(&into, &from, true);
	assert_int_equal(into.count, 6);
	assert_string_equal(into.items[4].name, "b.example");
	assert_true(into.items[4].is_shared && !into.items[1].is_shared);
	assert_int_equal(add_up(&into, NET_NAME), 30);
	assert_int_equal(into.counted[NET_NAME], 30);
}

static void counters_below_the_received_denials_change_nothing(void **state)
{
	(void)state;
	struct denials d = { 0 };
	const uint64_t counts[NET_CLASS_COUNT] = { 0 };
	const struct denial one = to_port(NET_PRIVATE, 80);
	(void)denials_add(&d, &one);
	denials_settle(&d, counts);
	assert_int_equal(d.count, 1);
	assert_int_equal(add_up(&d, NET_PRIVATE), 1);
}

static void the_sums_of_a_full_table_are_exact(void **state)
{
	(void)state;
	struct denials d = { 0 };
	uint64_t counts[NET_CLASS_COUNT];
	for (uint16_t port = 1; port <= 1000; port++) {
		const struct denial one = to_port(NET_PRIVATE, port);
		assert_int_equal(denials_add(&d, &one) != NULL, port <= DENIALS_MAX);
	}
	const struct denial known = to_port(NET_PRIVATE, 1);
	assert_int_equal(denials_add(&d, &known)->count, 2);

	for (enum net_class i = 0; i < NET_CLASS_COUNT; i++)
		counts[i] = 1001;
	denials_settle(&d, counts);
	assert_int_equal(d.count, DENIALS_MAX + NET_CLASS_COUNT);
	for (enum net_class i = 0; i < NET_CLASS_COUNT; i++)
		assert_int_equal(add_up(&d, i), 1001);
}

/* --- the socket ------------------------------------------------------------- */

/* WRAP: recvmsg */
static struct fake {
	bool is_on;
	unsigned waiting; /* messages still to come */
	unsigned sender;  /* of each */
	struct message message;
} fake;

ssize_t __real_recvmsg(int fd, struct msghdr *header, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *header, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *header, int flags)
{
	if (!fake.is_on)
		return __real_recvmsg(fd, header, flags);
	if (fake.waiting == 0) {
		errno = EAGAIN;
		return -1;
	}
	fake.waiting--;
	*(struct sockaddr_nl *)header->msg_name =
	    (struct sockaddr_nl){ AF_NETLINK, 0, fake.sender, 0 };
	header->msg_namelen = sizeof(struct sockaddr_nl);
	header->msg_flags = 0;
	memcpy(header->msg_iov->iov_base, fake.message.bytes, fake.message.size);
	return (ssize_t)fake.message.size;
}

/* A whole netlink message of the log's. */
static struct message make_netlink(void)
{
	uint8_t packet[80];
	size_t size = make_ipv4(packet, IPPROTO_TCP, 20, 0);
	const struct message inner = make(NET_PRIVATE, packet, size);
	const struct nfgenmsg head = { AF_INET, NFNETLINK_V0, htons(1) };
	const struct nlmsghdr outer = {
		.nlmsg_len = (uint32_t)(sizeof(outer) + sizeof(head) + inner.size),
		.nlmsg_type = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET,
	};
	struct message m = { .size = outer.nlmsg_len };
	memcpy(m.bytes, &outer, sizeof(outer));
	memcpy(m.bytes + sizeof(outer), &head, sizeof(head));
	memcpy(m.bytes + sizeof(outer) + sizeof(head), inner.bytes, inner.size);
	return m;
}

static void remember(void *context, const struct denial *d)
{
	*(uint64_t *)context = d->count;
}

static int fake_on(void **state)
{
	(void)state;
	fake = (struct fake){ .is_on = true, .message = make_netlink() };
	return 0;
}

static int fake_off(void **state)
{
	(void)state;
	fake.is_on = false;
	return 0;
}

static void each_receive_is_bounded_and_the_next_continues(void **state)
{
	(void)state;
	struct denials d = { 0 };
	struct cj_error err = { 0 };
	uint64_t last = 0;
	fake.waiting = DENIALS_AT_ONCE + 3;
	assert_int_equal(denials_receive(-1, &d, remember, &last, &err), DENIALS_AT_ONCE);
	assert_int_equal(last, DENIALS_AT_ONCE);
	assert_int_equal(denials_receive(-1, &d, remember, &last, &err), 3);
	assert_int_equal(denials_receive(-1, &d, remember, &last, &err), 0);
	assert_int_equal(d.count, 1);
	assert_int_equal(d.items[0].count, DENIALS_AT_ONCE + 3);
	assert_int_equal(last, DENIALS_AT_ONCE + 3);
}

static void a_message_that_is_not_the_kernels_is_dropped(void **state)
{
	(void)state;
	struct denials d = { 0 };
	struct cj_error err = { 0 };
	fake.waiting = 1000;
	fake.sender = 4711;
	assert_int_equal(denials_receive(-1, &d, NULL, NULL, &err), 0);
	assert_int_equal(d.count, 0);
	assert_true(fake.waiting < 1000 && fake.waiting > 0); /* bounded, too */
}

static void a_truncated_netlink_message_is_no_denial(void **state)
{
	(void)state;
	struct denials d = { 0 };
	struct cj_error err = { 0 };
	const struct message whole = fake.message;
	for (size_t cut = 1; cut < whole.size; cut++) {
		fake.message.size = cut;
		fake.waiting = 1;
		assert_int_equal(denials_receive(-1, &d, NULL, NULL, &err), 1);
	}
	for (uint16_t type = 0; type < 20; type++) { /* answers and other subsystems */
		memcpy(fake.message.bytes + 4, &type, sizeof(type));
		fake.message.size = whole.size;
		fake.waiting = 1;
		assert_int_equal(denials_receive(-1, &d, NULL, NULL, &err), 1);
	}
	assert_int_equal(d.count, 0);
}

/* --- the kernel ------------------------------------------------------------- */

/* The child of a test: its own namespaces, its own words when something is wrong. */
struct child {
	int log_fd;
	int words_fd;
	struct denials denials;
};

#define CHILD_SKIPS 77

#define expect(child, condition)                                                                   \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			dprintf((child)->words_fd, "line %d: not %s", __LINE__, #condition);       \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static void leave(const struct child *c, int code, const char *words)
{
	(void)!write(c->words_fd, words, strlen(words));
	_exit(code);
}

/* Runs `nft` with a script; the counter it lists, if any, goes to *out_packets. */
static void run_nft(const struct child *c, const char *script, uint64_t *out_packets)
{
	int out[2], status = -1;
	char text[4096] = "";
	auto_fd int script_fd = script_open(script);
	expect(c, script_fd >= 0 && pipe(out) == 0);
	pid_t pid = test_fork();
	expect(c, pid >= 0);
	if (pid == 0) {
		(void)dup2(script_fd, 0);
		(void)dup2(out[1], 1);
		(void)execlp("nft", "nft", "-f", "-", (char *)NULL);
		(void)execl("/usr/sbin/nft", "nft", "-f", "-", (char *)NULL);
		_exit(CHILD_SKIPS);
	}
	(void)close(out[1]);
	size_t size = 0;
	for (ssize_t got; (got = read(out[0], text + size, sizeof(text) - 1 - size)) > 0;)
		size += (size_t)got;
	(void)close(out[0]);
	expect(c, waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	if (WEXITSTATUS(status) == CHILD_SKIPS)
		leave(c, CHILD_SKIPS, "nft is not installed");
	if (WEXITSTATUS(status) != 0)
		leave(c, CHILD_SKIPS, "nft can't load rules here");
	if (out_packets) {
		unsigned long long packets = 0;
		const char *at = strstr(text, "packets ");
		expect(c, at && sscanf(at, "packets %llu", &packets) == 1);
		*out_packets = packets;
	}
}

/* The marks are NET_PRIVATE + 1 and NET_LOOPBACK + 1. */
static const char rules[] =
    "table inet t {\n"
    "	counter seen { }\n"
    "	chain o {\n"
    "		type filter hook output priority 0; policy accept;\n"
    "		icmp type destination-unreachable accept\n"
    "		ip daddr 127.9.9.9 counter name seen mark set 2 log prefix \"cejail\" group 1\n"
    "		ip daddr 127.9.9.9 meta l4proto tcp reject with tcp reset\n"
    "		ip daddr 127.9.9.9 reject with icmpx admin-prohibited\n"
    "		ip6 daddr ::1 udp dport 4243 mark set 1 log prefix \"cejail\" group 1 drop\n"
    "	}\n"
    "}\n";
static_assert(NET_PRIVATE + 1 == 2 && NET_LOOPBACK + 1 == 1, "the marks in the rules");

static bool put_file(const char *path, const char *text)
{
	auto_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* nft keeps its capabilities over execve(2) only as root of the namespace. */
static void enter_namespace(struct child *c)
{
	struct cj_error err = { 0 };
	char map[32];
	(void)snprintf(map, sizeof(map), "0 %u 1", geteuid());
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		leave(c, CHILD_SKIPS, "no user or network namespaces here");
	expect(c, put_file("/proc/self/uid_map", map));
	expect(c, links_raise_loopback(&err) == 0);
	run_nft(c, rules, NULL);
	c->log_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	expect(c, c->log_fd >= 0);
	if (denials_listen(c->log_fd, &err) < 0)
		leave(c, 1, err.msg);
}

static void hear_all(struct child *c)
{
	struct cj_error err = { 0 };
	int heard;
	while ((heard = denials_receive(c->log_fd, &c->denials, NULL, NULL, &err)) > 0)
		;
	expect(c, heard == 0);
}

static void send_to(const struct child *c, int type, const char *address, uint16_t port)
{
	struct sockaddr_in to4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 to6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	bool is_ipv4 = inet_pton(AF_INET, address, &to4.sin_addr) == 1;
	expect(c, is_ipv4 || inet_pton(AF_INET6, address, &to6.sin6_addr) == 1);

	const struct sockaddr *to = is_ipv4 ? (void *)&to4 : (void *)&to6;
	auto_fd int fd = socket(is_ipv4 ? AF_INET : AF_INET6, type | SOCK_CLOEXEC, 0);
	expect(c, fd >= 0);
	expect(c, connect(fd, to, is_ipv4 ? sizeof(to4) : sizeof(to6)) == 0 ||
		      type == SOCK_STREAM); /* refused, and that is told */
	if (type == SOCK_DGRAM)
		(void)!send(fd, "x", 1, 0); /* dropped, which is an EPERM or nothing */
}

static bool has_row(const struct child *c, enum net_class class, uint8_t protocol,
		    const char *address, uint16_t port)
{
	struct ip ip;
	if (!ip_parse(address, &ip))
		return false;
	for (size_t i = 0; i < c->denials.count; i++) {
		const struct denial *d = &c->denials.items[i];
		if (d->class == class && d->protocol == protocol && d->port == port &&
		    ip_equal(&d->address, &ip) && d->count > 0)
			return true;
	}
	return false;
}

static void hear_three_packets(struct child *c)
{
	enter_namespace(c);
	send_to(c, SOCK_DGRAM, "127.9.9.9", 4242);
	send_to(c, SOCK_STREAM, "127.9.9.9", 80);
	send_to(c, SOCK_DGRAM, "::1", 4243);
	send_to(c, SOCK_DGRAM, "127.0.0.1", 4242); /* not refused */
	hear_all(c);
	expect(c, has_row(c, NET_PRIVATE, IPPROTO_UDP, "127.9.9.9", 4242));
	expect(c, has_row(c, NET_PRIVATE, IPPROTO_TCP, "127.9.9.9", 80));
	expect(c, has_row(c, NET_LOOPBACK, IPPROTO_UDP, "::1", 4243));
	expect(c, c->denials.count == 3);
}

/* Twice what the queue holds, and nobody listens meanwhile. */
static void lose_and_settle(struct child *c)
{
	uint64_t counts[NET_CLASS_COUNT] = { 0 };
	enter_namespace(c);
	for (unsigned i = 0; i < 1000; i++)
		send_to(c, SOCK_DGRAM, "127.9.9.9", (uint16_t)(1000 + i % 10));
	hear_all(c);
	run_nft(c, "list counters\n", &counts[NET_PRIVATE]);
	expect(c, counts[NET_PRIVATE] == 1000);
	expect(c, c->denials.counted[NET_PRIVATE] > 0);
	expect(c, c->denials.counted[NET_PRIVATE] < 1000);
	denials_settle(&c->denials, counts);
	expect(c, c->denials.count == 11);
	expect(c, c->denials.items[10].address.family == 0);
	expect(c, add_up(&c->denials, NET_PRIVATE) == 1000);

	/* a loss does not silence the kernel */
	send_to(c, SOCK_DGRAM, "127.9.9.9", 1);
	hear_all(c);
	expect(c, has_row(c, NET_PRIVATE, IPPROTO_UDP, "127.9.9.9", 1));
}

static void bind_twice(struct child *c)
{
	struct cj_error err = { 0 };
	enter_namespace(c);
	auto_fd int second_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	expect(c, denials_listen(second_fd, &err) == -EPERM);
	expect(c, strstr(err.msg, "log of denied packets") != NULL);
}

static void in_a_namespace(void (*test)(struct child *c))
{
	int words[2], status = -1;
	char text[512] = "";
	assert_int_equal(pipe(words), 0);
	pid_t pid = test_fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct child c = { .log_fd = -1, .words_fd = words[1] };
		test(&c);
		_exit(0);
	}
	(void)close(words[1]);
	(void)!read(words[0], text, sizeof(text) - 1);
	(void)close(words[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_SKIPS) {
		print_message("%s\n", text);
		skip();
	}
	if (status != 0)
		fail_msg("%s (wait status %#x)", text, (unsigned)status);
}

static void refused_packets_of_both_families_are_received(void **state)
{
	(void)state;
	in_a_namespace(hear_three_packets);
}

static void a_thousand_refusals_add_up_to_what_the_kernel_counted(void **state)
{
	(void)state;
	in_a_namespace(lose_and_settle);
}

static void a_group_that_is_taken_is_an_error(void **state)
{
	(void)state;
	in_a_namespace(bind_twice);
}

#define WITH_FAKE(test) cmocka_unit_test_setup_teardown(test, fake_on, fake_off)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_refused_tcp_packet_has_class_address_and_port),
		cmocka_unit_test(a_protocol_without_ports_has_port_0),
		cmocka_unit_test(the_port_is_found_after_ip_options),
		cmocka_unit_test(only_the_first_fragment_has_a_port),
		cmocka_unit_test(the_port_is_found_after_extension_headers),
		cmocka_unit_test(a_later_fragment_of_ipv6_has_no_port),
		cmocka_unit_test(an_endless_header_chain_is_followed_for_eight_headers),
		cmocka_unit_test(a_truncated_packet_is_parsed_as_far_as_it_goes),
		cmocka_unit_test(a_truncated_message_is_refused),
		cmocka_unit_test(a_packet_that_is_not_ip_is_ignored),
		cmocka_unit_test(the_class_is_read_from_the_mark),
		cmocka_unit_test(a_message_without_a_class_mark_is_ignored),
		cmocka_unit_test(protocols_have_names),
		cmocka_unit_test(a_denied_name_has_no_address_and_no_protocol),
		cmocka_unit_test(a_long_name_keeps_its_end),
		cmocka_unit_test(only_a_denial_of_ours_is_valid),
		cmocka_unit_test(equal_denials_share_a_row),
		cmocka_unit_test(equal_names_share_a_row),
		cmocka_unit_test(refusals_that_are_in_no_row_become_a_row_without_an_address),
		cmocka_unit_test(
		    merged_rows_stay_apart_by_whether_they_are_shared_and_their_sums_are_exact),
		cmocka_unit_test(merged_names_keep_their_rows_and_the_rest_is_one_row),
		cmocka_unit_test(counters_below_the_received_denials_change_nothing),
		cmocka_unit_test(the_sums_of_a_full_table_are_exact),
		WITH_FAKE(each_receive_is_bounded_and_the_next_continues),
		WITH_FAKE(a_message_that_is_not_the_kernels_is_dropped),
		WITH_FAKE(a_truncated_netlink_message_is_no_denial),
		cmocka_unit_test(refused_packets_of_both_families_are_received),
		cmocka_unit_test(a_thousand_refusals_add_up_to_what_the_kernel_counted),
		cmocka_unit_test(a_group_that_is_taken_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
