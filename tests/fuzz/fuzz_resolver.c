/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_resolver - any bytes as a query, as a stream of them, as an answer, as a resolv.conf(5).
 *
 * Asserted: what passes has a header of one plain question, and is answered by our own failure;
 * a stream may be cut anywhere and the same messages pass; servers are one to three.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "netns/resolver.h"
#include "netns/resolver_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_message(const uint8_t *bytes, size_t size)
{
	uint8_t failure[RESOLVER_QUESTION_MAX];
	if (!resolver_may_pass(bytes, size))
		return;
	assert(size >= 17 && size <= RESOLVER_QUESTION_MAX);
	assert((bytes[2] & 0xf8) == 0 && bytes[4] == 0 && bytes[5] == 1);
	assert(bytes[6] == 0 && bytes[7] == 0 && bytes[8] == 0 && bytes[9] == 0);
	assert(bytes[10] == 0 && bytes[11] <= 2);

	size_t answer = resolver_failure(bytes, failure);
	assert(answer >= 17 && answer <= size);
	assert(resolver_answers(bytes, failure, answer));
	assert(!resolver_answers(bytes, bytes, size)); /* a question is no answer */
	assert(!resolver_may_pass(failure, answer));
}

/* The bytes are an answer to a question that passed. */
static void check_answer(const uint8_t *bytes, size_t size)
{
	static const uint8_t query[17] = { 1, 2, 1, 0, 0, 1, [14] = 2, [16] = 1 };
	if (resolver_answers(query, bytes, size))
		assert(size >= 12 && bytes[0] == 1 && bytes[1] == 2 && bytes[2] & 0x80);
}

/* In two pieces, as the pair shows them: what is held back comes again with more behind it. */
static void check_stream(const uint8_t *bytes, size_t size)
{
	size_t whole, first, second;
	int count = resolver_stream(bytes, size, &whole);
	if (count < 0)
		return;
	assert(whole <= size && size - whole < RESOLVER_QUESTION_MAX + 2);
	for (size_t cut = 0; cut <= size; cut += 1 + size / 8) {
		int before = resolver_stream(bytes, cut, &first);
		assert(before >= 0 && first <= cut);
		int after = resolver_stream(bytes + first, size - first, &second);
		assert(after >= 0 && before + after == count && first + second == whole);
	}
}

static void check_servers(const uint8_t *bytes, size_t size)
{
	struct ip servers[RESOLVER_SERVERS_MAX];
	char *text = malloc(size + 1);
	assert(text);
	if (size > 0)
		memcpy(text, bytes, size);
	text[size] = '\0';
	size_t count = resolver_servers(text, servers);
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
