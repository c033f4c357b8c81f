/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prelude - what each source has before its first line: given to the compiler with -include.
 *
 * No other file includes these system headers.
 *
 * What this project does not use is poisoned, after the system headers that declare these names:
 * the compiler says no, not the reviewer.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* The items of an array, not of a pointer. */
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* A parameter that not each function with such a head needs. */
#define MAYBE_UNUSED __attribute__((unused))

/* macros of <stdio.h> when clang fortifies, and a macro can't be poisoned */
#undef sprintf
#undef vsprintf

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf gets
#pragma GCC poison atoi atol atoll strtok tmpnam mktemp
#pragma GCC poison system popen
