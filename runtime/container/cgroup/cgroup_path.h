/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup_path - linux.cgroupsPath of a config.json: a path in the hierarchy, or the names of a
 * systemd scope.  No system calls.
 */
#pragma once

#include "runtime/base/error.h"
#include "runtime/kernel/cgroup/cgroup_text.h"

/*
 * cgroup_path_clean - the path without empty components and "."; absolute stays absolute.
 *
 * Fails: EINVAL for "..", for the root itself, for "slice:prefix:name", and for a path that is too
 *        long.
 */
int cgroup_path_clean(const char *path, char out[static CGROUP_PATH_MAX], struct cj_error *err);

#define CGROUP_UNIT_MAX 256 /* systemd.unit(5), with a NUL */

struct cgroup_scope_name {
	char slice[CGROUP_UNIT_MAX]; /* "machine.slice"; "": systemd's default */
	char unit[CGROUP_UNIT_MAX];  /* "PREFIX-NAME.scope" */
};

/*
 * cgroup_path_scope - the scope that "slice:prefix:name" names.  Slice and prefix may be empty.
 * Without a path (NULL or ""): "cejail-oci-ID.scope" in the default slice.
 *
 * Fails: EINVAL for another form, and for names that systemd.unit(5) does not allow.
 */
int cgroup_path_scope(const char *path, const char *id, struct cgroup_scope_name *out,
		      struct cj_error *err);
