/* SPDX-License-Identifier: Apache-2.0 */
/* verdict - what the main process' end means, by evidence that no process inside can forge. */
#pragma once

#include <stdbool.h>

#include "runtime/jail/outcome.h"
#include "runtime/jail/protocol.h"

struct jail;

/* The jail's cgroup has counted a kill for lack of memory; signal 9 alone shows nothing. */
bool verdict_was_oom_killed(const struct jail *j);

/* Decides *out, unless it is decided, by `wait_status` of waitpid(2) and what init has reaped. */
void verdict_decide(const struct jail *j, const struct ended *ended, int wait_status,
		    struct outcome *out);

/* The same for a run whose init ended without a report: it was killed too, or from outside. */
void verdict_without_init(struct jail *j, const struct ended *ended, struct outcome *out);
