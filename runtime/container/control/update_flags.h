/* SPDX-License-Identifier: Apache-2.0 */
/* update_flags - the options of `update` as limits.  Pure. */
#pragma once

#include "runtime/container/config/oci_resources.h"
#include "runtime/container/oci_options.h"

/*
 * update_flags_read - the options that are given, into *out.
 *
 * Sizes may have a unit ("64M"); -1 stands for no limit.  *out_any: at least one is given.
 * Fails: EINVAL, naming the option; for what cgroup v2 does not have, too.
 */
int update_flags_read(const struct oci_options *o, struct oci_resources *out, bool *out_any,
		      struct cj_error *err);
