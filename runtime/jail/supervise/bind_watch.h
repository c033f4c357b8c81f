/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bind_watch - what a program leaves in the directories that --bind lets it write, and that the
 * caller's own tools execute later: rootfs/files/autorun.h has the names.
 *
 * Looked at right before the program starts and again when every process is dead.  It is a warning:
 * another process of the caller's may have changed them meanwhile.  Without a writable directory
 * nothing is done.
 */
#pragma once

#include "rootfs/rootfs.h"

struct bind_watch;

/* NULL: nothing to watch.  The directories stay open until bind_watch_end(). */
struct bind_watch *bind_watch_begin(const struct rootfs_spec *root);

/* Writes the changed names, as "SRC/NAME, SRC/NAME and 2 more", and returns how many they are. */
size_t bind_watch_compare(const struct bind_watch *w, char *out, size_t size);

void bind_watch_end(struct bind_watch **w);
