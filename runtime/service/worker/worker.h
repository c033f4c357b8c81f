/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker - the supervisor of one jail in the service: it prepares the jail, waits for the job, runs
 * it, sends the result and exits.  Each worker serves exactly one request; only if that request is
 * a session, the worker becomes its keeper.
 */
#pragma once

#include "runtime/service/worker/spawner.h"

struct work;

/* What a worker does with a JOB_SESSION, and with TIER_REPL before its job: keeper_main(). */
struct worker_context {
	void (*keep_session)(struct work *w, int signal_fd, const struct cj_error *early);
};

/* As struct worker_life says; the context is a struct worker_context, or NULL: no sessions. */
__attribute__((noreturn)) void worker_main(void *context, const struct worker_order *order);
