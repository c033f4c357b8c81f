/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operands - explains a FILE on the command line of `cejail run` that is not a file.
 *
 * Acts: examines the file system; changes nothing.
 */
#pragma once

#include <stdbool.h>

#include "runtime/run/options/options.h"

/* Is `path` a regular file of this host?  Follows links. */
bool operands_is_file(const char *path);

/*
 * operands_explain - recognise a FILE that is a volume or an image of docker, the second path of
 * bwrap, or a command without "--".
 *
 * Returns: 0 for any other FILE; else a negative errno, with the mistake and the remedy in *err.
 */
int operands_explain(const struct options *o, struct cj_error *err);

/*
 * operands_stray - the first of the program's arguments that looks like an option of cejail; NULL:
 * none.  Arguments after a "--" do not count.
 */
const char *operands_stray(const char *const *args);
