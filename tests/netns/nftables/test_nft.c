/* SPDX-License-Identifier: Apache-2.0 */
/* nft: a batch is whole netlink messages, and says what each of them is about. */
#include "netns/nftables/nft.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <linux/netfilter/nfnetlink.h>

#include "netns/firewall/firewall.h"
#include "netns/nftables/nfnl.h"

#define NFT(type) ((NFNL_SUBSYS_NFTABLES << 8) | (type))

/* The message at `index`, the opening of the transaction being 0; NULL: there are not so many. */
static const struct nlmsghdr *message_at(const struct nft_batch *b, size_t index)
{
	int left = (int)b->size;
	const struct nlmsghdr *m = (const struct nlmsghdr *)b->bytes;

	for (; nfnl_is_message(m, left); m = nfnl_next(m, &left)) {
		if (index-- == 0)
			return m;
	}
	assert_int_equal(left, 0); /* nothing stands behind the last message */
	return NULL;
}

static void expect_tail(const struct nlmsghdr *m, const uint8_t *bytes, size_t size)
{
	assert_true(m && m->nlmsg_len >= size);
	assert_memory_equal((const uint8_t *)m + m->nlmsg_len - size, bytes, size);
}

static void a_transaction_is_opened_closed_and_acknowledged_once(void **state)
{
	auto_nft_batch struct nft_batch batch = { 0 };
	struct nft_batch *b = &batch;
	(void)state;

	nft_batch_begin(b, "t");
	nft_add_table(b, 0);
	nft_add_chain(b, "c");
	nft_batch_end(b);
	assert_int_equal(b->error, 0);

	static const uint16_t types[] = { NFNL_MSG_BATCH_BEGIN, NFT(NFT_MSG_NEWTABLE),
					  NFT(NFT_MSG_NEWCHAIN), NFNL_MSG_BATCH_END };
	for (size_t i = 0; i < 4; i++) {
		const struct nlmsghdr *m = message_at(b, i);
		assert_non_null(m);
		assert_int_equal(m->nlmsg_type, types[i]);
		assert_int_equal(m->nlmsg_seq, b->first_seq + i);
		assert_int_equal((m->nlmsg_flags & NLM_F_ACK) != 0, i == 2);
	}
	assert_null(message_at(b, 4));
}

static void a_batch_can_be_used_again(void **state)
{
	auto_nft_batch struct nft_batch batch = { 0 };
	struct nft_batch *b = &batch;
	(void)state;

	nft_batch_begin(b, "t");
	nft_add_table(b, 0);
	nft_batch_end(b);
	assert_int_equal(b->error, 0);
	const size_t size = b->size;
	const uint32_t last_seq = b->last_seq;

	nft_batch_begin(b, "t");
	nft_add_table(b, 0);
	nft_batch_end(b);
	assert_int_equal(b->error, 0);
	assert_int_equal(b->size, size);
	assert_int_equal(b->first_seq, last_seq + 1); /* old answers are not taken for new ones */
}

/* struct nlattr of 4 + 4 bytes with a number; of a nest, whose bytes follow. */
#define NUMBER(type, value) 8, 0, type, 0, 0, 0, 0, value
#define NEST(type, size)    size, 0, type, 0x80

