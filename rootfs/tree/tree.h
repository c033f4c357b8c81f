/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree - carries out a struct tree_spec: mounts on a root file system that may be hostile.
 *
 * The root's content may have been made by an attacker, and another container that shares it may
 * change it meanwhile.  The host paths in the spec are trusted.  So:
 *  - No path in the tree is ever given to mount(2).  Each is resolved once, inside the root, by
 *    openat2(2), and all that follows is done on the descriptor.
 *  - /dev, /proc, /sys and what is below them are resolved without following any link.
 *  - A missing mount point is made one component at a time, beneath a descriptor.
 *  - Only a procfs or sysfs is mounted at /proc or /sys.  In a procfs a closed list of files may
 *    be mount points; no link leads a mount into a procfs or sysfs.
 *  - A mount is complete (attributes, ids, propagation, copied files) before it is attached.
 *
 * The order, each in the process that it names:
 *
 *	tree_open_outside    runtime, before clone3(2)
 *	tree_open_sources    container's init, with the caller's ids, all namespaces new or joined
 *	tree_build           container's init, with the container's ids
 *	(hooks createContainer)
 *	tree_finish          masks, read-only paths
 *	sysctls_write        rootfs/tree/sysctls.h
 *	tree_enter           pivot_root(2); the old root is gone
 *	tree_seal            the root becomes read-only
 */
#pragma once

#include "rootfs/tree/tree_spec.h"
#include "runtime/base/error.h"

/* Descriptors of the host's objects, and of the root. */
struct tree_sources;

/*
 * tree_open_outside - clone the sources of ID-mapped mounts: only a process that is privileged
 * over their file systems may do so, and the container's init is not, in a user namespace.
 *
 * Runs in:  the runtime; its child inherits memory and descriptors.  Makes short-lived children.
 *           A relative source begins at the directory `base`.
 * Owns:     *out, until tree_close().
 * Follows:  mount_setattr(2), MOUNT_ATTR_IDMAP.
 */
int tree_open_outside(const struct tree_spec *spec, const char *base, struct tree_sources **out,
		      struct cj_error *err);

/*
 * tree_open_sources - end or keep the propagation of this mount namespace's mounts to the host's,
 * open the root and the trusted devices, and clone every source.
 *
 * Runs in:  the container's init, in a new mount namespace and a cgroup namespace of the
 *           container; the working directory is the bundle.
 * Follows:  open_tree(2), mount_namespaces(7).
 */
int tree_open_sources(const struct tree_spec *spec, struct tree_sources *sources,
		      struct cj_error *err);

/*
 * tree_build - mount the root on itself, and carry out all operations in order.
 *
 * Runs in:  the container's init, with the ids that shall own what is made, in all its
 *           namespaces: a new procfs shows this pid namespace, an mqueue this ipc namespace, ...
 * Returns:  the root's descriptor (O_PATH), the caller's to close.  umask is as before.
 * Fails:    and then only the end of the mount namespace undoes the mounts.
 */
int tree_build(const struct tree_spec *spec, struct tree_sources *sources, struct cj_error *err);

/*
 * tree_finish - mask paths, make paths read-only, and each tmpfs that shall be; a path that does
 * not exist is skipped, as config-linux.md of the runtime specification says.  A file is masked by
 * the host's /dev/null, which tree_open_sources() checked, a directory by an empty, read-only
 * tmpfs.
 *
 * Must not: run before the hooks that may mount something below root_fd.
 */
int tree_finish(const struct tree_spec *spec, struct tree_sources *sources, int root_fd,
		struct cj_error *err);

/* Makes root_fd the root, detaches the old one without a trace on the host, checks that "/" is the
 * working directory.  pivot_root(2) */
int tree_enter(const struct tree_spec *spec, int root_fd, struct cj_error *err);

/* The last step: the root's propagation, and read-only if the spec says so.  "/" is the root. */
int tree_seal(const struct tree_spec *spec, struct cj_error *err);

/* Closes everything.  NULL is allowed. */
void tree_close(struct tree_sources **sources);
