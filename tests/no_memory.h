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

#include <cmocka.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "tests/failing.h"

#define NO_MEMORY(type, name, params, args, failure)                                               \
	FAILS(type, name, params, args, failure, ENOMEM)

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
	return is_next(ENOMEM) ? NULL : __real_arena_strdup(a, text);
}

/* `work` begins anew at each call and gives back what it took, also when it fails. */
static inline void fail_each_allocation(int (*work)(void *context, struct cj_error *err),
					void *context)
{
	struct cj_error err;
	for (fail_at = 1; fail_at < 100000; fail_at++) {
		err = (struct cj_error){ 0 };
		*calls = 0;
		is_armed = true;
		int rc = work(context, &err);
		is_armed = false;
		if (*calls < fail_at) {
			if (rc < 0)
				fail_msg("with memory, too: %s", err.msg);
			assert_true(fail_at > 1);
			return;
		}
		if (rc != -ENOMEM)
			print_error("allocation %d: %d, '%s'\n", fail_at, rc, err.msg);
		assert_int_equal(rc, -ENOMEM);
		assert_int_equal(err.code, ENOMEM);
		assert_non_null(strstr(err.msg, "Cannot allocate memory"));
	}
	fail_msg("it has no end");
}
