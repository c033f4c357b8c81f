/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rate - limits how often something is done: a burst at once, then a number per millisecond.  Pure:
 * the caller reads the clock, and only when nothing is left.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define RATE_PAUSE_MS 10 /* a pause is at least so long, so that pauses cost little */

struct rate {
	unsigned per_ms, burst;
	unsigned left;     /* so many may be done now */
	uint64_t since_ms; /* from here on time earns more */
};

void rate_init(struct rate *r, unsigned per_ms, unsigned burst, uint64_t now_ms);

/* Something of this price was done. */
void rate_take(struct rate *r, unsigned price);

/* With nothing left: adds what the time has earned, after a pause.  Is something left? */
bool rate_refill(struct rate *r, uint64_t now_ms);

/* The end of the pause, on clock_ms(); 0: something is left. */
uint64_t rate_paused_until_ms(const struct rate *r);
