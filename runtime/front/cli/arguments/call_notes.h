/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call_notes - how the call may not have meant what it said: an option behind FILE, input that
 * was offered and not read.  Acts: looks at standard input, and never reads from it.
 */
#pragma once

#include <stdbool.h>

/*
 * call_notes_has_input - does `fd` have bytes that can be read now?
 *
 * Only a pipe and a regular file are asked: what a terminal or a socket has is somebody else's
 * conversation.  A file counts from its offset on.
 */
bool call_notes_has_input(int fd);

/*
 * call_notes_print - one line each, after the run.
 * args: the program's, NULL: a command's, which begin behind "--".  reads_input: -i, or the code.
 */
void call_notes_print(const char *const *args, bool reads_input);
