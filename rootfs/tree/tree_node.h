/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_node - the entries of a tree that are no mounts: device nodes and links.  Acts.
 *
 * An entry that exists is compared, never changed: an image's file must not get another owner or
 * mode, and a link in its place must not lead a node elsewhere.
 */
#pragma once

#include "rootfs/tree/tree_place.h"
#include "rootfs/tree/tree_spec.h"
#include "runtime/base/error.h"

/*
 * tree_node_add_device - make the operation's node; `at` is its path.  Where mknod(2) is not
 * permitted, as in a user namespace, the host's device is bound: the one at the operation's path,
 * checked by type and number.
 *
 * Runs in: the container's init before pivot_root(2), with umask 0.
 */
int tree_node_add_device(const struct tree_path *at, const struct tree_op *op,
			 struct cj_error *err);

/* A symbolic link. */
int tree_node_add_link(const struct tree_path *at, const char *target, struct cj_error *err);
