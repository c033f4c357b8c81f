/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_arguments - the arguments of a call become the request of a run.  Pure.
 *
 * The request is the body of POST /v1/runs (profiles/schema/request.json) or of a session's routes.
 * A call chooses the program and its data, and may only lower limits: what it asks for is compared
 * with mcp_tool_limits(), also where the API would let the same caller ask for more.  Everything of
 * the host in the request (paths, connections, the environment) is from the command line.
 */
#pragma once

#include "profiles/config.h"
#include "profiles/plan/plan.h"
#include "runtime/base/json/json.h"
#include "runtime/run/mcp/mcp_tool.h"

/* What the command line gives to every run. */
struct mcp_given {
	const struct config *config; /* the options alone, without a profile */
	const bool *wanted;          /* rows of settings[] that were given */
	const char *session_profile; /* of the session that the call names; NULL: not known */
};

/* What becomes of a call. */
struct mcp_plan {
	const char *run_id;        /* of the new run */
	char session[PLAN_ID_MAX]; /* the run takes place there; "": in a jail of its own */
};

/* An id as the service has them, so that it may be a part of a URL. */
int mcp_arguments_take_session(const struct json_node *node, char out[static PLAN_ID_MAX],
			       struct cj_error *err);

/*
 * mcp_arguments_write - write the request of a call that runs a program or creates a session.
 *
 * `arguments`: an object, or NULL.  *plan: the caller sets run_id, and gets the session.
 * Fails: an argument is missing, unknown, of another type, or above a limit.  The message is for
 * the model: it says what to change.  The writer is unusable then.
 */
int mcp_arguments_write(struct json_writer *w, const struct mcp_tool *tool,
			const struct mcp_given *given, const struct json_node *arguments,
			struct mcp_plan *plan, struct cj_error *err);
