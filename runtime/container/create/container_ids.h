/* SPDX-License-Identifier: Apache-2.0 */
/* container_ids - the id maps of a container's new user namespace. */
#pragma once

#include <sys/types.h>

#include "runtime/base/error.h"
#include "runtime/container/config/oci_linux.h"

/*
 * container_ids_write - write uid_map, setgroups and gid_map of process `pid`.
 *
 * An ordinary user may map one id, its own, and the kernel then wants setgroups(2) denied, so that
 * no process drops a group that restricts it (CVE-2014-8989).
 * Fails: EINVAL without maps; EPERM with the remedy.  Follows: user_namespaces(7).
 */
int container_ids_write(const struct oci_linux *config, pid_t pid, struct cj_error *err);
