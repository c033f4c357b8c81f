/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter_calls - what is said about single system calls: which are reported, which
 * init needs, and the numbers of those libseccomp is too old to know.  Tables; pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CALLS_MAX 1024 /* numbers of native calls are below; today's end at 471 */

/* A call whose refusal is told: rare in programs that mean well, telling in others. */
struct call_told {
	const char *name;
	int nr;
};
extern const struct call_told calls_told[];
extern const size_t calls_told_count;

const char *call_told_name(int nr); /* NULL: not told */

/* A call init makes between the seal and the end, with the arguments a filter may look at. */
struct call_needed {
	const char *name;
	int nr;
	uint64_t args[6];
};
extern const struct call_needed calls_needed[];
extern const size_t calls_needed_count;

/* Does the kernel look only at the low 32 bits of this argument? */
bool call_arg_is_int(int nr, unsigned index);

/* A call newer than libseccomp 2.5.4: its number, the same everywhere; -1: not one. */
int call_newer(const char *name);
