/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notes - how a run ended, for a person: one line on stderr for each thing worth
 * knowing, naming the option that would change it; nothing when all went well.
 */
#pragma once

#include "runtime/jail/outcome.h"

/*
 * notes_follow_output - the program's output went to our own stdout and stderr.
 *
 * If it left a line unfinished on stderr, the first line of ours, should there be one, begins on a
 * fresh one.  Before notes_print().
 */
void notes_follow_output(const struct outcome *o);

void notes_print(const struct outcome *o);
