/* SPDX-License-Identifier: Apache-2.0 */
/*
 * id_namespace - a user namespace that only serves as a map, for an ID-mapped mount.
 */
#pragma once

#include "runtime/base/error.h"

/*
 * id_namespace_open - a new user namespace with these maps; user_namespaces(7) has their form.
 *
 * Runs in:  a process that may write such maps; makes a child, and waits for its end.
 * Returns:  a descriptor that keeps the namespace, the caller's to close.
 * Follows:  mount_setattr(2), MOUNT_ATTR_IDMAP.
 */
int id_namespace_open(const char *uid_map, const char *gid_map, struct cj_error *err);
