/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operands - likely mistakes in what follows the options of `cejail run`: a FILE that is not a
 * file, an option after FILE, input that was not read.  Looks at the host, and changes nothing.
 */
#pragma once

#include "runtime/run/options/options.h"

/* Is `path` a regular file of this host?  Follows links. */
bool operands_is_file(const char *path);

/* A command below the places of this host that a jail without --rootfs shows. */
bool operands_is_command(const char *word);

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

/*
 * operands_has_input - whether `fd` has bytes that can be read now.
 *
 * Only pipes and regular files count.  Data of a terminal or a socket may be for another process.
 * A file has data if its offset is before its end.
 */
bool operands_has_input(int fd);

/*
 * operands_print_notes - print one line for each mistake, after the run.
 *
 * `args`: the program's arguments; NULL after "--", where each argument is the command's.
 * `reads_input`: standard input was passed to the program (-i), or was the code ('-').
 */
void operands_print_notes(const char *const *args, bool reads_input);
