/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idle - the end of a service that nobody uses: --until-idle.  Pure: time is an argument.
 *
 * `cejail session create` starts such a service.  Several sessions in a row, with short pauses,
 * shall use the same one: so it waits before it ends.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IDLE_PATIENCE_MS 10000

/* What a service has to do at the moment. */
struct idle_uses {
	size_t runs, own_runs; /* all, and those of them that probe: a probe is no use */
	size_t requests;       /* whose replies are not sent yet */
	size_t sessions;       /* that live, with or without an exec */
};
bool idle_is_used(const struct idle_uses *u);

struct idle {
	uint64_t since_ms; /* of the last use; monotonic; 0: there was none */
};

/* Returns the time in ms until the service has been idle for long enough: 0: it has. */
int idle_tick(struct idle *i, bool is_used, uint64_t now_ms);
