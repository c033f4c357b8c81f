/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work - what a worker does with its job: reads it, plans and runs it, sends the result.
 *
 * A worker of a run (worker.c) and a worker of an exec in a session (keeper/keeper_worker.c) share
 * this code.  They differ in where the jail comes from.
 */
#pragma once

#include "profiles/config.h"
#include "profiles/plan/plan.h"
#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/jail/outcome.h"
#include "runtime/run/report/events.h"
#include "runtime/run/request/request.h"
#include "runtime/run/run_driver.h"
#include "runtime/service/worker/job.h"
#include "runtime/service/worker/spawner.h"

struct work {
	const char *profile;
	enum tier tier; /* how far the jail was prepared: which settings may still differ */
	int sock_fd, control_fd;
	int calls_fd;                /* of the program's tools; 0: none */
	int stdin_fd;                /* the program's input; -1: made of the request's */
	char jail_name[PLAN_ID_MAX]; /* of the record and the cgroup */
	const char *session_id;      /* of an exec: its session; else NULL */
	const char *session_tools;   /* likewise: the list in its session's request; NULL: none */
	unsigned exec_number;        /* likewise: a small one that no other running exec has */
	struct session_interpreter *interpreter; /* of a cell: it runs in this one; else NULL */

	struct config
	    config;       /* the profile's, or the session's; then with the request's settings */
	struct plan plan; /* what the driver's jail was prepared from, if it was ahead */

	struct arena arena;
	struct job job;
	struct request request;
	struct plan asked; /* with the request's settings */
	struct program program;
	struct events events;
	struct run_driver driver; /* its jail may be prepared before the job */
	struct outcome outcome;
	uint64_t setup_us;
	bool is_callers_own; /* what kept it from being started */
};

/*
 * False: the server does not want this worker any more, its jail has ended, or SIGTERM came
 * (signal_fd is readable).
 */
bool work_await_job(const struct work *w, int signal_fd);

/* Fails: EPIPE when the server ended first; then there is nobody to tell. */
int work_read_job(struct work *w, struct cj_error *err);

/*
 * The job's request onto the config, within the rights.  Fails: with the stage; EINVAL when it
 * changes what the jail was prepared with.
 */
int work_configure(struct work *w, struct cj_error *err);

/* The kernel kills this process so long after `wall_ms`; 0: never. */
#define WORK_GRACE_MS 60000
int work_limit_life(uint64_t wall_ms, struct cj_error *err);

/*
 * work_serve - carry out a job that was read, and send its events, its summary and its result.
 *
 * `early`: what failed before, which is the result then; or NULL.  If the result can't be sent, the
 * socket ends without one, which the server handles.  The caller destroys w->driver.jail.
 */
void work_serve(struct work *w, const struct cj_error *early);

/* The error is the caller's mistake: what it asked for, or input that did not fit. */
bool work_is_callers_own(const struct work *w, const struct cj_error *e);

/* --- worker.c: the supervisor of one jail --------------------------------------------- */

/*
 * worker_main - prepare the jail, wait for the job, run it, send the result and exit.
 *
 * Each worker serves exactly one request; only if that request is a session, the worker becomes its
 * keeper.  As struct worker_life says.
 */
__attribute__((noreturn)) void worker_main(const struct worker_life *life,
					   const struct worker_order *order);
