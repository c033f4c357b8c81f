/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private_dir - the directory of a jail without a mount namespace (--reduced): it has the jail's
 * /box and /tmp.
 *
 * It is made below the caller's TMPDIR, or /tmp.  Its name has the run's id and random digits, and
 * is in the record before it is made, so that a sweep removes what a killed supervisor left.
 */
#pragma once

#include "runtime/base/error.h"

#define PRIVATE_DIR_MAX 1024

/* Makes up a path; makes nothing.  Root's is always below /tmp, which the jail's user can reach. */
int private_dir_name(const char *id, char out[static PRIVATE_DIR_MAX], struct cj_error *err);

/*
 * private_dir_make - the directory, which only this user may enter, with box, box/out and tmp.
 *
 * Fails: EEXIST if there is something of that name; nothing is left then.
 */
int private_dir_make(const char *path, uid_t uid, gid_t gid, struct cj_error *err);

/*
 * private_dir_remove - the directory and all that is in it, whatever its programs made of it.
 *
 * Call it when no process of the jail is left.  Opens two directories at a time, however deep the
 * tree is.  Refuses (EINVAL) a path that private_dir_name() does not make of this id.
 * Returns 0, also if there is no such directory.
 */
int private_dir_remove(const char *path, const char *id, struct cj_error *err);
