/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_fixes - known vulnerabilities that this kernel has, by its version number.  Pure.
 *
 * The table has vulnerabilities that the program in a jail, or any user who may create a user
 * namespace, can exploit, and the releases of kernel.org that fixed them.  The check works only for
 * version numbers that count these releases: "6.1.20", or Debian's "Debian 6.1.140-1".  A number
 * such as "5.15.0-91-generic" does not tell which fixes the distribution added.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum fixes_verdict {
	FIXES_ALL,     /* this kernel has all fixes of the table */
	FIXES_LACKING, /* `out` has the missing ones, and the releases with the fix */
	FIXES_UNKNOWN  /* the version number is the distribution's */
};

/* `release` and `version` as uname(2) has them. */
enum fixes_verdict fixes_check(const char *release, const char *version, char *out, size_t size);