static void a_match_on_meta_is_a_load_and_a_compare(void **state)
{
	/* clang-format off */
	static const uint8_t expected[] = {
		NEST(NFTA_RULE_EXPRESSIONS, 84),
		NEST(NFTA_LIST_ELEM, 36),
			9, 0, NFTA_EXPR_NAME, 0, 'm', 'e', 't', 'a', 0, 0, 0, 0,
			NEST(NFTA_EXPR_DATA, 20),
				NUMBER(NFTA_META_KEY, NFT_META_L4PROTO),
				NUMBER(NFTA_META_DREG, NFT_REG32_00),
		NEST(NFTA_LIST_ELEM, 44),
			8, 0, NFTA_EXPR_NAME, 0, 'c', 'm', 'p', 0,
			NEST(NFTA_EXPR_DATA, 32),
				NUMBER(NFTA_CMP_SREG, NFT_REG32_00),
				NUMBER(NFTA_CMP_OP, NFT_CMP_EQ),
				NEST(NFTA_CMP_DATA, 12),
					5, 0, NFTA_DATA_VALUE, 0, IPPROTO_UDP, 0, 0, 0,
	};
	/* clang-format on */
	const uint8_t protocol = IPPROTO_UDP;
	auto_nft_batch struct nft_batch batch = { 0 };
	struct nft_batch *b = &batch;
	(void)state;

	nft_batch_begin(b, "t");
	nft_rule_begin(b, "c");
	nft_match_meta(b, NFT_META_L4PROTO, NFT_CMP_EQ, &protocol, sizeof(protocol));
	nft_rule_end(b);
	nft_batch_end(b);
	assert_int_equal(b->error, 0);

	expect_tail(message_at(b, 1), expected, sizeof(expected));
}

static void a_jump_is_a_verdict_with_the_name_of_its_chain(void **state)
{
	static const uint8_t expected[] = {
		NUMBER(NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT),
		NEST(NFTA_IMMEDIATE_DATA, 24),
		NEST(NFTA_DATA_VERDICT, 20),
		8,
		0,
		NFTA_VERDICT_CODE,
		0,
		0xff,
		0xff,
		0xff,
		0xfd, /* NFT_JUMP, big endian */
		7,
		0,
		NFTA_VERDICT_CHAIN,
		0,
		'u',
		'p',
		0,
		0,
	};
	auto_nft_batch struct nft_batch batch = { 0 };
	struct nft_batch *b = &batch;
	(void)state;

	nft_batch_begin(b, "t");
	nft_rule_begin(b, "c");
	nft_verdict(b, NFT_JUMP, "up");
	nft_rule_end(b);
	nft_batch_end(b);
	assert_int_equal(b->error, 0);
	expect_tail(message_at(b, 1), expected, sizeof(expected));
}

static void an_element_of_a_map_has_key_data_and_flags(void **state)
{
	const uint8_t key[4] = { 10, 0, 0, 0 };
	const uint32_t data = 0x01020304;
	static const uint8_t expected[] = {
		NEST(NFTA_LIST_ELEM, 36),
		NUMBER(NFTA_SET_ELEM_FLAGS, NFT_SET_ELEM_INTERVAL_END),
		NEST(NFTA_SET_ELEM_KEY, 12),
		8,
		0,
		NFTA_DATA_VALUE,
		0,
		10,
		0,
		0,
		0,
		NEST(NFTA_SET_ELEM_DATA, 12),
		8,
		0,
		NFTA_DATA_VALUE,
		0, /* the host's byte order: a mark */
	};
	auto_nft_batch struct nft_batch batch = { 0 };
	struct nft_batch *b = &batch;
	(void)state;

	nft_batch_begin(b, "t");
	nft_elements_begin(b, "s");
	nft_element(b, &(struct nft_element){ .key = key,
					      .key_bytes = sizeof(key),
					      .data = &data,
					      .flags = NFT_SET_ELEM_INTERVAL_END });
	nft_elements_end(b);
	nft_batch_end(b);
	assert_int_equal(b->error, 0);

	const struct nlmsghdr *m = message_at(b, 1);
	expect_tail(m, (const uint8_t *)&data, sizeof(data));
	const uint8_t *at = (const uint8_t *)m + m->nlmsg_len - sizeof(data) - sizeof(expected);
	assert_memory_equal(at, expected, sizeof(expected));
}

static bool has_bytes(const struct nlmsghdr *m, const uint8_t *bytes, size_t size)
{
	return m && memmem(m, m->nlmsg_len, bytes, size) != NULL;
}

