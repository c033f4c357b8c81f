/* SPDX-License-Identifier: Apache-2.0 */
/* A limit on how often something is done.  Pure. */
#include "runtime/kernel/seccomp/rate.h"

void rate_init(struct rate *r, unsigned per_ms, unsigned burst, uint64_t now_ms)
{
	*r = (struct rate){ per_ms, burst, burst, now_ms };
}

void rate_take(struct rate *r, unsigned price)
{
	r->left = r->left > price ? r->left - price : 0;
}

bool rate_refill(struct rate *r, uint64_t now_ms)
{
	if (r->left > 0)
		return true;
	if (now_ms < r->since_ms + RATE_PAUSE_MS)
		return false;
	uint64_t ms = now_ms - r->since_ms;
	r->left = ms < r->burst / r->per_ms ? (unsigned)ms * r->per_ms : r->burst;
	r->since_ms = now_ms;
	return true;
}

uint64_t rate_paused_until_ms(const struct rate *r)
{
	return r->left > 0 ? 0 : r->since_ms + RATE_PAUSE_MS;
}
