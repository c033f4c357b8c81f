/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a probe waits for what should come at once: a limit that only ends what hangs.  The
 * factor is that of the system tests (CEJAIL_TEST_SLOW); in a jail a test has to pass it on.
 */
#pragma once

#include <stdlib.h>

static inline unsigned patience(unsigned seconds)
{
	const char *slow = getenv("CEJAIL_TEST_SLOW");
	double factor = slow ? strtod(slow, NULL) : 1;
	return (unsigned)(seconds * (factor > 1 ? factor : 1));
}
