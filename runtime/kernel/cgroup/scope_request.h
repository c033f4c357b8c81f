/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope_request - ask a systemd for a transient scope around a process:
 * org.freedesktop.systemd1(5), StartTransientUnit.  The engine reaches it through scope_helper.h.
 */
#pragma once

#include "runtime/base/error.h"

struct scope_request {
	bool is_system;           /* of the system's manager, else of the user's */
	bool keeps_delegated;     /* nothing to do in a unit of the manager's that is delegated */
	bool has_slice;           /* for a container: in this slice, without a limit of tasks */
	const char *unit, *slice; /* "NAME.scope", "NAME.slice" */
	const char *child;        /* scope_request_attach(): "/NAME" in the scope */
	pid_t pid;
};

/*
 * scope_request_start - ask for the scope with Delegate=yes around `pid` and wait (at most 25 s)
 * until it is in it.  With keeps_delegated, a unit of the manager's that is delegated already is
 * kept: a service would end if its main process left it.
 *
 * The scope ends with its last process.
 * Fails: ENOENT without a manager or libsystemd.so.0; what the manager answers; ETIMEDOUT.
 */
int scope_request_start(const struct scope_request *request, struct cj_error *err);

/* Moves `pid` into the child of a scope that exists: AttachProcessesToUnit. */
int scope_request_attach(const struct scope_request *request, struct cj_error *err);

/* Stops a scope that no process ends: StopUnit.  Kills what is in it. */
int scope_request_stop(const struct scope_request *request, struct cj_error *err);

/* --- libsystemd ------------------------------------------------------------------------------ */

struct sd_bus;

struct sdbus_error { /* sd_bus_error: sd_bus_error_free(3) */
	const char *name, *message;
	int need_free;
};

/*
 * The functions of sd-bus(3) that we call, loaded with dlopen(3) when they are needed: libsystemd
 * loads half a dozen other libraries.  Each member is the function of that
 * name after "sd_bus_", with its own page.
 */
struct sdbus {
	int (*new)(struct sd_bus **);
	int (*set_address)(struct sd_bus *, const char *);
	int (*set_bus_client)(struct sd_bus *, int);
	int (*set_method_call_timeout)(struct sd_bus *, uint64_t);
	int (*start)(struct sd_bus *);
	int (*is_ready)(struct sd_bus *);
	int (*process)(struct sd_bus *, void **);
	int (*wait)(struct sd_bus *, uint64_t);
	int (*call_method)(struct sd_bus *, const char *, const char *, const char *, const char *,
			   struct sdbus_error *, void **, const char *, ...);
	int (*get_property_trivial)(struct sd_bus *, const char *, const char *, const char *,
				    const char *, struct sdbus_error *, char, void *);
	void (*error_free)(struct sdbus_error *);
	struct sd_bus *(*flush_close_unref)(struct sd_bus *);
};

/* ENOENT: there is no libsystemd.so.0, or one without a function we call. */
int sdbus_load(struct sdbus *out, struct cj_error *err);
