/* SPDX-License-Identifier: Apache-2.0 */
/* session_init - init of a session: forks a reaper for each exec. */
#pragma once

#include "runtime/base/error.h"

struct jail;

/*
 * After STEP_SESSION, in sealed init: serves STEP_EXEC until the keeper ends.
 * Returns in init only on failure; a reaper never returns.
 */
int session_init_serve(struct jail *j, struct cj_error *err);
