/* SPDX-License-Identifier: Apache-2.0 */
/* hostaddrs: what is listed, heard, and found again after messages were lost. */
#include "netns/rtnetlink/hostaddrs.h"

#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <poll.h>

#include "netns/rtnetlink/rtmsg.h"
#include "tests/netns/namespaces.h"
#include "tests/netns/texts.h"
#include "tests/patience.h"

static const struct rtmsg_link lo = { .name = "lo", .index = 1 };

static struct place place_with_lo(void)
{
	struct cj_error err = { 0 };
	struct place p = place_here();
	struct rtbatch b = { 0 };
	rtmsg_up(&b, &lo, 0);
	MUST_DO(rtbatch_send(p.route_fd, &b, NULL, &err), err);
	return p;
}

static void add(const struct place *p, const char *text, uint8_t bits)
{
	struct cj_error err = { 0 };
	struct rtbatch b = { 0 };
	struct ip ip = ip_of(text);
	rtmsg_address(&b, &lo, &ip, bits);
	MUST_DO(rtbatch_send(p->route_fd, &b, NULL, &err), err);
}

static bool has(const struct ip *items, size_t count, const char *text)
{
	struct ip ip = ip_of(text);
	for (size_t i = 0; i < count; i++) {
		if (ip_equal(&items[i], &ip))
			return true;
	}
	return false;
}

static bool knows(const struct hostaddrs *h, const char *text)
{
	size_t count = 0;
	const struct ip *items = hostaddrs_list(h, &count);
	return has(items, count, text);
}

static void body_list(void)
{
	struct cj_error err = { 0 };
	struct hostaddrs *h = NULL;
	struct place p = place_with_lo();
	add(&p, "192.0.2.5", 32);
	add(&p, "10.1.2.3", 24);
	add(&p, "2001:db8::5", 64);
	add(&p, "fe80::1234", 64);

	MUST_DO(hostaddrs_open(&h, &err), err);
	MUST(knows(h, "192.0.2.5"));
	MUST(knows(h, "10.1.2.3") && knows(h, "10.1.2.0") && knows(h, "10.1.2.255"));
	MUST(knows(h, "2001:db8::5") && knows(h, "2001:db8::"));
	MUST(!knows(h, "127.0.0.1") && !knows(h, "::1") && !knows(h, "fe80::1234"));
	size_t count = 0;
	(void)hostaddrs_list(h, &count);
	MUST(count == 6);
	hostaddrs_close(&h);
	MUST(!h);
}

static void every_address_is_listed_with_the_ends_of_its_network(void **state)
{
	(void)state;
	in_own_namespace(body_list);
}

static void body_hear(void)
{
	struct cj_error err = { 0 };
	struct hostaddrs *h = NULL;
	struct place p = place_with_lo();
	size_t first = 99, count = 0;
	add(&p, "192.0.2.5", 32);
	MUST_DO(hostaddrs_open(&h, &err), err);
	struct pollfd wait = { .fd = hostaddrs_fd(h), .events = POLLIN };
	MUST(poll(&wait, 1, 0) == 0);
	MUST_DO(hostaddrs_receive(h, &first, &err), err);
	MUST(first == 1);

	add(&p, "192.0.2.6", 32);
	add(&p, "2001:db8::6", 128);
	MUST(poll(&wait, 1, patience_ms(60000)) == 1);
	MUST_DO(hostaddrs_receive(h, &first, &err), err);
	const struct ip *items = hostaddrs_list(h, &count);
	MUST(first == 1);
	MUST(has(items + first, count - first, "192.0.2.6"));
	MUST(knows(h, "192.0.2.5"));
	/* the IPv6 notice comes from a work queue */
	for (int i = 0; i < patience_ms(600) && !knows(h, "2001:db8::6"); i++) {
		(void)poll(&wait, 1, 100);
		MUST_DO(hostaddrs_receive(h, &first, &err), err);
	}
	MUST(knows(h, "2001:db8::6"));
	hostaddrs_close(&h);
}

static void a_later_address_is_received_at_the_end_of_the_list(void **state)
{
	(void)state;
	in_own_namespace(body_hear);
}

