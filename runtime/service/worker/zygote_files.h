/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zygote_files - notices when a file that a zygote has loaded is changed, replaced or removed.
 *
 * The launcher writes the names to the file ZYGOTE_FILES_LIST in its empty directory (zygote.h),
 * one absolute path a line, before it calls fork(3).  Follows: inotify(7).
 */
#pragma once

#include <stdbool.h>

#include "runtime/base/error.h"

#define ZYGOTE_FILES_LIST     "files"
#define ZYGOTE_FILES_LIST_MAX (4u << 20)

/*
 * zygote_files_watch - watch what the list in the directory scratch_fd names.
 *
 * A launcher that wrote no list has no files to watch.  A file that is gone already is not watched.
 * Returns a descriptor that is readable after a change, the caller's to close.
 * Fails: EFBIG for a list above ZYGOTE_FILES_LIST_MAX; ENOSPC and EMFILE, with a hint.
 */
int zygote_files_watch(int scratch_fd, struct cj_error *err);

/* Discards the changes until now, so that the descriptor is readable after the next one. */
void zygote_files_drain(int watch_fd);
