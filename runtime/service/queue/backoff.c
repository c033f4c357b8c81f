/* SPDX-License-Identifier: Apache-2.0 */
/* Pauses after failures.  Pure. */
#include "runtime/service/queue/backoff.h"

#include <stdio.h>
#include <string.h>

bool backoff_note(struct backoff *b, const char *why)
{
	if (strcmp(why, b->problem) == 0)
		return false;
	(void)snprintf(b->problem, sizeof(b->problem), "%s", why);
	return true;
}

bool backoff_fail(struct backoff *b, uint64_t now_ms, const char *why)
{
	b->pause_ms = b->pause_ms ? 2 * b->pause_ms : BACKOFF_MIN_MS;
	if (b->pause_ms > BACKOFF_MAX_MS)
		b->pause_ms = BACKOFF_MAX_MS;
	b->retry_at_ms = now_ms + b->pause_ms;
	return backoff_note(b, why);
}

void backoff_succeed(struct backoff *b)
{
	b->pause_ms = 0;
	b->problem[0] = '\0';
}

bool backoff_is_over(const struct backoff *b, uint64_t now_ms)
{
	return now_ms >= b->retry_at_ms;
}
