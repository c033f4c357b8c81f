/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A query is parsed to its last byte and then rewritten.  From the jail the host's name server
 * gets only the id, the name, the type, and, within bounds, the answer size of EDNS.  An offset of
 * 0 means "malformed": offset 0 is always the header.
 */
#include "netns/relay/resolver_message.h"

/* RFC 1035 4.1.1 */
#define HEADER_BYTES  12
#define FLAGS         2 /* two bytes: QR OPCODE AA TC RD, RA Z AD CD RCODE */
#define COUNTS        4 /* four times two bytes: QD AN NS AR */
#define BIT_QR        0x80
#define BITS_OPCODE   0x78
#define BIT_TC        0x02
#define BIT_RD        0x01
#define BITS_RCODE    0x0f
#define BIT_RA        0x80
#define RCODE_FAILED  2
#define RCODE_UNKNOWN 4 /* not implemented */
#define RCODE_REFUSED 5

#define NAME_MAX_BYTES  255 /* RFC 1035 2.3.4 */
#define LABEL_MAX_BYTES 63
#define POINTER         0xc0 /* RFC 1035 4.1.4 */
#define CLASS_IN        1    /* CH and ANY ask the server about itself: version.bind */
#define TYPE_CNAME      5
#define TYPE_OPT        41  /* RFC 6891 */
#define TYPE_FIRST_META 128 /* RFC 6895 3.1: keys, signatures, whole zones */
#define TYPE_LAST_META  254 /* 255 is "all types" */

/* An OPT record without options: RFC 6891 6.1.2. */
#define OPT_BYTES      11
#define OPT_TYPE       1 /* offsets: a name of one byte, that of the root, is before it */
#define OPT_ANSWER     3 /* where the class stands: how long an answer may be */
#define OPT_VERSION    6
#define OPT_LENGTH     9 /* of its options */
#define ANSWER_LEAST   512
#define ANSWER_LARGEST 1232 /* what fits every path of IPv6 */

static unsigned get16(const uint8_t *bytes)
{
	return (unsigned)bytes[0] << 8 | bytes[1];
}

static void put16(uint8_t *bytes, unsigned value)
{
	bytes[0] = (uint8_t)(value >> 8);
	bytes[1] = (uint8_t)value;
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
	return class == CLASS_IN && type != TYPE_OPT &&
	       (type < TYPE_FIRST_META || type > TYPE_LAST_META);
}

static bool is_header_plain(const uint8_t *message)
{
	return (message[FLAGS] & (BIT_QR | BITS_OPCODE)) == 0 && count_at(message, 0) == 1 &&
	       count_at(message, 1) == 0 && count_at(message, 2) == 0 && count_at(message, 3) <= 1;
}

/* From `opt` to the end of the message: one OPT record of version 0, whatever its options. */
static bool is_opt(const uint8_t *opt, size_t size)
{
	return size >= OPT_BYTES && opt[0] == 0 && get16(opt + OPT_TYPE) == TYPE_OPT &&
	       opt[OPT_VERSION] == 0 && get16(opt + OPT_LENGTH) == size - OPT_BYTES;
}

static void write_opt(uint8_t *opt)
{
	unsigned answer = get16(opt + OPT_ANSWER);
	answer = answer < ANSWER_LEAST ? ANSWER_LEAST : answer;
	answer = answer > ANSWER_LARGEST ? ANSWER_LARGEST : answer;
	memset(opt, 0, OPT_BYTES);
	put16(opt + OPT_TYPE, TYPE_OPT);
	put16(opt + OPT_ANSWER, answer);
}

size_t resolver_make_plain(uint8_t *message, size_t size)
{
	if (size < HEADER_BYTES || size > RESOLVER_QUESTION_MAX || !is_header_plain(message))
		return 0;
	size_t end = skip_question(message, size);
	if (end == 0 || !is_question_plain(message + end))
		return 0;
	bool has_opt = count_at(message, 3) == 1;
	if (has_opt ? !is_opt(message + end, size - end) : end != size)
		return 0;

	/* Always recursive: otherwise the answer reveals the content of the host's cache. */
	message[FLAGS] = BIT_RD;
	message[FLAGS + 1] = 0;
	if (!has_opt)
		return end;
	write_opt(message + end);
	return end + OPT_BYTES;
}

size_t resolver_add_opt(uint8_t *query, size_t size)
{
	const size_t question = skip_question(query, size);
	memset(query + question, 0, OPT_BYTES);
	put16(query + question + OPT_ANSWER, ANSWER_LARGEST);
	write_opt(query + question);
	put16(query + COUNTS + 6, 1);
	return question + OPT_BYTES;
}

bool resolver_is_cut_off(const uint8_t *answer)
{
	return (answer[FLAGS] & BIT_TC) != 0;
}

