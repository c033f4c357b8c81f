/* SPDX-License-Identifier: Apache-2.0 */
/* Netfilter's frame: headers as the kernel wants them, lengths and errors that are no lies. */
#include "netns/nftables/nfnl.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>

static void a_message_begins_with_both_headers(void **state)
{
	(void)state;
	const struct nfnl_head head = { .subsystem = NFNL_SUBSYS_ULOG,
					.message = 1,
					.flags = NLM_F_ACK,
					.seq = 7,
					.family = NFPROTO_INET,
					.resource = 0x1234 };

	auto_nl_msg *made = nfnl_create(&head);
	assert_non_null(made);
	const struct nlmsghdr *message = nlmsg_hdr(made);
	const struct nfgenmsg *about = nlmsg_data(message);
	assert_int_equal(message->nlmsg_type, NFNL_SUBSYS_ULOG << 8 | 1);
	assert_int_equal(message->nlmsg_flags, NLM_F_REQUEST | NLM_F_ACK);
	assert_int_equal(message->nlmsg_seq, 7);
	assert_int_equal(message->nlmsg_len, sizeof(*message) + sizeof(*about));
	assert_int_equal(about->nfgen_family, NFPROTO_INET);
	assert_int_equal(about->version, NFNETLINK_V0);
	assert_int_equal(ntohs(about->res_id), 0x1234);
}

static void a_message_with_a_length_that_does_not_fit_is_ignored(void **state)
{
	(void)state;
	static const uint32_t lies[] = { 0, 15, 65, 0x7fffffff, 0x80000000, 0xffffffff };
	_Alignas(4) char buffer[64] = { 0 };
	struct nlmsghdr *message = (struct nlmsghdr *)buffer;

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		message->nlmsg_len = lies[i];
		assert_false(nfnl_is_message(message, sizeof(buffer)));
	}
	message->nlmsg_len = 16;
	assert_true(nfnl_is_message(message, sizeof(buffer)));
	assert_false(nfnl_is_message(message, 15));
	assert_false(nfnl_is_message(message, -4));
	message->nlmsg_len = 17; /* its padding is cut off */
	assert_true(nfnl_is_message(message, 20));
	assert_false(nfnl_is_message(message, 19));
}

static void an_error_is_a_valid_errno_or_ebadmsg(void **state)
{
	(void)state;
	static const struct {
		int told, code;
	} rows[] = {
		{ 0, 0 },       { -EPERM, EPERM },  { -4095, 4095 },
		{ 1, EBADMSG }, { -4096, EBADMSG }, { INT32_MIN, EBADMSG },
	};
	struct {
		struct nlmsghdr header;
		struct nlmsgerr told;
	} answer = { .header = { .nlmsg_len = sizeof(answer), .nlmsg_type = NLMSG_ERROR } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		answer.told.error = rows[i].told;
		assert_int_equal(nfnl_error(&answer.header), rows[i].code);
	}
	answer.told.error = 0;
	answer.header.nlmsg_len = sizeof(answer.header) + 4;
	assert_int_equal(nfnl_error(&answer.header), EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_begins_with_both_headers),
		cmocka_unit_test(a_message_with_a_length_that_does_not_fit_is_ignored),
		cmocka_unit_test(an_error_is_a_valid_errno_or_ebadmsg),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
