/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this project does not use.  Given to the compiler with -include, after
 * the system headers that declare these names: it says no, not the reviewer.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* macros of <stdio.h> when clang fortifies, and a macro can't be poisoned */
#undef sprintf
#undef vsprintf

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf gets
#pragma GCC poison atoi atol atoll strtok tmpnam mktemp
#pragma GCC poison system popen
