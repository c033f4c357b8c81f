/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * empty_dir - removes all that is in the directory `name` of dir_fd, whatever its depth and modes.
 *
 * Follows no link, and opens four descriptors at most.  A tree that somebody adds to may not end:
 * then -ELOOP, and a part is removed.  Changes the mode of the directory to 0700.
 * Returns 0 or a negative errno; -ENOENT if there is no such directory.
 */
int empty_dir(int dir_fd, const char *name);
