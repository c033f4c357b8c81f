/* SPDX-License-Identifier: Apache-2.0 */
/* owned_dir - opens and makes directories by paths in which other users may have directories. */
#pragma once

#include "runtime/base/error.h"

/*
 * owned_dir_open - open the directory `path`; with `last` other than 0 make what is missing: the
 * last directory with mode `last`, those above it with mode `above`.
 *
 * Follows only symbolic links that no other user can replace: the link and all directories on the
 * way to it belong to this user or to root, and not everyone may write there, except in a
 * directory with the sticky bit.  A group that may write there is trusted.  In a user namespace,
 * whoever owns / counts as root, but not as the owner of what is where everyone may write.
 * Fails: EPERM for another link, with a hint; ENOENT; ENOTDIR.
 */
int owned_dir_open(const char *path, mode_t above, mode_t last, struct cj_error *err);
