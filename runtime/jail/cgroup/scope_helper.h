/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope_helper - a delegated cgroup from the user's own systemd: a transient scope that
 * this process is moved into.
 *
 * The call is made by a helper of ours (libexec_run.h), because it loads libsystemd.
 */
#pragma once

#include <stdbool.h>

#include "runtime/base/error.h"

/* Is there a user manager?  Only looks for its sockets. */
bool scope_helper_is_there(void);

/*
 * scope_helper_enter - ask for "cejail-ID.scope" with Delegate=yes around this process, unless the
 * manager says that the unit we are in is delegated already (it leaves no mark on the cgroup).
 *
 * The scope ends with its last process.
 * Fails: ENOENT without the helper, a user manager or libsystemd.so.0; what the manager
 * answers; ETIMEDOUT after a few seconds.
 */
int scope_helper_enter(const char *id, struct cj_error *err);
