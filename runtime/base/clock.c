/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/clock.h"

#include <limits.h>
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

void clock_text(int64_t epoch_ms, char out[static CLOCK_TEXT_MAX])
{
	const int64_t ms = (epoch_ms % 1000 + 1000) % 1000;
	const time_t seconds = (epoch_ms - ms) / 1000;
	struct tm utc = { 0 };

	(void)gmtime_r(&seconds, &utc);
	const size_t used = strftime(out, CLOCK_TEXT_MAX, "%Y-%m-%dT%H:%M:%S", &utc);
	(void)snprintf(out + used, CLOCK_TEXT_MAX - used, ".%03dZ", (int)ms);
}

uint64_t clock_earlier(uint64_t one_ms, uint64_t other_ms)
{
	if (one_ms == 0 || other_ms == 0)
		return one_ms | other_ms;
	return one_ms < other_ms ? one_ms : other_ms;
}

int clock_ms_until(uint64_t at_ms)
{
	uint64_t now_ms = clock_ms();
	if (at_ms == 0)
		return -1;
	uint64_t left_ms = at_ms > now_ms ? at_ms - now_ms : 0;
	return left_ms < INT_MAX ? (int)left_ms : INT_MAX;
}
