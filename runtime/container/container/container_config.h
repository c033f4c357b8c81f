/* SPDX-License-Identifier: Apache-2.0 */
/* container_config - the configuration of a container: the bundle's, and the copy in its state. */
#pragma once

#include "runtime/container/config/oci_config.h"
#include "runtime/container/state/state.h"

struct container_bundle {
	const char *path;   /* absolute */
	const char *rootfs; /* absolute */
	const char *text;   /* of config.json */
	size_t size;
	struct oci_config config;
};

/* Reads o->bundle, or the working directory.  Everything lives in `a`. */
int container_config_bundle(const struct oci_options *o, struct arena *a,
			    struct container_bundle *out, struct cj_error *err);

/* What create read: later verbs never look at the bundle, which may have changed. */
int container_config_stored(const struct state *s, struct arena *a, struct oci_config *out,
			    struct cj_error *err);
