/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zygote_keeper - a small process that starts one zygote of a profile and watches it.
 *
 * It is a child of the spawner, so neither it nor the zygote has a secret or a request of anybody,
 * and the spawner stays as small as it is.  Like a worker it says "ready" or "unready" (job.h).
 * Before "ready" it sends the zygote's socket over control_fd, as job_send() does.  It ends the
 * zygote when the server closes its end of sock_fd: by then workers have had time for their last
 * requests.  Both die with the spawner.
 *
 * It says "stale" once, when a file that the zygote has loaded was changed: ZYGOTE_QUIET_MS after
 * the last change, at most ZYGOTE_CHANGES_MS after the first.
 */
#pragma once

#include "runtime/base/error.h"
#include "runtime/service/worker/spawner.h"

/* The stage of an "unready" line: this profile can't use a zygote, now or later. */
#define ZYGOTE_STAGE_UNSUITABLE "zygote unsuitable"

#define ZYGOTE_START_MS  60000 /* for the modules of its profile to be loaded */
#define ZYGOTE_LINGER_MS 5000  /* for requests of workers that have its socket already */

#define ZYGOTE_QUIET_MS   1000
#define ZYGOTE_CHANGES_MS 10000

/* Why a profile can't use a zygote that it asks for, with a hint; 0: it can, or does not ask. */
int zygote_keeper_check(const char *profile, struct cj_error *err);

/* As struct worker_life says. */
__attribute__((noreturn)) void zygote_keeper_main(const struct worker_order *order);

/*
 * Notices when a file that a zygote has loaded is changed, replaced or removed.
 *
 * The launcher writes the names to the file ZYGOTE_FILES_LIST in its empty directory (zygote.h),
 * one absolute path a line, before it calls fork(3).  Follows: inotify(7).
 */
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
