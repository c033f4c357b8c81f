/* SPDX-License-Identifier: Apache-2.0 */
/* jail_cgroup - the stages of the jail's cgroup: found first, made after its record is written. */
#pragma once

#include "runtime/base/error.h"

struct jail;

int jail_cgroup_find_enter(struct jail *j, struct cj_error *err);
int jail_cgroup_enter(struct jail *j, struct cj_error *err);
void jail_cgroup_leave(struct jail *j);
