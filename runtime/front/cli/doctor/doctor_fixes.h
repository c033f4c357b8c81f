/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_fixes - which known holes of Linux a kernel's number says are open.  Pure.
 *
 * The table has holes that a jail's program, or whoever may make a user namespace, can reach, and
 * the releases of kernel.org that closed them.  A number says something only where it counts those
 * releases: "6.1.20", or Debian's "Debian 6.1.140-1" in the version.  "5.15.0-91-generic" says
 * nothing of what its distribution put in.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum fixes_verdict {
	FIXES_ALL,     /* none of the table is open */
	FIXES_LACKING, /* `out` names those that are, and what closed them */
	FIXES_UNKNOWN  /* the number is the distribution's */
};

/* `release` and `version` as uname(2) has them. */
enum fixes_verdict fixes_check(const char *release, const char *version, char *out, size_t size);
