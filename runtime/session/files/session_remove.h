/* SPDX-License-Identifier: Apache-2.0 */
/* session_remove - removes files of a session, by the rules of session_files.h. */
#pragma once

#include <stdbool.h>

#include "runtime/base/error.h"

struct jail;

#define SESSION_REMOVE_MAX 1000000 /* entries that one removal looks at */

/*
 * session_file_remove - remove a file, a link or an empty directory; with is_tree a directory and
 * everything in it.
 *
 * Fails: EBUSY when programs keep adding to the tree, or it has more than SESSION_REMOVE_MAX
 *        entries; a part of the tree is removed then.  What is left of it after any failure may
 *        have moved to ".cejail-removed-N" in the tree's top.
 *
 * In a writable bind, a directory that a process of the host moves out of the tree meanwhile may
 * still lose its entries.
 */
int session_file_remove(const struct jail *j, const char *path, bool is_tree, struct cj_error *err);
