/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker - the life of one jail's supervisor in the service: prepare, wait for the job, run it,
 * tell how it ended, leave.  Each worker serves one request and no other.
 */
#pragma once

#include "runtime/front/serve/worker/job.h"

/* As struct worker_life says; it needs no context. */
__attribute__((noreturn)) void worker_main(void *context, const char *profile, enum tier tier,
					   int sock_fd, int control_fd);
