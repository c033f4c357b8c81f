/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bind_watch - warns of files in --bind directories that the caller's own tools execute later, such
 * as .git/hooks.  rootfs/files/autorun.h has the names.
 *
 * The directories are compared right before the program starts and when every process is dead.
 * Another process of the caller's may have made a change meanwhile, so it is only a warning.
 */
#pragma once

#include "rootfs/rootfs.h"

struct bind_watch;

/* NULL: nothing to watch.  The directories stay open until bind_watch_end(). */
struct bind_watch *bind_watch_begin(const struct rootfs_spec *root);

/* Writes the changed names, as "SRC/NAME, SRC/NAME and 2 more".  Returns their number. */
size_t bind_watch_compare(const struct bind_watch *w, char *out, size_t size);

void bind_watch_end(struct bind_watch **w);
