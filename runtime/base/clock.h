/* SPDX-License-Identifier: Apache-2.0 */
/* clock - CLOCK_MONOTONIC, the same for all processes: what every deadline and duration is of. */
#pragma once

#include <stdint.h>

uint64_t clock_us(void);
uint64_t clock_ms(void);
