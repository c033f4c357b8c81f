/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker - the life of one jail's supervisor in the service: prepare, wait for the job, run it,
 * tell how it ended, leave.  Each worker serves one request and no other.
 */
#pragma once

#include "runtime/front/serve/worker/job.h"

/* Runs in: a child of the spawner.  Takes both descriptors; never returns. */
_Noreturn void worker_main(const char *profile, enum tier tier, int sock_fd, int control_fd);
