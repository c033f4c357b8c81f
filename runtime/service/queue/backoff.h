/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backoff - when to try again what has failed: each pause is twice as long as the one before.
 * It also says which reasons are new.  Pure: the caller has the clock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define BACKOFF_MIN_MS 1000
#define BACKOFF_MAX_MS 60000

/* All 0: nothing has failed. */
struct backoff {
	uint64_t retry_at_ms, pause_ms;
	char problem[512]; /* the last failure's reason; "": it has succeeded since */
};

/* It failed: a pause begins.  Returns whether the reason is another one than the last. */
bool backoff_fail(struct backoff *b, uint64_t now_ms, const char *why);
/* The same without a pause. */
bool backoff_note(struct backoff *b, const char *why);
/* It succeeded: the next pause is short again.  A pause that has begun goes on. */
void backoff_succeed(struct backoff *b);

bool backoff_is_over(const struct backoff *b, uint64_t now_ms);
