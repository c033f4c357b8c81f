/* SPDX-License-Identifier: Apache-2.0 */
/* explain - adds an error message to an outcome.  Pure. */
#pragma once

#include "runtime/jail/outcome.h"

/* The jail was built, but the command could not be executed (o->exec_errno): sets o->error, with
 * the stage "exec". */
void explain_exec_failure(struct outcome *o, const char *command);