int resolver_stream(uint8_t *bytes, size_t *size, size_t *out_passed)
{
	size_t from = 0, to = 0;
	int count = 0;
	while (*size - from >= 2) {
		size_t length = get16(bytes + from);
		if (length < HEADER_BYTES || length > RESOLVER_QUESTION_MAX)
			return -1;
		if (*size - from - 2 < length)
			break;
		size_t plain = resolver_make_plain(bytes + from + 2, length);
		if (plain == 0)
			return -1;
		memmove(bytes + to + 2, bytes + from + 2, plain);
		put16(bytes + to, (unsigned)plain);
		from += 2 + length;
		to += 2 + plain;
		count++;
	}
	memmove(bytes + to, bytes + from, *size - from);
	*size -= from - to;
	*out_passed = to;
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

bool resolver_has_failed(const uint8_t *answer)
{
	const uint8_t code = answer[FLAGS + 1] & BITS_RCODE;
	return code == RCODE_FAILED || code == RCODE_UNKNOWN || code == RCODE_REFUSED;
}

/* The question again, and a code.  0: there is no question to answer. */
static size_t answer_with(const uint8_t *query, size_t size, uint8_t code, uint8_t *out)
{
	size_t end = skip_question(query, size);
	memcpy(out, query, end);
	if (end == 0)
		return 0;
	out[FLAGS] = BIT_QR | (query[FLAGS] & (BITS_OPCODE | BIT_RD));
	out[FLAGS + 1] = code;
	memset(out + COUNTS + 2, 0, 6); /* the question alone */
	return end;
}

size_t resolver_failure(const uint8_t *query, size_t size,
			uint8_t out[static RESOLVER_QUESTION_MAX])
{
	return answer_with(query, size, RCODE_FAILED, out);
}

size_t resolver_refusal(const uint8_t *message, size_t size,
			uint8_t out[static RESOLVER_QUESTION_MAX])
{
	bool is_query = size >= HEADER_BYTES && size <= RESOLVER_QUESTION_MAX &&
			(message[FLAGS] & BIT_QR) == 0 && count_at(message, 0) == 1;
	return is_query ? answer_with(message, size, RCODE_REFUSED, out) : 0;
}

/* Appends a label and a dot. */
static bool put_label(const uint8_t *label, char out[static RESOLVER_NAME_MAX], size_t *used)
{
	if (*used + label[0] + 1 >= RESOLVER_NAME_MAX)
		return false;
	for (size_t i = 1; i <= label[0]; i++) {
		const uint8_t byte = label[i];
		const bool is_upper = byte >= 'A' && byte <= 'Z';
		if (!is_upper && !(byte >= 'a' && byte <= 'z') && !(byte >= '0' && byte <= '9') &&
		    byte != '-' && byte != '_')
			return false;
		out[(*used)++] = (char)(is_upper ? byte - 'A' + 'a' : byte);
	}
	out[(*used)++] = '.';
	return true;
}

/* The name at `at`.  Each pointer in it leads further to the front: RFC 1035 4.1.4. */
static bool read_name(const uint8_t *message, size_t size, size_t at,
		      char out[static RESOLVER_NAME_MAX])
{
	size_t used = 0, before = at;
	while (at < size && message[at] != 0) {
		if (message[at] >= POINTER && size - at >= 2) {
			at = get16(message + at) & 0x3fff;
			if (at >= before)
				return false;
			before = at;
			continue;
		}
		if (message[at] > LABEL_MAX_BYTES || size - at <= message[at] ||
		    !put_label(message + at, out, &used))
			return false;
		at += 1 + (size_t)message[at];
	}
	out[used > 0 ? used - 1 : 0] = '\0';
	return at < size;
}

unsigned resolver_question(const uint8_t *query, size_t size, char out[static RESOLVER_NAME_MAX])
{
	const size_t end = skip_question(query, size);
	return end > 0 && read_name(query, size, HEADER_BYTES, out) ? get16(query + end - 4) : 0;
}

/* Behind a name that may end with a pointer; 0: cut off. */
static size_t skip_any_name(const uint8_t *message, size_t size, size_t at)
{
	while (at < size && message[at] != 0) {
		if (message[at] >= POINTER)
			return size - at < 2 ? 0 : at + 2;
		at += 1 + (size_t)message[at];
	}
	return at < size ? at + 1 : 0;
}

/* RFC 1035 4.1.3: behind the name, type, class, lifetime, and the length of what follows. */
#define RECORD_TYPE   0
#define RECORD_CLASS  2
#define RECORD_TTL    4
#define RECORD_LENGTH 8
#define RECORD_BYTES  10

/* The record at *at, which is moved behind its data; NULL: it is cut off. */
static const uint8_t *next_record(const uint8_t *answer, size_t size, size_t *at,
				  size_t *out_length)
{
	const size_t begin = skip_any_name(answer, size, *at);
	if (begin == 0 || size - begin < RECORD_BYTES)
		return NULL;
	*out_length = get16(answer + begin + RECORD_LENGTH);
	*at = begin + RECORD_BYTES + *out_length;
	return *at > size ? NULL : answer + begin;
}

size_t resolver_addresses(const uint8_t *query, const uint8_t *answer, size_t size,
			  struct resolver_address out[static RESOLVER_ADDRESSES_MAX])
{
	size_t end = skip_question(query, RESOLVER_QUESTION_MAX), count = 0, length = 0;
	unsigned type = get16(query + end - 4), left = count_at(answer, 1);
	const size_t bytes = type == RESOLVER_TYPE_A ? 4 : 16;

	for (size_t at = end; count_at(answer, 0) == 1 && left > 0; left--) {
		const uint8_t *record = next_record(answer, size, &at, &length);
		if (!record)
			break;
		if (get16(record + RECORD_TYPE) != type || length != bytes ||
		    get16(record + RECORD_CLASS) != CLASS_IN || count == RESOLVER_ADDRESSES_MAX)
			continue;
		struct resolver_address *a = &out[count++];
		*a = (struct resolver_address){ .ip.family = bytes == 4 ? 4 : 6 };
		memcpy(a->ip.bytes, record + RECORD_BYTES, length);
		a->ttl = (uint32_t)get16(record + RECORD_TTL) << 16 |
			 get16(record + RECORD_TTL + 2);
	}
	return count;
}

bool resolver_aliases(const uint8_t *query, const uint8_t *answer, size_t size,
		      struct resolver_aliases *out)
{
	size_t at = skip_question(query, RESOLVER_QUESTION_MAX), length = 0;
	out->count = 0;
	for (unsigned left = count_at(answer, 1); count_at(answer, 0) == 1 && left > 0; left--) {
		const uint8_t *record = next_record(answer, size, &at, &length);
		if (!record)
			return false;
		if (get16(record + RECORD_TYPE) != TYPE_CNAME)
			continue;
		if (out->count == RESOLVER_ALIASES_MAX ||
		    !read_name(answer, at, at - length, out->names[out->count]))
			return false;
		out->count++;
	}
	return true;
}

size_t resolver_answer(const uint8_t *query, size_t query_size, const uint8_t *answer,
		       const struct resolver_address *addresses, size_t count,
		       uint8_t out[static RESOLVER_QUESTION_MAX])
{
	const size_t question = skip_question(query, query_size);
	const bool has_opt = query_size > question;
	const size_t opt = has_opt ? OPT_BYTES : 0;
	size_t limit = has_opt ? get16(query + question + OPT_ANSWER) : ANSWER_LEAST;
	size_t at = answer_with(query, query_size, (uint8_t)(answer[FLAGS + 1] & BITS_RCODE), out);
	unsigned written = 0;

	if (limit > RESOLVER_QUESTION_MAX)
		limit = RESOLVER_QUESTION_MAX;
	for (; written < count; written++) {
		const struct resolver_address *a = &addresses[written];
		const size_t bytes = ip_size(&a->ip);
		if (limit - at < 2 + RECORD_BYTES + bytes + opt)
			break;
		put16(out + at, POINTER << 8 | HEADER_BYTES); /* the name of the question */
		put16(out + at + 2 + RECORD_TYPE, get16(query + question - 4));
		put16(out + at + 2 + RECORD_CLASS, CLASS_IN);
		put16(out + at + 2 + RECORD_TTL, a->ttl >> 16);
		put16(out + at + 2 + RECORD_TTL + 2, a->ttl & 0xffff);
		put16(out + at + 2 + RECORD_LENGTH, (unsigned)bytes);
		memcpy(out + at + 2 + RECORD_BYTES, a->ip.bytes, bytes);
		at += 2 + RECORD_BYTES + bytes;
	}
	if (written > 0)
		out[FLAGS + 1] = 0;
	out[FLAGS + 1] |= BIT_RA;
	put16(out + COUNTS + 2, written);
	if (has_opt) {
		put16(out + COUNTS + 6, 1);
		memcpy(out + at, query + question, OPT_BYTES);
	}
	return at + opt;
}

/* --- resolv.conf(5), read as the C library reads it: the keyword is at the start of the line, and
 * a blank, '#' or ';' ends the address --- */

#define BLANKS " \t\r\v\f"

static bool parse_line(const char *line, size_t length, struct ip *out)
{
	static const char keyword[] = "nameserver";
	const size_t skip = sizeof(keyword) - 1;
	if (length <= skip || memcmp(line, keyword, skip) != 0)
		return false;

	size_t blanks = strspn(line + skip, BLANKS);
	const char *word = line + skip + blanks;
	size_t size = strcspn(word, BLANKS "\n#;");
	char address[IP_TEXT_MAX];
	if (blanks == 0 || size >= sizeof(address))
		return false;
	memcpy(address, word, size);
	address[size] = '\0';
	return ip_parse(address, out);
}

size_t resolver_read_conf(const char *text, struct ip out[static RESOLVER_SERVERS_MAX])
{
	size_t count = 0;
	while (*text != '\0' && count < RESOLVER_SERVERS_MAX) {
		size_t length = strcspn(text, "\n");
		if (parse_line(text, length, &out[count]))
			count++;
		text += length + (text[length] == '\n');
	}
	if (count > 0)
		return count;
	out[0] = (struct ip){ .family = 4, .bytes = { 127, 0, 0, 1 } };
	return 1;
}
