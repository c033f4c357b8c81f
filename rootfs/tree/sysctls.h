/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sysctls - kernel parameters of the namespaces that this process is in.  Acts.
 *
 * They are written through a procfs of our own that is attached nowhere, so that no mount below
 * a container's /proc can redirect a write.  proc(5)
 */
#pragma once

#include <stddef.h>

#include "runtime/base/error.h"

struct sysctl {
	const char *name; /* with dots: "net.ipv4.ip_forward"; checked by the plan */
	const char *path; /* below /proc/sys: "net/ipv4/ip_forward" */
	const char *value;
};

/*
 * sysctls_write - write all, in order.
 *
 * Runs in:  the container's init, in the namespaces that the parameters belong to, with
 *           capabilities over them, before pivot_root(2).
 */
int sysctls_write(const struct sysctl *items, size_t count, struct cj_error *err);
