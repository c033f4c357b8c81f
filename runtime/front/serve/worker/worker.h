/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker - the supervisor of one jail in the service: it prepares the jail, waits for the job, runs
 * it, sends the result and exits.  Each worker serves exactly one request.
 */
#pragma once

#include "runtime/front/serve/worker/spawner.h"

/* As struct worker_life says; it needs no context. */
__attribute__((noreturn)) void worker_main(void *context, const struct worker_order *order);