static void remove_address(const struct place *p, const struct ip *ip)
{
	struct {
		struct nlmsghdr header;
		struct ifaddrmsg about;
		struct rtattr attr;
		uint8_t bytes[4];
	} request = {
		.header = { .nlmsg_len = sizeof(request),
			    .nlmsg_type = RTM_DELADDR,
			    .nlmsg_flags = NLM_F_REQUEST },
		.about = { .ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_index = 1 },
		.attr = { .rta_len = 8, .rta_type = IFA_LOCAL },
	};
	memcpy(request.bytes, ip->bytes, 4);
	MUST(send(p->route_fd, &request, sizeof(request), 0) == sizeof(request));
}

static void body_lost(void)
{
	struct cj_error err = { 0 };
	struct hostaddrs *h = NULL;
	struct place p = place_here();
	size_t first = 99;
	int small = 1; /* the kernel makes its minimum of it */
	MUST_DO(hostaddrs_open(&h, &err), err);
	MUST(setsockopt(hostaddrs_fd(h), SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)) == 0);

	struct ip noise = ip_of("192.0.2.200");
	for (int i = 0; i < 200; i++) {
		add(&p, "192.0.2.200", 32);
		remove_address(&p, &noise);
	}
	add(&p, "192.0.2.77", 32); /* its message has no room any more */
	MUST_DO(hostaddrs_receive(h, &first, &err), err);
	MUST(first == 0 && knows(h, "192.0.2.77"));
	MUST(knows(h, "192.0.2.200")); /* gone again, and closed all the same */

	/* the subscription lives on */
	add(&p, "192.0.2.78", 32);
	MUST_DO(hostaddrs_receive(h, &first, &err), err);
	MUST(first == 2 && knows(h, "192.0.2.78"));
	hostaddrs_close(&h);
}

static void after_lost_messages_the_addresses_are_listed_again(void **state)
{
	(void)state;
	in_own_namespace(body_lost);
}

static void body_full(void)
{
	struct cj_error err = { 0 };
	struct hostaddrs *h = NULL;
	struct place p = place_here();
	char text[IP_TEXT_MAX];
	for (int i = 1; i <= HOSTADDRS_MAX; i++) {
		snprintf(text, sizeof(text), "10.0.%d.%d", i / 200, i % 200);
		add(&p, text, 32);
	}
	MUST_DO(hostaddrs_open(&h, &err), err);
	add(&p, "192.0.2.1", 32);
	size_t first = 99;
	MUST(hostaddrs_receive(h, &first, &err) == -E2BIG && first == 99);
	hostaddrs_close(&h);
	MUST(hostaddrs_open(&h, &err) == -E2BIG && !h);
	MUST(strcmp(err.msg, "this host has more than 256 addresses to close") == 0);
	MUST(err.hint[0] != '\0');
}

static void more_addresses_than_there_is_room_for_are_an_error(void **state)
{
	(void)state;
	in_own_namespace(body_full);
}

static void no_list_of_rtnetlink_messages_is_a_gap(void **state)
{
	static struct hostaddrs_set set;
	_Alignas(4) char bytes[64] = { 0 };
	(void)state;

	assert_int_equal(hostaddrs_read(&set, bytes, 0), HOSTADDRS_MORE);
	assert_int_equal(hostaddrs_read(&set, bytes, sizeof(bytes)), HOSTADDRS_GAP);
	struct nlmsghdr *header = (void *)bytes;
	*header = (struct nlmsghdr){ .nlmsg_len = sizeof(bytes) + 4, .nlmsg_type = RTM_NEWADDR };
	assert_int_equal(hostaddrs_read(&set, bytes, sizeof(bytes)), HOSTADDRS_GAP);
	*header = (struct nlmsghdr){ .nlmsg_len = 20,
				     .nlmsg_type = NLMSG_DONE,
				     .nlmsg_flags = NLM_F_DUMP_INTR };
	assert_int_equal(hostaddrs_read(&set, bytes, 20), HOSTADDRS_GAP);
	header->nlmsg_flags = 0;
	assert_int_equal(hostaddrs_read(&set, bytes, 20), HOSTADDRS_END);
	assert_int_equal(set.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_address_is_listed_with_the_ends_of_its_network),
		cmocka_unit_test(a_later_address_is_received_at_the_end_of_the_list),
		cmocka_unit_test(after_lost_messages_the_addresses_are_listed_again),
		cmocka_unit_test(more_addresses_than_there_is_room_for_are_an_error),
		cmocka_unit_test(no_list_of_rtnetlink_messages_is_a_gap),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
