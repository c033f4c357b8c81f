/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper_worker - the processes that a keeper forks: one for each exec, one for each operation on a
 * file.  An exec worker is the worker of a run (work.h), on a view of the session's jail.
 */
#pragma once

#include "runtime/service/keeper/keeper_channel.h"
#include "runtime/service/worker/work.h"
#include "runtime/session/session.h"

/* What a worker has of its keeper, in its own copy of the keeper's memory. */
struct keeper_worker_order {
	const struct work *keeper; /* the session's config, plan and job */
	struct session *session;
	unsigned slot;                           /* of an exec */
	unsigned number;                         /* of an exec: as struct work has it */
	struct session_interpreter *interpreter; /* of a cell */
	const struct cj_error *early;            /* of a cell: why there is no interpreter */
	int signal_fd;
	struct keeper_request *request; /* its descriptors are the worker's */
};

/* Runs in: a fork of the keeper that has closed what is not its own.  Sends a run's lines. */
void keeper_worker_exec(const struct keeper_worker_order *order);

/*
 * Likewise, for a cell.  False: the interpreter is lost, and the keeper is to end it.
 * Without an interpreter the result is `early`.
 */
bool keeper_worker_cell(const struct keeper_worker_order *order);

/* Likewise; sends the lines of file_job.h. */
void keeper_worker_file(const struct keeper_worker_order *order);