static void a_set_with_a_timeout_says_so_and_may_be_changed_by_rules(void **state)
{
	static const uint8_t flags[] = { NUMBER(NFTA_SET_FLAGS, NFT_SET_TIMEOUT | NFT_SET_EVAL) };
	static const uint8_t no_flags[] = { NUMBER(NFTA_SET_FLAGS, 0) };
	/* an hour in milliseconds, big endian: 0x36ee80 */
	static const uint8_t timeout[] = { 12,   0,   NFTA_SET_TIMEOUT, 0, 0, 0, 0, 0, 0, 0x36,
					   0xee, 0x80 };
	const struct nft_set sets[] = {
		{ .name = "s", .key_bytes = 4, .timeout_ms = 3600 * 1000 },
		{ .name = "t", .key_bytes = 4 },
	};
	auto_nft_batch struct nft_batch batch = { 0 };
	struct nft_batch *b = &batch;
	(void)state;

	nft_batch_begin(b, "t");
	nft_add_set(b, &sets[0]);
	nft_add_set(b, &sets[1]);
	nft_batch_end(b);
	assert_int_equal(b->error, 0);

	assert_true(has_bytes(message_at(b, 1), flags, sizeof(flags)));
	assert_true(has_bytes(message_at(b, 1), timeout, sizeof(timeout)));
	assert_true(has_bytes(message_at(b, 2), no_flags, sizeof(no_flags)));
	assert_false(has_bytes(message_at(b, 2), timeout, 4));
}

static void a_refresh_updates_the_element_that_the_key_has_found(void **state)
{
	/* clang-format off */
	static const uint8_t expected[] = {
		NEST(NFTA_LIST_ELEM, 44),
			11, 0, NFTA_EXPR_NAME, 0, 'd', 'y', 'n', 's', 'e', 't', 0, 0,
			NEST(NFTA_EXPR_DATA, 28),
				6, 0, NFTA_DYNSET_SET_NAME, 0, 's', 0, 0, 0,
				NUMBER(NFTA_DYNSET_OP, NFT_DYNSET_OP_UPDATE),
				NUMBER(NFTA_DYNSET_SREG_KEY, NFT_REG32_00),
	};
	/* clang-format on */
	auto_nft_batch struct nft_batch batch = { 0 };
	struct nft_batch *b = &batch;
	(void)state;

	nft_batch_begin(b, "t");
	nft_rule_begin(b, "c");
	nft_match_set(b, "s");
	nft_refresh(b, "s");
	nft_rule_end(b);
	nft_batch_end(b);
	assert_int_equal(b->error, 0);
	expect_tail(message_at(b, 1), expected, sizeof(expected));
}

static void elements_are_added_where_they_may_be_and_deleted_where_they_are(void **state)
{
	const uint8_t key[4] = { 10, 0, 0, 1 };
	auto_nft_batch struct nft_batch batch = { 0 };
	struct nft_batch *b = &batch;
	char text[64];
	(void)state;

	nft_batch_begin(b, "t");
	for (size_t i = 0; i < 2; i++) {
		if (i == 0)
			nft_elements_begin(b, "s");
		else
			nft_elements_delete(b, "s");
		nft_element(b, &(struct nft_element){ .key = key, .key_bytes = sizeof(key) });
		nft_elements_end(b);
	}
	nft_batch_end(b);
	assert_int_equal(b->error, 0);

	const struct nlmsghdr *add = message_at(b, 1), *delete = message_at(b, 2);
	assert_int_equal(add->nlmsg_type, NFT(NFT_MSG_NEWSETELEM));
	assert_int_equal(add->nlmsg_flags & (NLM_F_CREATE | NLM_F_EXCL), NLM_F_CREATE);
	assert_int_equal(delete->nlmsg_type, NFT(NFT_MSG_DELSETELEM));
	assert_int_equal(delete->nlmsg_flags & (NLM_F_CREATE | NLM_F_EXCL), 0);
	assert_int_equal(delete->nlmsg_len, add->nlmsg_len);
	assert_memory_equal(delete + 1, add + 1, add->nlmsg_len - sizeof(*add));
	nft_batch_describe(b, b->first_seq + 2, text, sizeof(text));
	assert_string_equal(text, "elements of set 's'");
}

