/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote - `run --remote SOCKET`: the run takes place at a service, cejail-serve(8).  Output,
 * events, artefacts, result and exit status are the same as those of a run here.
 */
#pragma once

#include "profiles/plan/plan.h"
#include "runtime/base/arena.h"
#include "runtime/base/json/json.h"
#include "runtime/run/report/delivery.h"
#include "runtime/run/options/options.h"
#include "runtime/jail/outcome.h"

enum remote_exec_kind {
	REMOTE_EXEC_STREAMED, /* output comes here while the program runs */
	REMOTE_EXEC_DETACHED, /* nobody waits for its end */
	REMOTE_EXEC_AWAITED,  /* it was started detached: wait for its end, and take the result */
};

/* The run takes place in a session of the service. */
struct remote_exec {
	enum remote_exec_kind kind;
	const char *session;
	const char *id;  /* REMOTE_EXEC_AWAITED: the exec's */
	bool interrupts; /* the timeout sends SIGINT first */
};

struct remote_call {
	struct config *config; /* the options without a profile */
	const struct options *options;
	const struct invocation *invocation;
	const char *profile;            /* NULL with `exec`: the session has one */
	const struct remote_exec *exec; /* NULL: a run */
	int artifacts_fd;               /* -1: none are wanted */
	struct delivery *delivery;
};

/* The socket of the user's own service, or else of the system's service. */
int remote_find_socket(struct arena *a, const char **out_path, struct cj_error *err);

/*
 * remote_start_detached - start an exec and do not wait for its end.
 *
 * Owns: *out, the answer {"id","state"}, lives in the arena of call->config.
 */
int remote_start_detached(const struct remote_call *call, const char *id,
			  const struct json_node **out, struct cj_error *err);

/*
 * remote_run - send the request, forward output and events, wait for the result.
 *
 * After a signal it asks the service to cancel the run, and waits for the result.  It stops waiting
 * after a second signal, or if the service does not answer.  In a session, the program receives the
 * first SIGINT, and the next signal cancels the exec.
 * Owns:  the caller has called outcome_init() with the run's id; data read lives in its arena.
 *        *out_result is the result to deliver; it stays NULL if the run was cancelled and the
 *        service sent no result.
 * Fails: no service listens, the service refuses the request, or it closes the connection early.
 */
int remote_run(const struct remote_call *call, struct outcome *o, struct json_writer **out_result,
	       bool *out_complete, struct cj_error *err);

/*
 * remote_await - wait for the end of a detached exec, then write its output and store its files.
 *
 * Owns, Fails: as remote_run().  A signal ends the wait and not the exec.
 */
int remote_await(const struct remote_call *call, struct outcome *o, struct json_writer **out_result,
		 bool *out_complete, struct cj_error *err);
