/* SPDX-License-Identifier: Apache-2.0 */
/* handover - sends the inputs and the program to a sealed init. */
#pragma once

#include "runtime/base/error.h"
#include "runtime/jail/protocol.h"

struct jail;
struct program;

/* Sends the code, the arguments file and the copied files. */
int handover_inputs(struct jail *j, struct cj_error *err);

/* `step`: STEP_START for the program, STEP_WARM for a launcher. */
int handover_start(struct jail *j, enum step step, const struct program *p, const int stdio[3],
		   struct cj_error *err);

/* Sends the program to the waiting launcher.  Fails: EINVAL when its command does not match. */
int handover_go(struct jail *j, struct cj_error *err);
