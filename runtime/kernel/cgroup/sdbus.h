/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sdbus - the functions of libsystemd's sd-bus(3) that we call, loaded with dlopen(3) when they are
 * needed: libsystemd loads half a dozen other libraries.
 */
#pragma once

#include <stdint.h>

#include "runtime/base/error.h"

struct sd_bus;

struct sdbus_error { /* sd_bus_error: sd_bus_error_free(3) */
	const char *name, *message;
	int need_free;
};

/* Each member is the function of that name after "sd_bus_", with its own page. */
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
