/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zygote_seal - a copy of the zygote that has entered a jail gives up all that a launcher lacks.
 */
#pragma once

#include "runtime/base/error.h"
#include "runtime/jail/zygote/zygote_protocol.h"

/*
 * zygote_seal - become what a launcher is that init has executed, and tell the supervisor.
 *
 * Afterwards this process has no descriptor above 3, no capability, the jail's ids, limits,
 * Landlock ruleset and seccomp filter.  Its signals are as they were.  Cannot be undone.
 * Runs in:  the copy that zygote_enter() made.
 * Fails:    with the name of the step as err->stage.  The copy must end then.
 */
int zygote_seal(const struct zygote_job *job, struct cj_error *err);
