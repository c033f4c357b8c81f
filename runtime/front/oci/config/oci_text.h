/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_text - what the verbs `spec` and `features` print.  Pure.
 */
#pragma once

#include "runtime/base/json/json.h"

#define OCI_VERSION_MIN "1.0.0"
#define OCI_VERSION_MAX "1.2.1"

/*
 * oci_spec_write - a config.json to start from: a shell in `rootfs`, new namespaces, the mounts and
 * masked paths that engines use.  Rootless: with a user namespace that maps `uid` and `gid` to root, no
 * network namespace and no resources.
 */
struct oci_spec_options {
	bool is_rootless;
	uint32_t uid, gid; /* of the caller; used when rootless */
};
void oci_spec_write(struct json_writer *w, const struct oci_spec_options *options);

/* oci_features_write - the features object of the specification (features.md). */
struct oci_host_features {
	bool has_idmap;    /* mount_setattr(2) with MOUNT_ATTR_IDMAP works */
	bool has_apparmor; /* the kernel has it, and it is on */
	bool has_cgroup_v1, has_cgroup_v2, has_systemd;
};
void oci_features_write(struct json_writer *w, const struct oci_host_features *host);
