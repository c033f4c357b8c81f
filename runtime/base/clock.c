/* SPDX-License-Identifier: Apache-2.0 */
/* Now.  Acts: reads the clock. */
#include "runtime/base/clock.h"

#include <time.h>

uint64_t clock_us(void)
{
	struct timespec now = { 0 };
	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

uint64_t clock_ms(void)
{
	return clock_us() / 1000;
}

uint64_t clock_epoch_ms(void)
{
	struct timespec now = { 0 };
	(void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}
