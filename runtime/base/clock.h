/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock - the time.  Deadlines and durations use CLOCK_MONOTONIC, which is the same for all
 * processes and never jumps; only what a person reads uses the time of day.
 */
#pragma once

#include <sys/time.h>

uint64_t clock_us(void);
uint64_t clock_ms(void);
uint64_t clock_epoch_ms(void); /* the time of day: since 1970, UTC */

static inline uint64_t clock_us_of(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

/* RFC 3339 in UTC, always with milliseconds: "2026-11-23T05:17:21.123Z".  The time may be before
 * 1970. */
#define CLOCK_TEXT_MAX 48
void clock_text(int64_t epoch_ms, char out[static CLOCK_TEXT_MAX]);

/* Moments on clock_ms(); 0: no such moment. */
uint64_t clock_earlier(uint64_t one_ms, uint64_t other_ms);
/* The time until it, for poll(2): at most INT_MAX; -1 if there is no such moment. */
int clock_ms_until(uint64_t at_ms);
