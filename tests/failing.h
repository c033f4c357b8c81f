/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failing - calls that fail in their turn.  Those that a test wraps ("WRAP: ", FAILS()) are
 * counted while it is armed, and one of them fails instead of being made.
 */
#pragma once

static bool is_armed;
static int fail_at;                          /* the call that fails, from 1; 0: none */
static int calls_here, *calls = &calls_here; /* counted; elsewhere for those of a child */
static bool (*is_counted)(void);             /* NULL: every call counts */
static void (*on_failure)(void);             /* called when it is the turn of a call; or NULL */

/* Counts a call; true: it is to fail, and errno says why. */
static inline bool is_next(int code)
{
	if (!is_armed || (is_counted && !is_counted()) || ++*calls != fail_at)
		return false;
	if (on_failure)
		on_failure();
	errno = code;
	return true;
}

#define FAILS(type, name, parameters, arguments, failure, code)                                    \
	type __real_##name parameters;                                                             \
	type __wrap_##name parameters;                                                             \
	type __wrap_##name parameters                                                              \
	{                                                                                          \
		return is_next(code) ? (failure) : __real_##name arguments;                        \
	}
