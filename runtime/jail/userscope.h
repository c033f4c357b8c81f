/* SPDX-License-Identifier: Apache-2.0 */
/*
 * userscope - a delegated cgroup from the user's own systemd: a transient scope that
 * this process is moved into.  org.freedesktop.systemd1(5), StartTransientUnit.
 *
 * libsystemd is loaded only when this is asked for; the launcher doesn't link it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/error.h"

/* Is there a user manager to ask?  Looks for its sockets, talks to nobody. */
bool userscope_is_there(void);

/*
 * userscope_enter - ask for "cejail-ID.scope" with Delegate=yes around this process and wait
 * (at most 2 s) until we are in it.
 *
 * The scope ends with its last process.
 * Fails: ENOENT without a user manager or libsystemd.so.0; what the manager answers; ETIMEDOUT.
 */
int userscope_enter(const char *id, struct cj_error *err);
