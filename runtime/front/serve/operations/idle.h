/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idle - the end of a service that nobody uses: --until-idle.  Pure: time is an argument.
 *
 * `cejail session create` starts such a service.  Several sessions in a row, with short pauses,
 * shall use the same one: so it waits before it ends.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define IDLE_PATIENCE_MS 10000

struct idle {
	uint64_t since_ms; /* of the last use; monotonic; 0: there was none */
};

/* Returns the time in ms until the service has been idle for long enough: 0: it has. */
int idle_tick(struct idle *i, bool is_used, uint64_t now_ms);
