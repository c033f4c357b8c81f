/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope_helper - a delegated cgroup from systemd: a transient scope that this process is moved
 * into.
 *
 * The call is made by a helper of ours (libexec.h), because it loads libsystemd.
 */
#pragma once

#include "runtime/base/error.h"

/* Where a manager listens. */
struct scope_address {
	char text[300]; /* D-Bus server address; "": not there */
	bool is_bus;    /* the address is a bus daemon's, not the manager's own */
};
#define SCOPE_ADDRESSES 3 /* in the order in which to try them */
struct scope_address scope_helper_address(bool is_system, size_t i);

/*
 * Is there a manager?  Connects to none: of the user's it looks for the sockets; whether the
 * system's is a systemd, it sees as sd_booted(3) does.
 */
bool scope_helper_is_there(bool is_system);

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
