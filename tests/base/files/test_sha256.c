/* SPDX-License-Identifier: Apache-2.0 */
/* sha256: the vectors of NIST (FIPS 180-4's examples, CAVP), and every way to cut a message. */
#include "runtime/base/files/sha256.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void expect_hash(const void *bytes, size_t size, const char *expected)
{
	char hex[SHA256_HEX_MAX];

	sha256_hex(bytes, size, hex);
	assert_string_equal(hex, expected);
}

static void the_examples_of_the_standard_come_out_right(void **state)
{
	(void)state;

	expect_hash(NULL, 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	expect_hash("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	expect_hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
		    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	expect_hash("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
		    "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
		    112, "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
	expect_hash("\xbd", 1, "68325720aabd7c82f30f554b313d0570c95accbb7dc4b5aae11204c08ffe732b");
	expect_hash("\xc9\x8c\x8e\x55", 4,
		    "7abc22c0ae5af26ce93dbb94433a0e0b2e119d014f8e7f65bd56c61ccccd9504");
}

static void a_million_times_a_comes_out_right(void **state)
{
	struct sha256 h;
	char part[1000], hex[SHA256_HEX_MAX];
	(void)state;

	memset(part, 'a', sizeof(part));
	sha256_init(&h);
	for (int i = 0; i < 1000; i++)
		sha256_update(&h, part, sizeof(part));
	sha256_final(&h, hex);
	assert_string_equal(hex,
			    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* Zeroes, from Python's hashlib: the lengths where the padding needs a block of its own. */
static void the_padding_is_right_at_the_edge_of_a_block(void **state)
{
	static const struct {
		size_t size;
		const char *hash;
	} rows[] = {
		{ 55, "02779466cdec163811d078815c633f21901413081449002f24aa3e80f0b88ef7" },
		{ 56, "d4817aa5497628e7c77e6b606107042bbba3130888c5f47a375e6179be789fbb" },
		{ 57, "65a16cb7861335d5ace3c60718b5052e44660726da4cd13bb745381b235a1785" },
		{ 63, "c7723fa1e0127975e49e62e753db53924c1bd84b8ac1ac08df78d09270f3d971" },
		{ 64, "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b" },
		{ 65, "98ce42deef51d40269d542f5314bef2c7468d401ad5d85168bfab4c0108f75f7" },
		{ 119, "f616b0d54e78571a9611f343c9f8e022e859e920381ab0e4d3da01e193a7bd7e" },
		{ 120, "6edd9f6f9cc92cded36e6c4a580933f9c9f1b90562b46903b806f21902a1a54f" },
		{ 128, "38723a2e5e8a17aa7950dc008209944e898f69a7bd10a23c839d341e935fd5ca" },
	};
	static const uint8_t zeroes[256];
	(void)state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		expect_hash(zeroes, rows[i].size, rows[i].hash);
}

static void it_does_not_matter_how_a_message_is_cut(void **state)
{
	uint8_t bytes[200];
	char whole[SHA256_HEX_MAX], parts[SHA256_HEX_MAX];
	(void)state;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 37);
	sha256_hex(bytes, sizeof(bytes), whole);
	for (size_t first = 0; first <= sizeof(bytes); first++) {
		for (size_t second = first; second <= sizeof(bytes); second += 13) {
			struct sha256 h;

			sha256_init(&h);
			sha256_update(&h, bytes, first);
			sha256_update(&h, bytes + first, second - first);
			sha256_update(&h, bytes + second, sizeof(bytes) - second);
			sha256_final(&h, parts);
			assert_string_equal(parts, whole);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_examples_of_the_standard_come_out_right),
		cmocka_unit_test(a_million_times_a_comes_out_right),
		cmocka_unit_test(the_padding_is_right_at_the_edge_of_a_block),
		cmocka_unit_test(it_does_not_matter_how_a_message_is_cut),
	};

	return cmocka_run_group_tests_name("sha256", tests, NULL, NULL);
}
