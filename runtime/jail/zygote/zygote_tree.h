/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zygote_tree - the mounts that a zygote needs: a read-only copy of the host's, and an empty
 * directory.
 *
 * Every fork of a zygote can reach the zygote's program through /proc/self/exe.  If that were the
 * host's own mount, a program that owns the file, or runs as root of a container, could change its
 * mode or its bytes (as in CVE-2019-5736).
 *
 * The zygote is in no jail, so the modules that it loads would write their caches to the host's
 * /tmp.  They write to the empty directory, which no path leads to and which goes with the last
 * descriptor, however the zygote ends.
 */
#pragma once

#include "runtime/base/error.h"

/* Both are detached. */
struct zygote_tree {
	int tree_fd;    /* a read-only, nosuid and nodev copy of this process' mount tree */
	int scratch_fd; /* a tmpfs of ZYGOTE_SCRATCH_SIZE */
};
#define ZYGOTE_TREE_NULL    ((struct zygote_tree){ .tree_fd = -1, .scratch_fd = -1 })
#define ZYGOTE_SCRATCH_SIZE "64m"

/*
 * zygote_tree_open - make both.
 *
 * A short-lived child makes them in a user and a mount namespace of its own, so an ordinary user
 * may, too.  The calling process must have one thread.
 * The descriptors are the caller's to close.  A file that is opened below tree_fd stays read-only.
 * Follows: open_tree(2), mount_setattr(2), mount_namespaces(7).
 */
int zygote_tree_open(struct zygote_tree *out, struct cj_error *err);
void zygote_tree_close(struct zygote_tree *t);
#define auto_zygote_tree __attribute__((cleanup(zygote_tree_close))) struct zygote_tree

/*
 * zygote_tree_find - open the program `name`, searched in `path` (the value of PATH) as execvp(3)
 * does, below tree_fd.
 *
 * Fails: ENOENT; EINVAL when it is not below /usr: a jail with the root "host" shows only that.
 * Returns a descriptor for execveat(2).
 */
int zygote_tree_find(int tree_fd, const char *name, const char *path, struct cj_error *err);
