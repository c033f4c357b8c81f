/* SPDX-License-Identifier: Apache-2.0 */
/* explain - what an outcome alone does not say.  Pure. */
#pragma once

#include "runtime/jail/outcome.h"

/* The jail was built and is right, the command is not: an error of the stage "exec".
 * `o` has an exec_errno. */
void explain_exec_failure(struct outcome *o, const char *command);
