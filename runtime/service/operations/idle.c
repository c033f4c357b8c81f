/* SPDX-License-Identifier: Apache-2.0 */
/* Pure. */
#include "runtime/service/operations/idle.h"

bool idle_is_used(const struct idle_uses *u)
{
	return u->runs > u->own_runs || u->requests > 0 || u->sessions > 0;
}

int idle_tick(struct idle *i, bool is_used, uint64_t now_ms)
{
	if (is_used || i->since_ms == 0)
		i->since_ms = now_ms > 0 ? now_ms : 1;
	uint64_t passed_ms = now_ms > i->since_ms ? now_ms - i->since_ms : 0;

	return passed_ms < IDLE_PATIENCE_MS ? (int)(IDLE_PATIENCE_MS - passed_ms) : 0;
}
