/* SPDX-License-Identifier: Apache-2.0 */
/* oci_show - the verbs that need no container: features, spec.  oci_show.json has their texts. */
#pragma once

#include "runtime/base/json/json.h"
#include "runtime/container/call/oci_log.h"

/* On standard output. */
oci_verb oci_show_features;

/* "config.json" in the bundle.  Fails: EEXIST, and leaves the file that is there as it is. */
oci_verb oci_show_spec;

/* Rootless: a user namespace, in which uid and gid of the caller are root. */
struct oci_show_caller {
	bool is_rootless;
	uint32_t uid, gid; /* read when rootless */
};

/*
 * oci_show_write - what the verb "features" or "spec" writes, as one value.  Fails: ENOMEM.
 *
 * The former is the object of features.md and features-linux.md: what this runtime supports, on any
 * host.  The latter is a shell in "rootfs", to be edited: oci_config_read() takes it.
 */
int oci_show_write(struct json_writer *w, const char *verb, const struct oci_show_caller *caller,
		   struct cj_error *err);
