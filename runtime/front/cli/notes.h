/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notes - the messages on stderr after a run: why it ended, limits that it reached, what was
 * denied.  A message names the option that would change it.  A run that simply exits has none.
 */
#pragma once

#include "runtime/jail/outcome.h"

/*
 * notes_follow_output - call this before notes_print() if the program wrote to our stdout and
 * stderr.
 *
 * If the program's last line on stderr has no newline, our first message starts with one.
 */
void notes_follow_output(const struct outcome *o);

/* Warns of nothing that the host lacks and `accepted` names: --accept-weaker. */
void notes_print(const struct outcome *o, const struct strings *accepted);
