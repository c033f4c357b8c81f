/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mounts - the operations of the kernel's mount API that the tree is built with.
 *
 * Nearly everything is a descriptor.  A tree is created or cloned detached, restricted (read-only,
 * nosuid, ...) while no process can reach it, and only then attached to a mount point, which is
 * resolved beneath a root without following links.
 *
 * Follows: fsopen(2), fsconfig(2), fsmount(2), open_tree(2), mount_setattr(2),
 * move_mount(2), pivot_root(2).  Attributes are MOUNT_ATTR_* of <sys/mount.h>.
 */
#pragma once

#include <sys/stat.h>

#include "runtime/base/error.h"

#define MOUNTS_OPTION_MAX 255 /* bytes of a key or a value that fsconfig(2) takes */

/* One option of a new file system; value NULL: a flag. */
struct mounts_option {
	const char *key, *value;
};

/* Refuses what is not the character device of that number; an error names `path`. */
int mounts_check_device(const struct stat *st, const char *path, unsigned major_number,
			unsigned minor_number, struct cj_error *err);

/* Opens (O_PATH) the device `path` ("/dev/null") below dev_fd, the host's /dev, and checks its
 * number.  Follows no link. */
int mounts_open_device(int dev_fd, const char *path, unsigned major_number, unsigned minor_number,
		       struct cj_error *err);

/*
 * mounts_create - a new file system of `type`, detached.
 * Returns: the descriptor of its root, the caller's to close.
 * Fails:   with the kernel's own message, if there is one.
 */
int mounts_create(const char *type, const struct mounts_option *options, size_t noptions,
		  uint64_t attrs, struct cj_error *err);

/* A new file system of `type`, attached at once: mount(2).  `path` is resolved as usual. */
int mounts_add(const char *type, const char *path, unsigned long flags, const char *options,
	       struct cj_error *err);
/* A tmpfs; returns its root (O_PATH), the caller's to close. */
int mounts_add_tmpfs(const char *path, unsigned long flags, const char *options,
		     struct cj_error *err);

/*
 * mounts_clone - a detached copy of the mount that dir_fd/path lies in, from that path down.
 *
 * Mounts below come along and get the same attributes: in a user namespace inherited mounts
 * are locked together, and a copy without them is refused (mount_namespaces(7)).  No attributes: it
 * keeps those of the original.
 * `path` may be "" (dir_fd itself).  `name` is for messages.
 */
int mounts_clone(int dir_fd, const char *path, uint64_t attrs, const char *name,
		 struct cj_error *err);

/* Adds attributes to the mount tree_fd is the root of, not to those below it. */
int mounts_restrict(int tree_fd, uint64_t attrs, const char *name, struct cj_error *err);
/* The same for the mounts below it, too, in one call: all of them get the attributes, or none. */
int mounts_restrict_all(int tree_fd, uint64_t attrs, const char *name, struct cj_error *err);
/* Takes MOUNT_ATTR_RDONLY away from the mount tree_fd is the root of. */
int mounts_open_for_writing(int tree_fd, const char *name, struct cj_error *err);

/*
 * mounts_resolve - open `path` (absolute: from root_fd on) as a place, without crossing any link.
 * Returns: an O_PATH descriptor, or -ENOENT with *err filled, as for every other failure.
 */
int mounts_resolve(int root_fd, const char *path, struct cj_error *err);

/* Attaches a detached tree on place_fd; `name` is for messages. */
int mounts_attach(int tree_fd, int place_fd, const char *name, struct cj_error *err);

/*
 * mounts_attach at an entry of the directory dir_fd: one component, never followed if it is a link.
 */
int mounts_attach_in(int tree_fd, int dir_fd, const char *entry, const char *name,
		     struct cj_error *err);

/* mounts_attach at a path, which is resolved as usual: only where nobody can replace what it leads
 * through. */
int mounts_attach_at(int tree_fd, const char *place, const char *name, struct cj_error *err);

/*
 * mounts_bind - mount the open file or directory fd, or fd/below, at `place`, with what is mounted
 * below it: mount(2), one call where mounts_clone() and mounts_attach() are two.
 *
 * `below` is "" or "/NAME".  `place` is a path as that of mounts_attach_at().
 */
int mounts_bind(int fd, const char *below, const char *place, const char *name,
		struct cj_error *err);

/*
 * mounts_pivot - root_fd, the root of an attached mount, becomes "/"; the old root is detached.
 * The working directory is the new root afterwards.
 */
int mounts_pivot(int root_fd, struct cj_error *err);

/* The same where mounts of the old root are peers of another namespace's: they are no more before
 * the old root is detached, or those would be unmounted, too.  mount_namespaces(7) */
int mounts_pivot_from_peers(int root_fd, struct cj_error *err);
