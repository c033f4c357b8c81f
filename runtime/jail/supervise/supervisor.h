/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor - watches a running program until its end. */
#pragma once

#include "runtime/base/error.h"
#include "runtime/jail/outcome.h"

struct jail;

/* Watches until the outcome has a status, kills everything, gathers the evidence. */
int supervisor_watch(struct jail *j, struct outcome *out, struct cj_error *err);
