/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_resolver - any bytes as a query, as a stream of them, as an answer, as a resolv.conf(5).
 *
 * Asserted: what passes is one plain question with at most an empty OPT record, passes a second
 * time unchanged, and is answered by our own failure; a refusal is an answer; a stream may be cut
 * anywhere and the same bytes pass; servers are one to three.
 */
/*
 * fuzz_resolver - any bytes as a query, as a stream of them, as an answer, as a resolv.conf(5).
 *
 * Asserted: what passes has a header of one plain question, and is answered by our own failure;
 * a stream may be cut anywhere and the same messages pass; servers are one to three.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "netns/relay/resolver.h"
#include "netns/relay/resolver_message.h"
#include "tests/fuzz/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static uint8_t *copy_of(const uint8_t *bytes, size_t size)
{
	uint8_t *copy = malloc(size + 1);
	assert(copy);
	if (size > 0)
		memcpy(copy, bytes, size);
	return copy;
}

static void check_refusal(const uint8_t *bytes, size_t size)
{
	uint8_t refusal[RESOLVER_QUESTION_MAX];
	size_t length = resolver_refusal(bytes, size, refusal);
	assert(length == 0 || (length >= 17 && length <= size));
	assert(length == 0 || (refusal[2] & 0x80 && refusal[3] == 5 && refusal[11] == 0));
}

static void check_plain(uint8_t *query, size_t size)
{
	uint8_t failure[RESOLVER_QUESTION_MAX];
	static const uint8_t counts[7] = { 0, 1 };
	assert(size >= 17 && query[2] == 1 && query[3] == 0 && query[11] <= 1);
	assert(memcmp(query + 4, counts, sizeof(counts)) == 0);

	uint8_t *again = copy_of(query, size);
	assert(resolver_make_plain(again, size) == size && memcmp(again, query, size) == 0);
	free(again);

	size_t answer = resolver_failure(query, size, failure);
	assert(answer == size - (query[11] ? 11 : 0));
	assert(resolver_answers(query, failure, answer));
	assert(!resolver_answers(query, query, size)); /* a question is no answer */
	assert(resolver_make_plain(failure, answer) == 0);
}

static void check_message(const uint8_t *bytes, size_t size)
{
	uint8_t *message = copy_of(bytes, size);
	size_t plain = resolver_make_plain(message, size);
	assert(plain <= size && (plain == 0 || memcmp(message, bytes, 2) == 0));
	if (plain > 0)
		check_plain(message, plain);
	else
		assert(size == 0 || memcmp(message, bytes, size) == 0);
	free(message);
	check_refusal(bytes, size);
}

/* The bytes are an answer to a question that passed. */
static void check_answer(const uint8_t *bytes, size_t size)
{
	static const uint8_t query[17] = { 1, 2, 1, 0, 0, 1, [14] = 2, [16] = 1 };
	if (resolver_answers(query, bytes, size))
		assert(size >= 12 && bytes[0] == 1 && bytes[1] == 2 && bytes[2] & 0x80);
}

/* In two pieces, as the pair shows them: what is held back comes again with more behind it. */
static void check_cut(const uint8_t *bytes, size_t size, size_t cut, const uint8_t *whole,
		      size_t passed)
{
	uint8_t *parts = copy_of(bytes, size);
	size_t first, second, left = cut;
	assert(resolver_stream(parts, &left, &first) >= 0 && first <= left && left <= cut);
	memcpy(parts + left, bytes + cut, size - cut);
	size_t rest = left - first + size - cut;
	assert(resolver_stream(parts + first, &rest, &second) >= 0);
	assert(first + second == passed && memcmp(parts, whole, passed) == 0);
	free(parts);
}

static void check_stream(const uint8_t *bytes, size_t size)
{
	uint8_t *whole = copy_of(bytes, size);
	size_t passed, left = size;
	if (resolver_stream(whole, &left, &passed) >= 0) {
		assert(passed <= left && left <= size);
		assert(left - passed < RESOLVER_QUESTION_MAX + 2);
		for (size_t cut = 0; cut <= size; cut += 1 + size / 8)
			check_cut(bytes, size, cut, whole, passed);
	}
	free(whole);
}

static void check_servers(const uint8_t *bytes, size_t size)
{
	struct ip servers[RESOLVER_SERVERS_MAX];
	char *text = bytes_text((struct bytes){ bytes, size });
	size_t count = resolver_read_conf(text, servers);
	assert(count >= 1 && count <= RESOLVER_SERVERS_MAX);
	for (size_t i = 0; i < count; i++)
		assert(servers[i].family == 4 || servers[i].family == 6);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	check_message(bytes, size);
	check_answer(bytes, size);
	check_stream(bytes, size);
	check_servers(bytes, size);
	return 0;
}
