/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolver_message - the few things the resolver must know of a DNS message.  Pure.
 * Of use to netns/resolver*.c only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A question is 271 bytes at most; the rest is for EDNS, which pads to 468 (RFC 8467). */
#define RESOLVER_QUESTION_MAX 1024 /* a whole query */
#define RESOLVER_ANSWER_MAX   65535

/*
 * Makes a query plain, in place: one question of class IN, of no zone transfer and no key, with the
 * flag "recursion desired" and no other; of EDNS an OPT record without options.  Returns the new
 * size, at most the old one; 0 when it must not pass (the message is as before): another operation,
 * another record, TSIG or SIG(0), anything behind the end.
 */
size_t resolver_make_plain(uint8_t *message, size_t size);

/*
 * The same for the messages of a TCP stream (RFC 1035 4.2.2: two bytes of length before each).
 * Returns how many whole messages stand at the front, *out_passed their bytes with the lengths, and
 * what is behind them in *size; -1 when one must not pass.  An unfinished one waits: less than
 * RESOLVER_QUESTION_MAX + 2 bytes.
 */
int resolver_stream(uint8_t *bytes, size_t *size, size_t *out_passed);

/* Does `answer` answer `query` (which passed)?  The same id and question (RFC 5452 9.1); an error
 * may come without the question. */
bool resolver_answers(const uint8_t *query, const uint8_t *answer, size_t size);

/* "The server failed" (RFC 1035 4.1.1 RCODE 2) as the answer to `query` (which passed).  Returns
 * its size. */
size_t resolver_failure(const uint8_t *query, size_t size,
			uint8_t out[static RESOLVER_QUESTION_MAX]);

/* "Refused" (RCODE 5) as the answer to a message that must not pass.  0: it asks nothing. */
size_t resolver_refusal(const uint8_t *message, size_t size,
			uint8_t out[static RESOLVER_QUESTION_MAX]);
