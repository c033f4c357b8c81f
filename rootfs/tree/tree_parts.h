/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_parts - what tree.c builds a tree of: detached mounts, device nodes, links and masks.
 */
#pragma once

#include "rootfs/tree/tree.h"
#include "rootfs/tree_place.h"

/*
 * tree_mount.c: the detached mount of one operation.  It is complete before anything can reach it:
 * attributes, ids and propagation are set here.
 */

/*
 * tree_mount_bind - clone the operation's source, with its attributes.
 *
 * The source is a path of the host, relative to base_fd; its links are followed.
 * Returns: the descriptor of the clone's root, the caller's to close.
 */
int tree_mount_bind(const struct tree_op *op, int base_fd, struct cj_error *err);

/* Clones `fd`, alone or with the mounts below it.  `name` is for messages. */
int tree_mount_clone(int fd, bool is_recursive, const char *name, struct cj_error *err);

/* True for a read-only tmpfs, as engines ask for at /dev: devices and mount points are made in it
 * first. */
bool tree_mount_is_late(const struct tree_op *op);

/*
 * tree_mount_create - a new file system of the operation's type, with its attributes; without
 * MOUNT_ATTR_RDONLY if it is late.
 *
 * The paths of an overlay may be longer than an option of fsconfig(2) may be.  Relative ones begin
 * in the working directory.  Must not: run where "/proc" is the container's.
 * Fails: as open(2) for such a directory; ENAMETOOLONG for more layers than fit as numbers, 60 at
 *        least.
 */
int tree_mount_create(const struct tree_op *op, struct cj_error *err);

/* Sets attributes and propagation of a detached mount. */
int tree_mount_restrict(int tree_fd, const struct tree_attrs *attrs, const char *name,
			struct cj_error *err);

/*
 * tree_node.c: the entries of a tree that are no mounts.  An entry that exists is compared, never
 * changed: an image's file must not get another owner or mode, and a link in its place must not
 * lead a node elsewhere.
 */

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

/* What masks are made of: both are attached where they are used first, and cloned from there. */
struct tree_masks {
	int null_fd;       /* a clone of the host's /dev/null; -1: none */
	int empty_fd;      /* an empty, read-only tmpfs; -1: none yet */
	const char *label; /* its label of SELinux; NULL: none */
	bool null_is_attached, empty_is_attached;
};

/* Clones /dev/null below dev_fd, the host's /dev, once it is known to be the device 1:3
 * (CVE-2025-31133: an image's own can be anything). */
int tree_mask_open(struct tree_masks *masks, int dev_fd, struct cj_error *err);

/* Covers what is at place_fd: a directory by an empty one, all else by /dev/null. */
int tree_mask_cover(struct tree_masks *masks, int place_fd, const char *name, struct cj_error *err);

/* tree_copy.c: tmpcopyup */

#define TREE_COPY_DEPTH_MAX   64
#define TREE_COPY_ENTRIES_MAX 100000

/*
 * tree_copy - directories, regular files and links below from_fd, with owner, mode, times and hard
 * links; of the extended attributes user.*, file capabilities and ACLs.
 *
 * The tree is hostile.  The directory to_fd itself gets mode and owner of from_fd.  No link is
 * followed, no device or fifo is opened, and no other mount is entered.  How many bytes are copied
 * is limited by the size of the file system that to_fd is in.  An attribute that a tmpfs can't have
 * is omitted.
 *
 * Runs in: the container's init before pivot_root(2): it uses the host's /proc/self/fd.
 * Fails:   for devices, fifos and sockets; E2BIG past a limit; ENOSPC.
 */
int tree_copy(int from_fd, int to_fd, const char *name, struct cj_error *err);
