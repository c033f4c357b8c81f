/* SPDX-License-Identifier: Apache-2.0 */
/* jail_assess - the last stage: which layers and limits are in force, and is --strict satisfied? */
#pragma once

#include "runtime/base/error.h"

struct jail;

/* Fails: EINVAL when the plan is strict and a layer or a limit is degraded. */
int jail_assess_enter(struct jail *j, struct cj_error *err);

/* Is the packet filter in force?  Called again when the network has been built later. */
void jail_assess_network(struct jail *j);
