/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notes - how a run ended, for a person: one line on stderr for each thing worth
 * knowing, naming the option that would change it; nothing when all went well.
 */
#pragma once

#include "profiles/plan.h"
#include "runtime/jail/outcome.h"

void notes_print(const struct outcome *o, const struct plan *plan);
