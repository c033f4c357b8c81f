/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jail_record - the stages of the record, which names what remains when a supervisor is killed.
 *
 * The record is written before the cgroup is made and removed after it, so a sweep finds every
 * cgroup, at whatever step its supervisor was killed.  It is completed as soon as the cgroup's
 * inode number and init's pid are known, while init has work of its own.
 */
#pragma once

#include <stdbool.h>

#include "runtime/base/error.h"

struct jail;

int jail_record_directory_enter(struct jail *j, struct cj_error *err);
void jail_record_directory_leave(struct jail *j);

/* Without a runtime directory there is no record: jail_record_directory_enter() has warned. */
bool jail_record_is_wanted(const struct jail *j);
int jail_record_enter(struct jail *j, struct cj_error *err);
void jail_record_leave(struct jail *j);
int jail_record_complete_enter(struct jail *j, struct cj_error *err);
int jail_record_sweep_enter(struct jail *j, struct cj_error *err);

/* A jail that was prepared ahead has its program now: 'cejail ps' shows it as running. */
void jail_record_started(struct jail *j);
