/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call_notes - notes on likely mistakes in a command line: an option after FILE, input that was not
 * read.  Acts: examines standard input, and never reads from it.
 */
#pragma once

#include <stdbool.h>

/*
 * call_notes_has_input - does `fd` have bytes that can be read now?
 *
 * Only pipes and regular files count.  Data of a terminal or a socket may be for another process.
 * A file has data if its offset is before its end.
 */
bool call_notes_has_input(int fd);

/*
 * call_notes_print - print one line for each mistake, after the run.
 *
 * `args`: the program's arguments; NULL after "--", where each argument is the command's.
 * `reads_input`: standard input was passed to the program (-i), or was the code ('-').
 */
void call_notes_print(const char *const *args, bool reads_input);
