/* SPDX-License-Identifier: Apache-2.0 */
/*
 * patience - how long a test waits before it gives up.
 *
 * No test asserts a time.  A limit only ends what hangs, so it grows with the machine:
 * CEJAIL_TEST_SLOW is the factor that tests/check measured.  Unset, it is 1.
 */
#pragma once

#include <limits.h>

static inline double patience_factor(void)
{
	static double factor;
	if (factor < 1) {
		const char *text = getenv("CEJAIL_TEST_SLOW");
		const double given = text ? strtod(text, NULL) : 1;
		factor = given > 1 ? given : 1;
	}
	return factor;
}

static inline int patience_ms(int ms)
{
	const double scaled = ms * patience_factor();
	return scaled < INT_MAX ? (int)scaled : INT_MAX;
}

static inline unsigned patience_s(unsigned s)
{
	const double scaled = s * patience_factor();
	return scaled < INT_MAX ? (unsigned)scaled : INT_MAX;
}
