/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_spawn - makes the container's init, in new namespaces and in those joined by path.
 *
 * Without a path, one clone3(2) makes all.  With one, an intermediate process joins what is joined,
 * and clones init as our child (CLONE_PARENT): our own namespaces stay the runtime's, for hooks.
 * The cgroup and the time namespace are init's to make: container_init.h.
 */
#pragma once

#include "runtime/base/error.h"

struct creation;

/*
 * container_spawn - sets c->init_pid and c->init_pidfd.  Init runs container_init_main().
 *
 * A user namespace is joined when what needs the caller's own rights has been: a network that
 * podman made belongs to the user namespace, and a pod's to the host's.
 * Follows: clone3(2), setns(2), user_namespaces(7).
 */
int container_spawn(struct creation *c, struct cj_error *err);
