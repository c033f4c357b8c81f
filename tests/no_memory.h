/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_memory - every allocation fails once: the work is done again and again, with the first,
 * the second, ... allocation refused, until it has fewer.  Each time it must fail with ENOMEM
 * and say what it was doing.
 *
 * A test that includes this has the line "WRAP: " NO_MEMORY_WRAPS; what it wraps beyond it
 * adds with NO_MEMORY().  The leak check is the sanitizers'.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"

static unsigned allocations, refused; /* the number of the one that is refused; 0: none */

static inline bool is_refused(void)
{
	bool is_turn = ++allocations == refused;
	if (is_turn)
		errno = ENOMEM;
	return is_turn;
}

#define NO_MEMORY(type, name, params, args, failure)                                               \
	type __real_##name params;                                                                 \
	type __wrap_##name params;                                                                 \
	type __wrap_##name params                                                                  \
	{                                                                                          \
		return is_refused() ? (failure) : __real_##name args;                              \
	}

NO_MEMORY(void *, arena_alloc, (struct arena * a, size_t size), (a, size), NULL)
NO_MEMORY(void *, arena_array, (struct arena * a, size_t count, size_t size), (a, count, size),
	  NULL)
NO_MEMORY(char *, arena_strdup, (struct arena * a, const char *text), (a, text), NULL)
NO_MEMORY(char *, arena_strndup, (struct arena * a, const char *text, size_t size), (a, text, size),
	  NULL)
NO_MEMORY(int, strings_add, (struct strings * list, struct arena *a, const char *text),
	  (list, a, text), -ENOMEM)

char *__wrap_arena_printf(struct arena *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
char *__wrap_arena_printf(struct arena *a, const char *fmt, ...)
{
	char text[8192];
	va_list ap;
	va_start(ap, fmt);
	int size = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	assert_in_range(size, 0, sizeof(text) - 1);
	return is_refused() ? NULL : __real_arena_strdup(a, text);
}

/* `work` begins anew at each call and gives back what it took, also when it fails. */
static inline void fail_each_allocation(int (*work)(void *context, struct cj_error *err),
					void *context)
{
	struct cj_error err;
	for (unsigned turn = 1; turn < 100000; turn++) {
		err = (struct cj_error){ 0 };
		allocations = 0;
		refused = turn;
		int rc = work(context, &err);
		refused = 0;
		if (allocations < turn) {
			if (rc < 0)
				fail_msg("with memory, too: %s", err.msg);
			assert_true(turn > 1);
			return;
		}
		if (rc != -ENOMEM)
			print_error("allocation %u: %d, '%s'\n", turn, rc, err.msg);
		assert_int_equal(rc, -ENOMEM);
		assert_int_equal(err.code, ENOMEM);
		assert_non_null(strstr(err.msg, "Cannot allocate memory"));
	}
	fail_msg("it has no end");
}
