/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote - `run --remote SOCKET`: the run takes place at a service, cejail-serve(8), and all else
 * is as if it took place here: output as it comes, events, artefacts, the result, the exit status.
 */
#pragma once

#include "profiles/plan/plan.h"
#include "runtime/base/arena.h"
#include "runtime/base/json/json.h"
#include "runtime/front/cli/delivery.h"
#include "runtime/front/cli/arguments/options.h"
#include "runtime/jail/outcome.h"

struct remote_call {
	struct config *config; /* the options, no profile */
	const struct options *options;
	const struct invocation *invocation;
	const char *profile;
	int artifacts_fd; /* -1: none are wanted */
	struct delivery *delivery;
};

/* The socket of the caller's own service, else of the system's. */
int remote_find_socket(struct arena *a, const char **out_path, struct cj_error *err);

/*
 * remote_run - ask, pass on what comes, wait for the result.
 *
 * A signal asks the service to cancel the run, and its result is waited for; a second one, or a
 * service that does not answer, ends the waiting.
 * Owns:  the outcome is begun (outcome_init) under the run's id; what is read lives in its arena.
 *        *out_result is the result to hand on; it stays NULL when the run was cancelled and the
 *        service did not tell.
 * Fails: nothing listens, the service refuses, it ends in the middle.
 */
int remote_run(const struct remote_call *call, struct outcome *o, struct json_writer **out_result,
	       bool *out_complete, struct cj_error *err);
