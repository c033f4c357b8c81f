/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may go to the host's name server, and what answers it.  Pure.
 *
 * A query is taken apart to its last byte, so that what passes is one question and at most the
 * two records that speak of the transport; offsets of 0 mean "malformed" (a header comes first).
 */
#include "netns/resolver_message.h"

#include <string.h>

#include "netns/resolver.h"

/* RFC 1035 4.1.1 */
#define HEADER_BYTES 12
#define FLAGS        2 /* two bytes: QR OPCODE AA TC RD, RA Z AD CD RCODE */
#define COUNTS       4 /* four times two bytes: QD AN NS AR */
#define BIT_QR       0x80
#define BITS_OPCODE  0x78
#define BIT_RD       0x01
#define BITS_RCODE   0x0f
#define RCODE_FAILED 2

#define NAME_MAX_BYTES   255 /* RFC 1035 2.3.4 */
#define LABEL_MAX_BYTES  63
#define ADDITIONAL_MAX   2
#define RECORD_FIXED     10 /* type, class, time to live, length */
#define CLASS_IN         1  /* CH and ANY ask the server about itself: version.bind */
#define TYPE_OPT         41 /* RFC 6891 */
#define TYPE_TSIG        250
#define TYPE_FIRST_WHOLE 251 /* IXFR, AXFR, MAILB, MAILA: zones and lists, not names */
#define TYPE_LAST_WHOLE  254

static unsigned get16(const uint8_t *bytes)
{
	return (unsigned)bytes[0] << 8 | bytes[1];
}

static unsigned count_at(const uint8_t *message, unsigned which)
{
	return get16(message + COUNTS + 2 * which);
}

/* Behind the name at `at`; 0: cut off, too long, or with a pointer (no query needs one). */
static size_t skip_name(const uint8_t *message, size_t size, size_t at)
{
	size_t start = at;
	while (at < size && message[at] != 0) {
		if (message[at] > LABEL_MAX_BYTES)
			return 0;
		at += 1 + (size_t)message[at];
	}
	if (at >= size || at + 1 - start > NAME_MAX_BYTES)
		return 0;
	return at + 1;
}

static size_t skip_question(const uint8_t *message, size_t size)
{
	size_t at = skip_name(message, size, HEADER_BYTES);
	return at == 0 || size - at < 4 ? 0 : at + 4;
}

static bool is_question_plain(const uint8_t *end)
{
	unsigned type = get16(end - 4), class = get16(end - 2);
	return class == CLASS_IN && (type < TYPE_FIRST_WHOLE || type > TYPE_LAST_WHOLE);
}

/* Behind a record that is no data: the options of the transport, or a signature. */
static size_t skip_additional(const uint8_t *message, size_t size, size_t at)
{
	at = skip_name(message, size, at);
	if (at == 0 || size - at < RECORD_FIXED)
		return 0;
	unsigned type = get16(message + at), length = get16(message + at + 8);
	at += RECORD_FIXED;
	if ((type != TYPE_OPT && type != TYPE_TSIG) || size - at < length)
		return 0;
	return at + length;
}

static bool is_header_plain(const uint8_t *message)
{
	return (message[FLAGS] & (BIT_QR | BITS_OPCODE)) == 0 && count_at(message, 0) == 1 &&
	       count_at(message, 1) == 0 && count_at(message, 2) == 0 &&
	       count_at(message, 3) <= ADDITIONAL_MAX;
}

bool resolver_may_pass(const uint8_t *message, size_t size)
{
	if (size < HEADER_BYTES || size > RESOLVER_QUESTION_MAX || !is_header_plain(message))
		return false;
	size_t at = skip_question(message, size);
	if (at == 0 || !is_question_plain(message + at))
		return false;
	for (unsigned left = count_at(message, 3); left > 0 && at != 0; left--)
		at = skip_additional(message, size, at);
	return at == size;
}

int resolver_stream(const uint8_t *bytes, size_t size, size_t *out_size)
{
	size_t at = 0;
	int count = 0;
	while (size - at >= 2) {
		size_t length = get16(bytes + at);
		if (length < HEADER_BYTES || length > RESOLVER_QUESTION_MAX)
			return -1;
		if (size - at - 2 < length)
			break;
		if (!resolver_may_pass(bytes + at + 2, length))
			return -1;
		at += 2 + length;
		count++;
	}
	*out_size = at;
	return count;
}

/* Letters of both cases are the same (RFC 4343); a length byte is never a letter. */
static bool is_same_text(const uint8_t *a, const uint8_t *b, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		unsigned x = a[i], y = b[i];
		if (x != y && ((x | 0x20) != (y | 0x20) || (x | 0x20) < 'a' || (x | 0x20) > 'z'))
			return false;
	}
	return true;
}

bool resolver_answers(const uint8_t *query, const uint8_t *answer, size_t size)
{
	if (size < HEADER_BYTES || memcmp(query, answer, 2) != 0 ||
	    (answer[FLAGS] & (BIT_QR | BITS_OPCODE)) != BIT_QR)
		return false;
	if (count_at(answer, 0) == 0) /* RFC 6891 7: a server that could not read the query */
		return (answer[FLAGS + 1] & BITS_RCODE) != 0 && count_at(answer, 1) == 0;

	size_t end = skip_question(query, RESOLVER_QUESTION_MAX);
	return count_at(answer, 0) == 1 && size >= end &&
	       is_same_text(query + HEADER_BYTES, answer + HEADER_BYTES, end - 4 - HEADER_BYTES) &&
	       memcmp(query + end - 4, answer + end - 4, 4) == 0;
}

size_t resolver_failure(const uint8_t *query, uint8_t out[static RESOLVER_QUESTION_MAX])
{
	size_t end = skip_question(query, RESOLVER_QUESTION_MAX);
	memcpy(out, query, end);
	out[FLAGS] = BIT_QR | (query[FLAGS] & BIT_RD);
	out[FLAGS + 1] = RCODE_FAILED;
	memset(out + COUNTS + 2, 0, 6); /* the question alone */
	return end;
}
