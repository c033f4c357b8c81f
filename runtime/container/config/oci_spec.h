/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_spec - the config.json that the verb `spec` writes: a shell in "rootfs", to be edited.  Pure.
 */
#pragma once

#include <stdint.h>

#include "runtime/base/json/json.h"

/* Rootless: a user namespace, in which uid and gid of the caller are root. */
struct oci_spec_caller {
	bool is_rootless;
	uint32_t uid, gid; /* read when rootless */
};

/* One value.  oci_config_read() takes it. */
void oci_spec_write(struct json_writer *w, const struct oci_spec_caller *caller);
