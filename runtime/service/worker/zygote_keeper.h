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
