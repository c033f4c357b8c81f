/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zygote_tree - the host's files through a mount that can't be written.
 *
 * Every fork of a zygote can reach the zygote's program through /proc/self/exe.  If that were the
 * host's own mount, a program that owns the file, or runs as root of a container, could change its
 * mode or its bytes (as in CVE-2019-5736).
 */
#pragma once

#include "runtime/base/error.h"

/*
 * zygote_tree_open - a detached, read-only, nosuid and nodev copy of this process' mount tree.
 *
 * A short-lived child makes it in a user and a mount namespace of its own, so an ordinary user may,
 * too.  The calling process must have one thread.
 * Returns a descriptor, the caller's to close.  A file that is opened below it stays read-only.
 * Follows: open_tree(2), mount_setattr(2), mount_namespaces(7).
 */
int zygote_tree_open(struct cj_error *err);

/*
 * zygote_tree_find - open the program `name`, searched in `path` (the value of PATH) as execvp(3)
 * does, below tree_fd.
 *
 * Fails: ENOENT; EINVAL when it is not below /usr: a jail with the root "host" shows only that.
 * Returns a descriptor for execveat(2).
 */
int zygote_tree_find(int tree_fd, const char *name, const char *path, struct cj_error *err);
