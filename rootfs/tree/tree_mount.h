/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_mount - makes the detached mount of one operation of a struct tree_spec.  Acts.
 *
 * It is complete before anything can reach it: attributes, ids and propagation are set here.
 */
#pragma once

#include <stdbool.h>

#include "rootfs/tree/tree_spec.h"
#include "runtime/base/error.h"

/*
 * tree_mount_bind - clone the operation's source, with its attributes.
 *
 * The source is a path of the host, relative to base_fd; its links are followed.
 * Returns: the descriptor of the clone's root, the caller's to close.
 */
int tree_mount_bind(const struct tree_op *op, int base_fd, struct cj_error *err);

/* Clones `fd`, alone or with the mounts below it.  `name` is for messages. */
int tree_mount_clone(int fd, bool is_recursive, const char *name, struct cj_error *err);

/* A read-only tmpfs, as engines ask for at /dev: devices and mount points are made in it first. */
bool tree_mount_is_late(const struct tree_op *op);

/*
 * tree_mount_create - a new file system of the operation's type, with its attributes; without
 * MOUNT_ATTR_RDONLY if it is late.
 */
int tree_mount_create(const struct tree_op *op, struct cj_error *err);

/* Sets attributes and propagation of a detached mount. */
int tree_mount_restrict(int tree_fd, const struct tree_attrs *attrs, const char *name,
			struct cj_error *err);
