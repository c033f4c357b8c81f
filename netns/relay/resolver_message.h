/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolver_message - checks and rewrites DNS messages, and reads resolv.conf(5); for the resolver
 * only.  No system calls.
 */
#pragma once

#include "netns/address/ip.h"

/* A question has at most 271 bytes; the rest is for EDNS, which pads to 468 (RFC 8467). */
#define RESOLVER_QUESTION_MAX 1024 /* a whole query */
#define RESOLVER_ANSWER_MAX   65535

/*
 * Rewrites a query in place.  The result has one question of class IN, no flag but "recursion
 * desired", and of EDNS at most an OPT record without options.  Returns the new size, at most the
 * old one.  Returns 0 for a message that must not pass, and leaves it unchanged: another operation,
 * a zone transfer, a key type, another record, TSIG or SIG(0), or bytes after the end.
 */
size_t resolver_make_plain(uint8_t *message, size_t size);

/*
 * The same for the messages of a TCP stream (RFC 1035 4.2.2: two bytes of length before each).
 * Returns the number of whole messages at the front; -1 when one must not pass.  *out_passed: their
 * bytes with the lengths.  *size: all bytes that are left.  An incomplete message stays behind
 * them, with less than RESOLVER_QUESTION_MAX + 2 bytes.
 */
int resolver_stream(uint8_t *bytes, size_t *size, size_t *out_passed);

/* Whether `answer` is an answer to `query` (which passed).  It needs the same id and question (RFC
 * 5452 9.1); an error may lack the question. */
bool resolver_answers(const uint8_t *query, const uint8_t *answer, size_t size);

/* Does it say that another server may know more (RFC 1035 4.1.1: server failure, not implemented,
 * refused)? */
bool resolver_has_failed(const uint8_t *answer);

/* "The server failed" (RFC 1035 4.1.1 RCODE 2) as the answer to `query` (which passed).  Returns
 * its size. */
size_t resolver_failure(const uint8_t *query, size_t size,
			uint8_t out[static RESOLVER_QUESTION_MAX]);

/* "Refused" (RCODE 5) as the answer to a message that must not pass.  0: it is no query. */
size_t resolver_refusal(const uint8_t *message, size_t size,
			uint8_t out[static RESOLVER_QUESTION_MAX]);

#define RESOLVER_NAME_MAX 256 /* bytes of a name as text, with a NUL */

#define RESOLVER_TYPE_A    1
#define RESOLVER_TYPE_AAAA 28

/*
 * The name that `query` (which passed) asks for, in lower case, with dots and without one at the
 * end.  Returns its type; 0 for a name of other bytes than letters, digits, '-' and '_'.
 */
unsigned resolver_question(const uint8_t *query, size_t size, char out[static RESOLVER_NAME_MAX]);

/* Lets the answer to `query` (which passed) be as long as any path carries.  It has room for
 * RESOLVER_QUESTION_MAX bytes.  Returns its size. */
size_t resolver_add_opt(uint8_t *query, size_t size);

/* Has the server left something out, because the answer was too long for UDP? */
bool resolver_is_cut_off(const uint8_t *answer);

#define RESOLVER_ADDRESSES_MAX 24 /* of one answer; more are left out */

struct resolver_address {
	struct ip ip;
	uint32_t ttl; /* seconds */
};

/* The addresses in an answer to `query`, of the type that it asks for.  They may belong to another
 * name: that of a CNAME. */
size_t resolver_addresses(const uint8_t *query, const uint8_t *answer, size_t size,
			  struct resolver_address out[static RESOLVER_ADDRESSES_MAX]);

#define RESOLVER_ALIASES_MAX 12 /* of one answer; a resolver follows no longer chain */

/* The names that the CNAMEs of an answer lead to, as resolver_question() has them. */
struct resolver_aliases {
	char names[RESOLVER_ALIASES_MAX][RESOLVER_NAME_MAX];
	size_t count;
};

/* False: more than RESOLVER_ALIASES_MAX, or one, or a record before it, that can't be read. */
bool resolver_aliases(const uint8_t *query, const uint8_t *answer, size_t size,
		      struct resolver_aliases *out);

/*
 * An answer to `query` of our own bytes: its question, and these addresses as those of its name; as
 * many as a client takes over UDP.  Without addresses it has the answer's code, "no such name", or
 * none.  Returns its size.
 */
size_t resolver_answer(const uint8_t *query, size_t query_size, const uint8_t *answer,
		       const struct resolver_address *addresses, size_t count,
		       uint8_t out[static RESOLVER_QUESTION_MAX]);

#define RESOLVER_PORT        53
#define RESOLVER_SERVERS_MAX 3 /* MAXNS of resolv.conf(5) */

/* The name servers that `text` lists; 127.0.0.1 when it lists none.  One with a zone
 * (fe80::1%eth0) is skipped: a struct ip has no interface.  Returns how many there are. */
size_t resolver_read_conf(const char *text, struct ip out[static RESOLVER_SERVERS_MAX]);
