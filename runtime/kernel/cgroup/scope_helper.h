/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope_helper - a delegated cgroup from systemd: a transient scope that this process is moved
 * into.
 *
 * The call is made by a helper of ours (libexec_run.h), because it loads libsystemd.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "runtime/base/error.h"

/* Is there a user manager?  Only looks for its sockets. */
bool scope_helper_is_there(void);

/*
 * scope_helper_enter - ask the user's manager for "cejail-ID.scope" with Delegate=yes around this
 * process, unless the manager says that the unit we are in is delegated already (it leaves no mark
 * on the cgroup).
 *
 * The scope ends with its last process.
 * Fails: ENOENT without the helper, a user manager or libsystemd.so.0; what the manager
 * answers; ETIMEDOUT after a few seconds.
 */
int scope_helper_enter(const char *id, struct cj_error *err);

/* A scope for a container: of the system's manager, or of the user's. */
struct container_scope {
	bool is_system;
	const char *unit;  /* "NAME.scope" */
	const char *slice; /* "NAME.slice" */
};

/* Starts it with Delegate=yes around this process.  Fails as scope_helper_enter(). */
int scope_helper_start(const struct container_scope *scope, struct cj_error *err);

/* Moves a process into the child "/NAME" of the scope, where only the manager may. */
int scope_helper_attach(const struct container_scope *scope, const char *child, pid_t pid,
			struct cj_error *err);

/* Ends it with all that is in it. */
int scope_helper_stop(const struct container_scope *scope, struct cj_error *err);
