/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_resolver - any bytes as a query, as a stream of them, as an answer, as a resolv.conf(5).
 *
 * Asserted: what passes is one plain question with at most an empty OPT record, passes a second
 * time unchanged, and is answered by our own failure; a refusal is an answer; a stream may be cut
 * anywhere and the same bytes pass; servers are one to three.  Of a live allow list: a name is of
 * plain letters; our own answer to any bytes of a server has the question and its addresses only,
 * is no longer than the client takes, and has the same addresses when it is read again.
 */
#include <assert.h>

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

/* The name as text, and the length that a server hears of. */
static void check_question(const uint8_t *query, size_t size)
{
	char name[RESOLVER_NAME_MAX] = "";
	uint8_t longer[RESOLVER_QUESTION_MAX];
	const size_t question = size - (query[11] ? 11 : 0);
	unsigned type = resolver_question(query, size, name);
	assert(type == 0 || type == ((unsigned)query[question - 4] << 8 | query[question - 3]));
	if (type > 0) {
		/* a label's length stands for its dot; the first and the last one have none */
		assert(strlen(name) == (question == 17 ? 0 : question - 12 - 4 - 2));
		assert(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == strlen(name));
		assert(!strstr(name, "..") && name[0] != '.');
	}
	memcpy(longer, query, size);
	size_t sent = resolver_add_opt(longer, size);
	assert(sent == question + 11 && resolver_make_plain(longer, sent) == sent);
	assert(resolver_add_opt(longer, sent) == sent);
	assert(memcmp(longer, query, 11) == 0 &&
	       memcmp(longer + 12, query + 12, question - 12) == 0);
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

	check_question(query, size);
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

static bool is_same_address(const struct resolver_address *a, const struct resolver_address *b)
{
	return ip_equal(&a->ip, &b->ip) && a->ttl == b->ttl;
}

static void check_aliases(const uint8_t *sent, const uint8_t *bytes, size_t size)
{
	static struct resolver_aliases aliases;
	(void)resolver_aliases(sent, bytes, size, &aliases);
	assert(aliases.count <= RESOLVER_ALIASES_MAX);
	for (size_t i = 0; i < aliases.count; i++) {
		const char *name = aliases.names[i];
		assert(memchr(name, '\0', RESOLVER_NAME_MAX) && name[0] != '.');
		assert(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == strlen(name));
	}
}

/* `query` is as a client of a live list sends it, and has room for more. */
static void check_live(const uint8_t *query, size_t query_size, const uint8_t *bytes, size_t size)
{
	struct resolver_address found[RESOLVER_ADDRESSES_MAX], again[RESOLVER_ADDRESSES_MAX];
	uint8_t sent[RESOLVER_QUESTION_MAX], out[RESOLVER_QUESTION_MAX];
	const bool has_opt = query[11] == 1;
	const size_t question = query_size - (has_opt ? 11 : 0);
	const size_t limit = has_opt ? (size_t)query[question + 3] << 8 | query[question + 4] : 512;
	const int family = query[question - 3] == RESOLVER_TYPE_A ? 4 : 6;
	const size_t record = 12 + (family == 4 ? 4 : 16);

	memcpy(sent, query, query_size);
	(void)resolver_add_opt(sent, query_size);
	if (!resolver_answers(sent, bytes, size))
		return;
	size_t count = resolver_addresses(sent, bytes, size, found);
	assert(count <= RESOLVER_ADDRESSES_MAX);
	for (size_t i = 0; i < count; i++)
		assert(found[i].ip.family == family);

	check_aliases(sent, bytes, size);
	size_t used = resolver_answer(query, query_size, bytes, found, count, out);
	assert(used >= question && used <= sizeof(out) && used <= limit);
	assert(resolver_answers(sent, out, used) && !resolver_is_cut_off(out));
	size_t kept = resolver_addresses(sent, out, used, again);
	assert(kept <= count && out[7] == kept && out[6] == 0);
	assert(used == question + kept * record + (has_opt ? 11 : 0)); /* and nothing else */
	assert(kept == count || used + record > limit || used + record > sizeof(out));
	assert(memcmp(out + 12, query + 12, question - 12) == 0 && out[2] == 0x81);
	assert(out[3] == (0x80 | (count > 0 ? 0 : bytes[3] & 15)));
	for (size_t i = 0; i < kept; i++)
		assert(is_same_address(&found[i], &again[i]));
}

/* The id and the question are a server's to repeat: with the right ones the rest is looked at. */
static void check_live_answers(const uint8_t *bytes, size_t size)
{
	static const uint8_t opt[11] = { 0, 0, 41, 2, 88 }; /* 600 bytes */
	uint8_t query[40] = { 1, 2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 'a', 0, 0, 0, 0, 1 };
	uint8_t *answer = malloc(size > 19 ? size : 19); /* no longer than it says */
	assert(answer);
	for (unsigned i = 0; i < 4; i++) {
		query[16] = i % 2 ? RESOLVER_TYPE_A : RESOLVER_TYPE_AAAA;
		query[11] = i / 2 % 2;
		memcpy(query + 19, opt, sizeof(opt));
		const size_t query_size = query[11] ? 30 : 19;
		check_live(query, query_size, bytes, size);
		if (size <= 19)
			continue;
		memcpy(answer, bytes, size);
		memcpy(answer, query, 2);
		answer[2] = (uint8_t)(0x80 | (bytes[2] & 7));
		memcpy(answer + 4, query + 4, 2);
		memcpy(answer + 12, query + 12, 7);
		check_live(query, query_size, answer, size);
	}
	free(answer);
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
	check_live_answers(bytes, size);
	check_stream(bytes, size);
	check_servers(bytes, size);
	return 0;
}
