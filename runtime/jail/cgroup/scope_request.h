/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope_request - ask the user's systemd for a transient scope around a process:
 * org.freedesktop.systemd1(5), StartTransientUnit.  The engine reaches it through scope_helper.h.
 */
#pragma once

#include <sys/types.h>

#include "runtime/base/error.h"

/*
 * scope_request_enter - ask for "cejail-ID.scope" with Delegate=yes around `pid` and wait (at most
 * 2 s) until it is in it.  A unit of the manager's that is delegated already is kept: a service
 * would end if its main process left it.
 *
 * The scope ends with its last process.
 * Fails: ENOENT without a user manager or libsystemd.so.0; what the manager answers; ETIMEDOUT.
 */
int scope_request_enter(const char *id, pid_t pid, struct cj_error *err);
