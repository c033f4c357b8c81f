/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_driver - one run of the engine (jail.h) from a plan to an outcome.  Acts.
 *
 * Every front end that runs a program drives the engine through these functions, in this order:
 *
 *	run_driver_begin()     an outcome with what the plan warns of
 *	run_driver_start()     prepare the jail, unless it was prepared ahead, and start the program
 *	run_driver_finish()    wait for the outcome, collect the artefacts
 *	jail_destroy()         the caller's: it decides when the jail's end may take its time
 *
 * Runs in the supervisor's process.
 */
#pragma once

#include "profiles/plan/plan.h"
#include "runtime/base/error.h"
#include "runtime/front/report/events.h"
#include "runtime/jail/jail.h"

/* Everything in it is borrowed, but `jail`. */
struct run_driver {
	const struct plan *plan;
	const struct program *program;
	const char *run_id; /* events name the run by it */
	const char
	    *jail_name; /* of the record and the cgroup; of a jail that is still to be prepared */
	struct jail *jail;     /* the caller's to destroy; NULL: run_driver_start() prepares one */
	struct jail_io io;     /* streams and descriptors; the driver sets the callbacks */
	struct events *events; /* NULL: none are written */
	bool waits_for_events; /* the program waits while the events' reader is behind */
	int artifacts_fd;      /* the directory that artefacts are copied into; -1: none */
	uint64_t
	    artifacts_memory_bytes; /* artefacts are kept in memory, so many; 0: they are not */
};

/* Replaces *out by a new outcome of the run, with the warnings of the plan and of its filter. */
void run_driver_begin(const struct run_driver *d, struct outcome *out);

/* Fails: as jail_prepare() and jail_start() do; d->jail may be set then and is to be destroyed. */
int run_driver_start(struct run_driver *d, struct cj_error *err);

/*
 * run_driver_finish - exactly one outcome, and what the run has left.
 *
 * An artefact that could not be collected is a warning and changes no status; *out_collected says
 * whether all were.
 * Fails: as jail_wait() does.
 */
int run_driver_finish(struct run_driver *d, struct outcome *out, bool *out_collected,
		      struct cj_error *err);
