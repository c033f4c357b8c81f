/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_driver - one run of the engine (jail.h), from a plan to an outcome.
 *
 * Every front end that runs a program calls these functions, in this order:
 *
 *	run_driver_begin()     start an outcome with the warnings of the plan
 *	run_driver_start()     prepare the jail, unless it was prepared earlier; start the program
 *	run_driver_finish()    wait for the outcome, collect the artefacts and the return value
 *	jail_destroy()         by the caller, who may report the outcome first
 *
 * Runs in the supervisor's process.
 */
#pragma once

#include "profiles/plan/plan.h"
#include "runtime/base/error.h"
#include "runtime/run/report/events.h"
#include "runtime/run/report/spans.h"
#include "runtime/jail/jail.h"
#include "runtime/session/repl/session_interpreter.h"

/* Every pointer and descriptor is borrowed, except `jail`. */
struct run_driver {
	const struct plan *plan;
	const struct program *program;
	const char *run_id;    /* in events */
	const char *jail_name; /* names the record and the cgroup, if run_driver_start() prepares */
	struct jail *jail;     /* the caller destroys it; NULL: run_driver_start() prepares one */
	struct jail_io io;     /* streams and descriptors; the driver sets the callbacks */
	struct events *events; /* NULL: none are written */
	struct spans *spans;   /* of a trace file; NULL: there is none */
	bool waits_for_events; /* stop reading output while the reader of events is behind */
	struct outcome *setup; /* of the command of plan->setup; NULL: the plan has none */
	struct program rest;   /* then: the program without what the command was sent */
	bool wants_value;      /* read the program's return value */
	int artifacts_fd;      /* the directory that artefacts are copied into; -1: none */
	uint64_t artifacts_memory_bytes; /* keep at most so many of artefacts in memory; 0: none */
	/* For a cell of a session; NULL: it is none.  `jail` is then its view. */
	struct session_interpreter *interpreter;
	struct blob cell_input; /* its whole standard input; bytes NULL: none */
	struct session_cell cell;
};

/* Replaces *out by a new outcome, with the warnings of the plan and of its seccomp policy. */
void run_driver_begin(const struct run_driver *d, struct outcome *out);

/* Fails: as jail_prepare(), jail_set_up() and jail_start().  d->jail may be set then; the caller
 * destroys it. */
int run_driver_start(struct run_driver *d, struct cj_error *err);

/*
 * run_driver_finish - wait for the outcome, and collect the artefacts and the return value.
 *
 * An artefact that cannot be collected is a warning and does not change the status; *out_collected
 * is then false.  A return value that cannot be used is a warning alone.
 * Fails: as jail_wait().
 */
int run_driver_finish(struct run_driver *d, struct outcome *out, bool *out_collected,
		      struct cj_error *err);
