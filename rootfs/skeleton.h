/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skeleton - the generated part of a jail's tree: a small tmpfs with the directories that
 * programs expect, a generated /etc, and a mount point for every mount.
 *
 * Alone it is "/".  In an overlay it is the top layer, so that every mount point is a real
 * directory or file that cejail made, whatever an image has at that name.
 * Paths are without the leading '/'.
 */
#pragma once

#include "rootfs/rootfs.h"
#include "runtime/base/error.h"
#include "runtime/base/files/fd.h"

/* Python executes it when it starts: a link in the directory of the user's packages leads here. */
#define SKELETON_PTH "etc/cejail.pth"

struct skeleton {
	int fd;                /* its root (O_PATH) */
	struct fd_bag written; /* its files, until it is finished: one call closes most of them */
};
#define SKELETON_NULL ((struct skeleton){ .fd = -1 })
#define auto_skeleton __attribute__((cleanup(skeleton_fini)))

/*
 * skeleton_create - the tmpfs with the files that all jails have, parked, still writable.
 * Runs in:  init, as the jail's user (it owns what is made), umask 0.
 * Fails:    the caller releases what there is.
 */
int skeleton_create(struct skeleton *s, const struct rootfs_spec *spec, struct cj_error *err);
/* No mount can become read-only while a file of it is open for writing: mount_setattr(2). */
void skeleton_fini(struct skeleton *s);

/* A directory 0755, or an empty file 0644, with its parent directories.  An existing one stays. */
int skeleton_add_place(int skeleton_fd, const char *path, bool is_dir, struct cj_error *err);

/* A file 0644, and its parent directories, with the first `size` bytes of the regular file from_fd,
 * as far as it has them.  Fails if it exists. */
int skeleton_add_copy(struct skeleton *s, const char *path, int from_fd, size_t size,
		      struct cj_error *err);

/*
 * The place in the jail that `path` (absolute, normalised) names, with the skeleton's own links
 * followed, such as /var/tmp.  No link of the host's or of an image's is ever followed.
 * NULL: no memory.
 */
const char *skeleton_follow(const char *path, struct arena *a);

int skeleton_add_link(int skeleton_fd, const char *path, const char *target, struct cj_error *err);