static void an_object_that_does_not_fit_is_an_error_and_not_written(void **state)
{
	auto_nft_batch struct nft_batch batch = { 0 };
	struct nft_batch *b = &batch;
	(void)state;

	nft_batch_begin(b, "t");
	for (size_t i = 0; i < NFT_BATCH_MAX / 16; i++)
		nft_add_chain(b, "chain");
	assert_int_equal(b->error, ENOBUFS);
	assert_true(b->size <= NFT_BATCH_MAX);
	nft_batch_end(b);
	assert_int_equal(b->error, ENOBUFS);

	struct cj_error err = { 0 };
	assert_int_equal(firewall_load(-1, b, &err), -ENOBUFS); /* is not even sent */
	nft_batch_begin(b, "t");
	assert_int_equal(b->error, 0);
}

static void a_list_longer_than_an_attribute_is_an_error(void **state)
{
	const uint8_t key[16] = { 0 };
	auto_nft_batch struct nft_batch batch = { 0 };
	struct nft_batch *b = &batch;
	(void)state;

	nft_batch_begin(b, "t");
	nft_elements_begin(b, "s");
	for (size_t i = 0; i < 3000; i++)
		nft_element(b, &(struct nft_element){ .key = key, .key_bytes = sizeof(key) });
	nft_elements_end(b);
	nft_batch_end(b);
	assert_int_equal(b->error, ENOBUFS);
}

static void every_message_can_be_named(void **state)
{
	static const struct nft_hook hook = { "base", "filter", NF_INET_FORWARD, 0, NF_DROP };
	static const struct nft_set set = { .name = "addresses", .key_bytes = 4 };
	static const char *const names[] = {
		"the transaction",
		"table 't'",
		"chain 'base'",
		"set 'addresses'",
		"elements of set 'addresses'",
		"rule 1 of chain 'base'",
		"rule 1 of chain 'other'",
		"rule 2 of chain 'base'",
		"the transaction",
		"the transaction",
	};
	auto_nft_batch struct nft_batch batch = { 0 };
	struct nft_batch *b = &batch;
	char text[64];
	(void)state;

	nft_batch_begin(b, "t");
	nft_add_table(b, 0);
	nft_add_base_chain(b, &hook);
	nft_add_set(b, &set);
	nft_elements_begin(b, "addresses");
	nft_elements_end(b);
	for (size_t i = 0; i < 3; i++) {
		nft_rule_begin(b, i == 1 ? "other" : "base");
		nft_rule_end(b);
	}
	nft_batch_end(b);
	assert_int_equal(b->error, 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		nft_batch_describe(b, b->first_seq + (uint32_t)i, text, sizeof(text));
		assert_string_equal(text, names[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_transaction_is_opened_closed_and_acknowledged_once),
		cmocka_unit_test(a_batch_can_be_used_again),
		cmocka_unit_test(a_match_on_meta_is_a_load_and_a_compare),
		cmocka_unit_test(a_jump_is_a_verdict_with_the_name_of_its_chain),
		cmocka_unit_test(an_element_of_a_map_has_key_data_and_flags),
		cmocka_unit_test(a_set_with_a_timeout_says_so_and_may_be_changed_by_rules),
		cmocka_unit_test(a_refresh_updates_the_element_that_the_key_has_found),
		cmocka_unit_test(elements_are_added_where_they_may_be_and_deleted_where_they_are),
		cmocka_unit_test(an_object_that_does_not_fit_is_an_error_and_not_written),
		cmocka_unit_test(a_list_longer_than_an_attribute_is_an_error),
		cmocka_unit_test(every_message_can_be_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
