/* SPDX-License-Identifier: Apache-2.0 */
/* intake - sealed init receives the inputs and the program, and starts it. */
#pragma once

#include <sys/types.h>

#include "runtime/base/error.h"

struct jail;

/* Instead of a pid: STEP_SESSION came, which init.serve carries out.  It is init's own pid. */
#define INTAKE_SESSION 1

/* Returns the pid of the main process; 0 when the program could not be executed; INTAKE_SESSION. */
pid_t intake_program(struct jail *j, struct cj_error *err);
