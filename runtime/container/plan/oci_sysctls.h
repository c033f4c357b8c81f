/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_sysctls - linux.sysctl of config.json: a closed list for each namespace.  Pure.
 */
#pragma once

#include "rootfs/tree/sysctls.h"
#include "runtime/container/config/oci_config.h"

/*
 * oci_sysctls_plan - the parameters in the file's order.
 *
 * Names have dots, or slashes where a component has a dot: sysctl(8).
 * Fails: EINVAL for a parameter of no namespace, of one that the container does not have, and for
 *        another value than that of hostname or domainname.
 */
int oci_sysctls_plan(const struct oci_config *config, struct arena *a, const struct sysctl **out,
		     size_t *out_count, struct cj_error *err);
