/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock - the time.  Deadlines and durations use CLOCK_MONOTONIC, which is the same for all
 * processes and never jumps; only what a person reads uses the time of day.
 */
#pragma once

#include <stdint.h>

uint64_t clock_us(void);
uint64_t clock_ms(void);
uint64_t clock_epoch_ms(void); /* the time of day: since 1970, UTC */
