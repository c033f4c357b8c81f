/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict - the one line in which a probe says how its attempt went:
 *
 *	NAME HELD (why)         isolation refused the attempt
 *	NAME ESCAPED (what)     the attempt succeeded: outside of a jail it must
 *
 * If a limit of the jail kills a probe first, the attempt was refused, too; the harness sees that.
 */
#pragma once

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct verdict_row {
	const char *name;
	void (*attempt)(const char *name, long wanted);
};

static inline void __attribute__((format(printf, 3, 4)))
verdict(const char *name, const char *word, const char *fmt, ...)
{
	va_list ap;
	printf("%s %s (", name, word);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	puts(")");
	fflush(stdout);
}

/* What was refused, after how much: `got` of `wanted`. */
static inline void held_at(const char *name, long got, long wanted)
{
	verdict(name, "HELD", "%ld of %ld, then %s", got, wanted, strerrorname_np(errno));
}

/* PROBE NAME [WANTED]: makes that one attempt. */
static inline int make_attempt(const struct verdict_row *rows, size_t count, char **args)
{
	for (size_t i = 0; args[1] && i < count; i++) {
		if (strcmp(rows[i].name, args[1]) == 0) {
			rows[i].attempt(rows[i].name, args[2] ? atol(args[2]) : 0);
			return 0;
		}
	}
	fprintf(stderr, "%s: unknown attempt '%s'\n", args[0], args[1] ? args[1] : "");
	return 2;
}
