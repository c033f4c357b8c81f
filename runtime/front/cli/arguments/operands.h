/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operands - what stands in FILE's place on the command line of `cejail run`, when it is no file.
 *
 * Acts: asks the file system what is there; changes nothing.
 */
#pragma once

#include <stdbool.h>

#include "runtime/front/cli/arguments/options.h"

/* Is `path` a regular file here, links followed? */
bool operands_is_file(const char *path);

/*
 * operands_explain - the remedy for a FILE that can't be run: docker's volume or image, bwrap's
 * two words, a command without "--".
 *
 * Returns: 0 where there is none, else a negative errno with *err filled.
 */
int operands_explain(const struct options *o, struct cj_error *err);

/*
 * operands_stray - the first argument of the program that is spelt like an option of ours; NULL:
 * none.  What follows a "--" among the arguments is the program's beyond doubt.
 */
const char *operands_stray(const char *const *args);
