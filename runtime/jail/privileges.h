/* SPDX-License-Identifier: Apache-2.0 */
/*
 * privileges - everything init gives up, in order.  Each applies to the calling
 * process and cannot be undone.  Runs in init.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "runtime/base/error.h"

int privileges_join_keyring(struct cj_error *err); /* an anonymous session keyring: keyrings(7) */
int privileges_become(uid_t uid, gid_t gid, bool may_setgroups,
		      struct cj_error *err); /* ids inside; capabilities stay */
int privileges_no_user_namespaces(
    struct cj_error *err);                   /* user.max_user_namespaces = 0: namespaces(7) */
int privileges_no_new(struct cj_error *err); /* prctl(2) PR_SET_NO_NEW_PRIVS */
/*
 * No capability in any set (bounding, inheritable, permitted, effective, ambient), securebits
 * locked, not dumpable; read back and compared: an error if anything is left.  capabilities(7)
 */
int privileges_drop(struct cj_error *err);
